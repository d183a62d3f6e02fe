package cli

import (
	"strings"

	"github.com/fermata-run/fermata/conformance"
	"github.com/spf13/cobra"
)

// conformanceCommand hands its arguments to the suite, which has flags of its own.
func (a *app) conformanceCommand() *cobra.Command {
	suite := func(cmd *cobra.Command, args []string) int {
		return conformance.Command(cmd.Context(), args, a.env.Getenv, a.env.Stdout, a.env.Stderr)
	}
	c := &cobra.Command{
		Use:                "conformance [verify FILE | keygen | authority] --base-url URL [--filter PATTERN] [--json] [--certify FILE --signing-key FILE]",
		Short:              "Check a host against the protocol, and certify what was seen",
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if code := suite(cmd, a.likeTheOthers(args)); code != ExitOK {
				return told{code}
			}
			return nil
		},
	}
	// `fermata help conformance` says the same as --help: the flags are the suite's.
	c.SetHelpFunc(func(cmd *cobra.Command, _ []string) { suite(cmd, []string{"--help"}) })
	return c
}

// likeTheOthers lets the address be given as to the other commands: by --server, or
// by FERMATA_SERVER.
func (a *app) likeTheOthers(args []string) []string {
	out := make([]string, 0, len(args)+2)
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		// A verb of the suite's own. None is about whatever host happens to be set:
		// a bundle is held against the host it names, which has to be given.
		out, args = append(out, args[0]), args[1:]
	} else if s := a.env.Getenv("FERMATA_SERVER"); s != "" {
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
