package cli

import (
	"strings"

	"github.com/fermata-run/fermata/client"
	"github.com/spf13/cobra"
)

// keysCommand holds the commands on API keys and on the keys of tokens.
func (a *app) keysCommand() *cobra.Command {
	var t target
	g := group("keys", "Make API keys, and replace the key of interrupt tokens", a.keysAdd(&t), a.keysRotateTokens(&t))
	t.bind(g)
	g.AddCommand(a.keysCreate()) // at rest: it needs no host, and no profile of one
	return g
}

const keysAddAbout = `Makes an API key in your tenant and shows it once. Groups and roles say what its holder
belongs to: an approval that names a group or role can then be answered with it.

  fermata keys add --name ann --scopes approvals:respond,runs:read --groups finance --roles lead

The subject it prints is what an approversList names.`

func (a *app) keysAdd(t *target) *cobra.Command {
	var k client.NewKey
	cmd := &cobra.Command{Use: "add", Short: "Make an API key", Long: keysAddAbout, Args: noArgs}
	fs := cmd.Flags()
	fs.StringVar(&k.Name, "name", "", "what you call it")
	fs.StringSliceVar(&k.Scopes, "scopes", []string{"*"}, "what it may do; * stands for everything you may")
	fs.StringSliceVar(&k.Groups, "groups", nil, "groups its holder is in")
	fs.StringSliceVar(&k.Roles, "roles", nil, "roles its holder has")
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		made, err := c.CreateKey(cmd.Context(), k)
		if err != nil {
			return err
		}
		if *asJSON {
			return a.value(made.Raw)
		}
		a.say("API key    %s", plain(made.Key))
		a.say("           It is shown this once: keep it.")
		a.say("subject    %s", plain(made.SubjectID))
		for _, l := range []struct {
			name string
			list []string
		}{{"scopes", made.Scopes}, {"groups", made.Groups}, {"roles", made.Roles}} {
			if len(l.list) > 0 {
				a.say("%-10s %s", l.name, plain(strings.Join(l.list, ", ")))
			}
		}
		return nil
	}
	return cmd
}

func (a *app) keysRotateTokens(t *target) *cobra.Command {
	cmd := &cobra.Command{
		Use: "rotate-tokens", Short: "Sign interrupt tokens with a new key from now on", Args: noArgs,
		Long: "Makes a new key for interrupt tokens. Tokens given out before stay good until they expire.",
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		kid, err := c.RotateTokenKey(cmd.Context())
		if err != nil {
			return err
		}
		if *asJSON {
			return a.value(map[string]any{"kid": kid})
		}
		a.say("Tokens are signed with %s from now on.", plain(kid))
		return nil
	}
	return cmd
}
