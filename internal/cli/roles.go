package cli

import (
	"context"
	"strings"

	"github.com/fermata-run/fermata/client"
	"github.com/spf13/cobra"
)

// rolesCommand holds the commands on the roles of a tenant.
func (a *app) rolesCommand() *cobra.Command {
	var t target
	g := group("roles", "List the roles members can have, and make your own", a.rolesAdd(&t), a.rolesList(&t),
		a.removal(&t, "ROLE", "Remove a role of your tenant", "a role", (*client.Client).RemoveRole))
	t.bind(g)
	return g
}

func (a *app) rolesAdd(t *target) *cobra.Command {
	var scopes []string
	cmd := &cobra.Command{
		Use: "add ROLE", Short: "Make a role of your tenant, or give it other scopes", Args: exactly("a role"),
		Long: "Makes a role, or gives one other scopes, for everybody who has it. It can carry no scope that you do not hold.",
	}
	cmd.Flags().StringSliceVar(&scopes, "scopes", nil, "what members with it may do; a * stands for any one part, or the rest")
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		out, err := c.PutRole(cmd.Context(), args[0], scopes)
		if err != nil {
			return err
		}
		if *asJSON {
			return a.value(out.Raw)
		}
		a.say("role       %s", plain(out.Role))
		a.say("scopes     %s", plain(strings.Join(out.Scopes, ", ")))
		return nil
	}
	return cmd
}

func (a *app) rolesList(t *target) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the roles and what they may do", Args: noArgs}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		roles, raw, err := c.ListRoles(cmd.Context())
		if err != nil {
			return err
		}
		if *asJSON {
			return a.value(raw)
		}
		tab := newTable("ROLE", "OF", "SCOPES")
		for _, r := range roles {
			of := "the tenant"
			if r.BuiltIn {
				of = "every tenant"
			}
			tab.add(r.Role, of, strings.Join(r.Scopes, " "))
		}
		tab.print(a.env.Stdout)
		return nil
	}
	return cmd
}

// removal is a command that removes what its argument names.
func (a *app) removal(t *target, arg, short, what string, do func(*client.Client, context.Context, string) error) *cobra.Command {
	cmd := &cobra.Command{Use: "remove " + arg, Short: short, Args: exactly(what)}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		if err := do(c, cmd.Context(), args[0]); err != nil {
			return err
		}
		if *asJSON {
			return a.value(map[string]any{strings.ToLower(arg): args[0], "removed": true})
		}
		a.say("%s is removed.", plain(args[0]))
		return nil
	}
	return cmd
}
