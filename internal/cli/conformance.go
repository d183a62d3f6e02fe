package cli

import (
	"strings"

	"github.com/fermata-run/fermata/conformance"
	"github.com/spf13/cobra"
)

// conformanceCommand hands its arguments to the suite, which has flags of its own.
func (a *app) conformanceCommand() *cobra.Command {
	return &cobra.Command{
		Use: "conformance --base-url URL [--filter PATTERN] [--json]", Short: "Check a host against the protocol",
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			code := conformance.Command(cmd.Context(), a.likeTheOthers(args), a.env.Getenv, a.env.Stdout, a.env.Stderr)
			if code != ExitOK {
				return told{code}
			}
			return nil
		},
	}
}

// likeTheOthers lets the address be given as to the other commands: by --server, or
// by FERMATA_SERVER.
func (a *app) likeTheOthers(args []string) []string {
	out := make([]string, 0, len(args)+2)
	if s := a.env.Getenv("FERMATA_SERVER"); s != "" {
		out = append(out, "--base-url", s) // a later flag beats it
	}
	for _, arg := range args {
		name, value, has := strings.Cut(arg, "=")
		if name == "--server" || name == "-server" {
			arg = "--base-url"
			if has {
				arg += "=" + value
			}
		}
		out = append(out, arg)
	}
	return out
}
