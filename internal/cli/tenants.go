package cli

import (
	"context"
	"encoding/json"

	"github.com/fermata-run/fermata/client"
	"github.com/spf13/cobra"
)

// tenantsCommand holds the commands on tenants, which take an administrator of the
// host.
func (a *app) tenantsCommand() *cobra.Command {
	var t target
	g := group("tenants", "Make tenants and shut them out (as the host's administrator)", a.tenantsAdd(&t), a.tenantsList(&t),
		a.tenantsState(&t, "suspend", "Shut a tenant out and have its runs stand still", (*client.Client).SuspendTenant),
		a.tenantsState(&t, "activate", "Let a suspended tenant in again", (*client.Client).ActivateTenant))
	t.bind(g)
	return g
}

func (a *app) tenantsAdd(t *target) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use: "add TENANT", Short: "Make a tenant, with the first key of its owner", Args: exactly("a tenant's id"),
		Long: "Makes a tenant and shows the first key of its owner, once. The id is part of every id of the tenant's runs and\n" +
			"never changes: lower-case letters, digits and . _ -",
	}
	cmd.Flags().StringVar(&name, "name", "", "what people call it")
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		made, err := c.CreateTenant(cmd.Context(), args[0], name)
		if err != nil {
			return err
		}
		if *asJSON {
			return a.value(made.Raw)
		}
		a.say("tenant     %s", plain(made.TenantID))
		return a.showKey(&made.OwnerKey, false)
	}
	return cmd
}

func (a *app) tenantsList(t *target) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the tenants of the host", Args: noArgs}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		tab := newTable("TENANT", "STATE", "SINCE", "NAME")
		var raws []json.RawMessage
		for o := (client.PageOptions{}); ; {
			page, err := c.ListTenants(cmd.Context(), o)
			if err != nil {
				return err
			}
			for _, x := range page.Tenants {
				state := x.State
				if !x.Settled {
					state += " (settling)"
				}
				tab.add(x.TenantID, state, stamp(x.CreatedAt), x.Name)
			}
			raws = append(raws, page.Raw)
			if o.Cursor = page.NextCursor; o.Cursor == "" {
				break
			}
		}
		if *asJSON {
			return a.joined("tenants", raws, "")
		}
		tab.print(a.env.Stdout)
		return nil
	}
	return cmd
}

func (a *app) tenantsState(t *target, verb, short string, do func(*client.Client, context.Context, string) (*client.Tenant, error)) *cobra.Command {
	cmd := &cobra.Command{Use: verb + " TENANT", Short: short, Args: exactly("a tenant's id")}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		x, err := do(c, cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if *asJSON {
			return a.value(x)
		}
		a.say("%s is %s.", plain(x.TenantID), plain(x.State))
		return nil
	}
	return cmd
}
