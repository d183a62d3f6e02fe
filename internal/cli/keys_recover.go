package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fermata-run/fermata/internal/config"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const keysRecoverAbout = `Makes an API key with every right in a tenant, for when the last one is lost, and shows it once.

The key is written into the data folder, which no host may be using at that moment: stop the host,
make the key, start it again. Whoever can write to the folder can do so: it is the folder's
permissions that protect it. Without --tenant the key is the host's administrator's.

With --store the key is written into that database, which hosts may be using. It takes the master
key of those hosts.

FERMATA_NEW_API_KEY may hold the key that is wanted, 32 to 512 characters; otherwise one is made.
Revoke the lost key afterwards: ` + "`fermata keys list`, `fermata keys revoke KEY`" + `.`

func (a *app) keysRecover() *cobra.Command {
	var tenant, name string
	cmd := &cobra.Command{Use: "recover", Short: "Make a key in the data of a host, without the host", Long: keysRecoverAbout, Args: noArgs}
	config.Bind(cmd.Flags(), config.Any)
	settings := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.Bind(settings, config.ServeOnly)
	cmd.Flags().AddFlag(settings.Lookup("store"))
	cmd.Flags().StringVar(&tenant, "tenant", "", "tenant the key belongs to (default: the first one, whose keys administer the host)")
	cmd.Flags().StringVar(&name, "name", "", "what the key is called (default: recovered)")
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, _, err := a.settings(cmd)
		if err != nil {
			return usageError{err}
		}
		key, err := a.recoverKey(cmd.Context(), cfg, tenant, name)
		if err != nil {
			return fmt.Errorf("no key was made: %w", err)
		}
		if *asJSON {
			return a.value(map[string]string{"apiKey": key})
		}
		a.say("API key    %s", key)
		a.note("It is shown this once: keep it.")
		return nil
	}
	return cmd
}

// recoverKey opens the host of a data folder, with the keys it is sealed by, without
// starting it.
func (a *app) recoverKey(ctx context.Context, cfg config.Config, tenant, name string) (key string, err error) {
	if a.env.OpenHost == nil {
		return "", errors.New("this program carries no host")
	}
	if err := a.isHosts(ctx, cfg); err != nil {
		return "", err
	}
	log, err := a.logger(cfg, a.env.Stderr)
	if err != nil {
		return "", usageError{err}
	}
	h, err := a.env.OpenHost(ctx, cfg, log)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, stopHost(h, 10*time.Second)) }()
	r, ok := h.(Recoverer)
	if !ok {
		return "", errors.New("this host cannot make keys")
	}
	return r.RecoverKey(ctx, tenant, name, a.env.Getenv("FERMATA_NEW_API_KEY"))
}

// isHosts says that a host has been there before: opening one would make a database,
// and a key that nobody is shown.
func (a *app) isHosts(ctx context.Context, cfg config.Config) error {
	if cfg.Store == "" {
		if _, err := os.Stat(filepath.Join(cfg.Data, "fermata.db")); err != nil {
			return fmt.Errorf("there is no host's data in %s: %w", cfg.Data, err)
		}
		return nil
	}
	if a.env.Migrator == nil {
		return errors.New("this program knows no shared database")
	}
	is, err := a.env.Migrator.Status(ctx, cfg.Store)
	if err == nil && is.Version == 0 {
		err = fmt.Errorf("there is no host's data in %s", config.HidePassword(cfg.Store))
	}
	return err
}
