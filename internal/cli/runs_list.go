package cli

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/fermata-run/fermata/client"
	"github.com/spf13/cobra"
)

func (a *app) runsList(t *target) *cobra.Command {
	var o client.ListRunsOptions
	var status string
	var all bool
	cmd := &cobra.Command{Use: "list", Short: "List runs, newest first", Args: noArgs}
	cmd.Flags().StringVar(&status, "status", "", "only runs in this status, such as running, waiting-approval or failed")
	cmd.Flags().StringVar(&o.WorkflowID, "workflow", "", "only runs of this workflow")
	cmd.Flags().IntVar(&o.Limit, "limit", 20, "how many to show")
	cmd.Flags().BoolVar(&all, "all", false, "show all of them")
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if o.Limit < 1 {
			return usage("--limit must be at least 1")
		}
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		o.Status = client.Status(status)
		want := o.Limit
		if all {
			want, o.Limit = 1<<31-1, 0
		}
		runs, raws, err := fetchRuns(cmd.Context(), c, &o, want, all)
		if err != nil {
			return err
		}
		if *asJSON {
			return a.joined("runs", raws, o.Cursor)
		}
		a.printRuns(runs, o.Cursor != "")
		return nil
	}
	return cmd
}

// fetchRuns reads pages until there are enough runs. It leaves the cursor of what
// follows in o.
func fetchRuns(ctx context.Context, c *client.Client, o *client.ListRunsOptions, want int, all bool) (runs []client.Run, raws []json.RawMessage, err error) {
	for {
		page, err := c.ListRuns(ctx, *o)
		if err != nil {
			return nil, nil, err
		}
		runs, raws = append(runs, page.Runs...), append(raws, page.Raw)
		// The host may hold pages smaller than what was asked for.
		if o.Cursor = page.NextCursor; o.Cursor == "" || len(runs) >= want {
			return runs, raws, nil
		}
		if !all {
			o.Limit = want - len(runs)
		}
	}
}

func (a *app) printRuns(runs []client.Run, more bool) {
	if len(runs) == 0 {
		a.say("There are no such runs.")
		return
	}
	t := newTable("RUN", "WORKFLOW", "STATUS", "STARTED", "TOOK", "TAGS")
	for _, r := range runs {
		took := "-"
		if !r.CompletedAt.IsZero() && !r.StartedAt.IsZero() {
			took = span(r.CompletedAt.Sub(r.StartedAt))
		} else if !r.StartedAt.IsZero() {
			took = span(time.Since(r.StartedAt)) + "…"
		}
		t.add(r.RunID, r.WorkflowID, string(r.Status), stamp(r.StartedAt), took, strings.Join(r.Tags, ","))
	}
	t.print(a.env.Stdout)
	if more {
		a.note("There are more; --all shows them.")
	}
}
