package cli

import (
	"encoding/json"

	"github.com/fermata-run/fermata/client"
	"github.com/spf13/cobra"
)

// approvalsCommand holds the commands on what runs wait for.
func (a *app) approvalsCommand() *cobra.Command {
	var t target
	g := group("approvals", "See what runs wait for, and answer it", a.approvalsList(&t), a.approvalsResolve(&t))
	g.Aliases = []string{"interrupts", "inbox"}
	t.bind(g)
	return g
}

func (a *app) approvalsList(t *target) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List what runs wait for, oldest first", Args: noArgs}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		var all []client.Interrupt
		var raws []json.RawMessage
		for o := (client.PageOptions{}); ; {
			page, err := c.ListInterrupts(cmd.Context(), o)
			if err != nil {
				return err
			}
			all, raws = append(all, page.Interrupts...), append(raws, page.Raw)
			if o.Cursor = page.NextCursor; o.Cursor == "" {
				break
			}
		}
		if *asJSON {
			return a.joined("interrupts", raws, "")
		}
		if len(all) == 0 {
			a.say("Nothing waits for an answer.")
			return nil
		}
		tab := newTable("RUN", "NODE", "KIND", "SINCE", "UNTIL", "WHAT")
		for _, i := range all {
			tab.add(i.RunID, i.NodeID, i.Kind, stamp(i.CreatedAt), stamp(i.ExpiresAt), titleOf(i.Request))
		}
		tab.print(a.env.Stdout)
		return nil
	}
	return cmd
}
