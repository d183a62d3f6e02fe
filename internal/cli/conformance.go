package cli

import (
	"github.com/fermata-run/fermata/conformance"
	"github.com/spf13/cobra"
)

// conformanceCommand hands its arguments to the suite, which has flags of its own.
func (a *app) conformanceCommand() *cobra.Command {
	return &cobra.Command{
		Use: "conformance --base-url URL [--filter PATTERN] [--json]", Short: "Check a host against the protocol",
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			code := conformance.Command(cmd.Context(), args, a.env.Getenv, a.env.Stdout, a.env.Stderr)
			if code != ExitOK {
				return told{code}
			}
			return nil
		},
	}
}
