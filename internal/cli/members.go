package cli

import (
	"encoding/json"
	"strings"

	"github.com/fermata-run/fermata/client"
	"github.com/spf13/cobra"
)

// membersCommand holds the commands on who belongs to a tenant.
func (a *app) membersCommand() *cobra.Command {
	var t target
	g := group("members", "Say who belongs to your tenant, and with which roles", a.membersAdd(&t), a.membersList(&t), a.membersRemove(&t))
	t.bind(g)
	return g
}

func (a *app) membersAdd(t *target) *cobra.Command {
	var m client.PutMember
	cmd := &cobra.Command{
		Use: "add SUBJECT", Short: "Make a party a member, or say anew what it belongs to", Args: exactly("a subject"),
		Long: "Says which groups and roles a party has in your tenant: the holder of an API key by the key's id, or somebody\n" +
			"an issuer of tokens vouches for, by --issuer. It replaces what was said before.\n\n" +
			"  fermata members add key-1f… --roles editor\n" +
			"  fermata members add 248289761001 --issuer https://idp.example --roles approver --groups finance",
	}
	fs := cmd.Flags()
	fs.StringVar(&m.Issuer, "issuer", "", "who vouches for the subject (default: this host's API keys)")
	fs.StringVar(&m.Name, "name", "", "what you call it")
	fs.StringVar(&m.Workspace, "workspace", "", "the only workspace it acts in")
	fs.StringSliceVar(&m.Groups, "groups", nil, "groups it is in")
	fs.StringSliceVar(&m.Roles, "roles", nil, "roles it has; see `fermata roles list`")
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		m.SubjectID = args[0]
		out, err := c.PutMember(cmd.Context(), m)
		if err != nil {
			return err
		}
		if *asJSON {
			return a.value(out.Raw)
		}
		a.say("member     %s", plain(out.MemberID))
		for _, l := range []struct {
			name string
			list []string
		}{{"roles", out.Roles}, {"groups", out.Groups}, {"scopes", out.Scopes}} {
			if len(l.list) > 0 {
				a.say("%-10s %s", l.name, plain(strings.Join(l.list, ", ")))
			}
		}
		return nil
	}
	return cmd
}

func (a *app) membersList(t *target) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the members of your tenant", Args: noArgs}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		tab := newTable("MEMBER", "SUBJECT", "ISSUER", "ROLES", "GROUPS", "WORKSPACE", "NAME")
		var raws []json.RawMessage
		for o := (client.PageOptions{}); ; {
			page, err := c.ListMembers(cmd.Context(), o)
			if err != nil {
				return err
			}
			for _, m := range page.Members {
				tab.add(m.MemberID, m.SubjectID, m.Issuer, strings.Join(m.Roles, " "), strings.Join(m.Groups, " "), m.Workspace, m.Name)
			}
			raws = append(raws, page.Raw)
			if o.Cursor = page.NextCursor; o.Cursor == "" {
				break
			}
		}
		if *asJSON {
			return a.joined("members", raws, "")
		}
		tab.print(a.env.Stdout)
		return nil
	}
	return cmd
}

func (a *app) membersRemove(t *target) *cobra.Command {
	return a.removal(t, "MEMBER", "End a membership, from the next request on", "a member's id", (*client.Client).RemoveMember)
}
