package cli

import (
	"errors"
	"fmt"

	"github.com/fermata-run/fermata/internal/config"
	"github.com/spf13/cobra"
)

const keysAbout = `Makes an API key with every right in one tenant, and shows it once.

The key is written into the data folder, which no host may be using at that moment: stop the host,
make the key, start it again. FERMATA_NEW_API_KEY may hold the key that is wanted, 32 to 512
characters; otherwise one is made.`

func (a *app) keysCreate() *cobra.Command {
	var tenant, name string
	cmd := &cobra.Command{Use: "create --tenant TENANT", Short: "Make an API key of a tenant", Long: keysAbout, Args: noArgs}
	config.Bind(cmd.Flags(), config.Any)
	cmd.Flags().StringVar(&tenant, "tenant", "", "tenant the key belongs to")
	cmd.Flags().StringVar(&name, "name", "", "what the key is for")
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, _, err := config.Load(config.Input{Flags: cmd.Flags(), Getenv: a.env.Getenv})
		if err != nil {
			return usageError{err}
		}
		switch {
		case tenant == "":
			return usage("give the tenant by --tenant")
		case a.env.CreateKey == nil:
			return errors.New("this program carries no host")
		}
		key, err := a.env.CreateKey(cmd.Context(), cfg.Data, tenant, name, a.env.Getenv("FERMATA_NEW_API_KEY"))
		if err != nil {
			return fmt.Errorf("no key was made: %w", err)
		}
		if *asJSON {
			return a.value(map[string]string{"tenant": tenant, "apiKey": key})
		}
		a.say("API key    %s", key)
		a.say("tenant     %s", tenant)
		a.note("It is shown this once: keep it.")
		return nil
	}
	return cmd
}
