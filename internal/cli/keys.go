package cli

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/fermata-run/fermata/client"
	"github.com/fermata-run/fermata/internal/config"
	"github.com/spf13/cobra"
)

// keysCommand holds the commands on API keys and on the keys of tokens.
func (a *app) keysCommand() *cobra.Command {
	var t target
	g := group("keys", "Make, list, replace and revoke API keys", a.keysAdd(&t), a.keysList(&t), a.keysRotate(&t), a.keysRevoke(&t),
		a.keysRotateTokens(&t))
	t.bind(g)
	g.AddCommand(a.keysRecover()) // at rest: it needs no host, and no profile of one
	return g
}

const keysAddAbout = `Makes an API key in your tenant and shows it once. It can carry no scope that yours does not.
Groups and roles say what its holder belongs to: an approval that names a group or role can then be
answered with it. Scopes beyond --scopes come by ` + "`fermata members add`" + `.

  fermata keys add --name ann --scopes approvals:respond,runs:read --groups finance --roles lead

The subject it prints is what an approversList names.`

func (a *app) keysAdd(t *target) *cobra.Command {
	var k client.NewKey
	var life string
	cmd := &cobra.Command{Use: "add", Short: "Make an API key", Long: keysAddAbout, Args: noArgs}
	fs := cmd.Flags()
	fs.StringVar(&k.Name, "name", "", "what you call it")
	fs.StringSliceVar(&k.Scopes, "scopes", []string{"*"}, "what it may do; * stands for everything in your tenant")
	fs.StringSliceVar(&k.Groups, "groups", nil, "groups its holder is in")
	fs.StringSliceVar(&k.Roles, "roles", nil, "roles its holder has")
	fs.StringVar(&k.Kind, "kind", "", "who holds it: user, agent or workload")
	fs.StringVar(&k.Workspace, "workspace", "", "the only workspace it acts in")
	fs.StringVar(&life, "expires-in", "", "for how long it is good, such as 90d; for ever if not given")
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if life != "" {
			d, err := config.Duration(life)
			if err != nil || d < time.Second {
				return usage("--expires-in: %q is no duration of a second or more, such as 90d or 12h", life)
			}
			k.ExpiresInSeconds = int64(d / time.Second)
		}
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		made, err := c.CreateKey(cmd.Context(), k)
		if err != nil {
			return err
		}
		return a.showKey(made, *asJSON)
	}
	return cmd
}

// showKey shows a key, this once.
func (a *app) showKey(made *client.IssuedKey, asJSON bool) error {
	if asJSON {
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
	for _, l := range []struct {
		name  string
		value string
	}{{"workspace", made.Workspace}, {"expires", stampOr(made.ExpiresAt)}, {"old key", until(made.PreviousKeyExpiresAt)}} {
		if l.value != "" {
			a.say("%-10s %s", l.name, plain(l.value))
		}
	}
	return nil
}

func stampOr(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return stamp(t)
}

func until(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return "opens until " + stamp(t)
}

func (a *app) keysList(t *target) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List the keys of your tenant", Args: noArgs,
		Long: "Lists the keys of your tenant, revoked ones too. The keys themselves nobody can show.",
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		var all []client.KeyInfo
		var raws []json.RawMessage
		for o := (client.PageOptions{}); ; {
			page, err := c.ListKeys(cmd.Context(), o)
			if err != nil {
				return err
			}
			all, raws = append(all, page.Keys...), append(raws, page.Raw)
			if o.Cursor = page.NextCursor; o.Cursor == "" {
				break
			}
		}
		if *asJSON {
			return a.joined("keys", raws, "")
		}
		tab := newTable("KEY", "NAME", "KIND", "STATE", "LAST USED", "EXPIRES", "SCOPES")
		for _, k := range all {
			tab.add(k.KeyID, k.Name, k.Kind, k.State, stampOr(k.LastUsedAt), stampOr(k.ExpiresAt), strings.Join(k.Scopes, " "))
		}
		tab.print(a.env.Stdout)
		return nil
	}
	return cmd
}

func (a *app) keysRotate(t *target) *cobra.Command {
	var overlap string
	cmd := &cobra.Command{
		Use: "rotate KEY", Short: "Replace an API key", Args: exactly("a key's id"),
		Long: "Makes a new key for the same holder, with the same rights, and shows it once. The old one opens for a while\n" +
			"longer (--overlap), so that whoever uses it can change over.",
	}
	cmd.Flags().StringVar(&overlap, "overlap", "24h", "for how long the old key opens, at most 30d; 0s ends it at once")
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		d, err := config.Duration(overlap)
		if err != nil {
			return usage("--overlap: %q %w", overlap, err)
		}
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		made, err := c.RotateKey(cmd.Context(), args[0], d)
		if err != nil {
			return err
		}
		return a.showKey(made, *asJSON)
	}
	return cmd
}

func (a *app) keysRevoke(t *target) *cobra.Command {
	cmd := &cobra.Command{Use: "revoke KEY", Short: "End an API key, from the next request on", Args: exactly("a key's id")}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		k, err := c.RevokeKey(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if *asJSON {
			return a.value(map[string]any{"keyId": k.KeyID, "state": k.State})
		}
		a.say("%s is %s.", plain(k.KeyID), plain(k.State))
		return nil
	}
	return cmd
}

func (a *app) keysRotateTokens(t *target) *cobra.Command {
	cmd := &cobra.Command{
		Use: "rotate-tokens", Short: "Sign interrupt tokens with a new key from now on", Args: noArgs,
		Long: "Makes a new key for the interrupt tokens of the whole host, which takes its administrator. Tokens given out\n" +
			"before stay good until they expire.",
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
