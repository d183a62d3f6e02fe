package cli

import (
	"github.com/fermata-run/fermata/internal/config"
	"github.com/spf13/cobra"
)

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "config", Short: "Show the settings in force and where each comes from", Args: noArgs,
		Long: "Shows every setting of `fermata serve`, its value and where that comes from: a flag, the\nenvironment, a file, or the default, in this order of precedence. Secrets are hidden.",
	}
	config.Bind(cmd.Flags(), config.ServeOnly)
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, src, err := a.settings(cmd)
		if err != nil {
			return usageError{err}
		}
		lines := config.Describe(cfg, src)
		if *asJSON {
			return a.value(lines)
		}
		t := newTable("SETTING", "VALUE", "SOURCE")
		for _, l := range lines {
			if l.Value == "" {
				l.Value = "-"
			}
			t.add(l.Name, l.Value, l.Source)
		}
		t.print(a.env.Stdout)
		for _, n := range config.Notes(cfg) {
			a.say("\nnote: %s: %s", n.Setting, n.Text)
		}
		return nil
	}
	return cmd
}
