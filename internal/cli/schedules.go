package cli

import (
	"cmp"
	"encoding/json"

	"github.com/fermata-run/fermata/client"
	"github.com/spf13/cobra"
)

// schedulesCommand holds the commands on schedules. They are made and removed with the
// workflows whose triggers they are.
func (a *app) schedulesCommand() *cobra.Command {
	var t target
	g := group("schedules", "See which workflows start by time", a.schedulesList(&t))
	t.bind(g)
	return g
}

func (a *app) schedulesList(t *target) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List schedules with their next and last tick", Args: noArgs}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		var all []client.Schedule
		var raws []json.RawMessage
		for cursor := ""; ; {
			page, err := c.ListSchedules(cmd.Context(), client.PageOptions{Cursor: cursor})
			if err != nil {
				return err
			}
			all, raws = append(all, page.Schedules...), append(raws, page.Raw)
			if cursor = page.NextCursor; cursor == "" {
				break
			}
		}
		if *asJSON {
			return a.joined("schedules", raws, "")
		}
		if len(all) == 0 {
			a.say("There are no schedules. They are triggers of workflows: see docs/schedules.md.")
			return nil
		}
		tab := newTable("WORKFLOW", "TRIGGER", "WHEN", "ZONE", "NEXT", "LAST", "LAST RUN")
		for _, s := range all {
			tab.add(s.WorkflowID, s.TriggerID, cmp.Or(s.Cron, "every "+s.Every), cmp.Or(s.Timezone, "-"),
				stamp(s.NextTick), stamp(s.LastTick), cmp.Or(s.LastRunID, "-"))
		}
		tab.print(a.env.Stdout)
		return nil
	}
	return cmd
}
