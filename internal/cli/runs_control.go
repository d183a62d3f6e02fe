package cli

import (
	"context"
	"encoding/json"

	"github.com/fermata-run/fermata/client"
	"github.com/spf13/cobra"
)

func (a *app) runsPause(t *target) *cobra.Command {
	var reason string
	var immediate bool
	cmd := &cobra.Command{
		Use: "pause RUN", Short: "Let a run stand still", Args: exactly("a run id"),
		Long: "Lets a run stand still once the node at work is done. With --immediate that node is interrupted,\nand starts again when the run is resumed.",
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the run's log")
	cmd.Flags().BoolVar(&immediate, "immediate", false, "interrupt the node at work")
	a.control(cmd, t, func(ctx context.Context, c *client.Client, id string) (*client.RunStatus, error) {
		policy := client.Drain
		if immediate {
			policy = client.Immediate
		}
		return c.PauseRun(ctx, id, reason, policy)
	})
	return cmd
}

func (a *app) runsResume(t *target) *cobra.Command {
	var reason string
	cmd := &cobra.Command{Use: "resume RUN", Short: "Let a paused run go on", Args: exactly("a run id")}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the run's log")
	a.control(cmd, t, func(ctx context.Context, c *client.Client, id string) (*client.RunStatus, error) {
		return c.ResumeRun(ctx, id, reason)
	})
	return cmd
}

// control gives a command on one run its body.
func (a *app) control(cmd *cobra.Command, t *target, do func(context.Context, *client.Client, string) (*client.RunStatus, error)) {
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		st, err := do(cmd.Context(), c, runID(args[0]))
		if err != nil {
			return err
		}
		return a.printStatus(st, *asJSON)
	}
}

func (a *app) printStatus(st *client.RunStatus, asJSON bool) error {
	if asJSON {
		return a.document(st.Raw)
	}
	a.say("%s  %s", plain(st.RunID), plain(string(st.Status)))
	return nil
}

// maxBulk is how many runs are cancelled by one request.
const maxBulk = 100

func (a *app) runsCancel(t *target) *cobra.Command {
	var reason string
	cmd := &cobra.Command{Use: "cancel RUN...", Short: "End runs", Args: some("a run id")}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the run's log")
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		for i := range args {
			args[i] = runID(args[i])
		}
		if len(args) == 1 {
			st, err := c.CancelRun(cmd.Context(), args[0], reason)
			if err != nil {
				return err
			}
			return a.printStatus(st, *asJSON)
		}
		return a.cancelMany(cmd.Context(), c, args, reason, *asJSON)
	}
	return cmd
}

func (a *app) cancelMany(ctx context.Context, c *client.Client, ids []string, reason string, asJSON bool) error {
	var raws []json.RawMessage
	failed := 0
	for len(ids) > 0 {
		n := min(len(ids), maxBulk)
		out, err := c.BulkCancelRuns(ctx, ids[:n], reason)
		if err != nil {
			return err
		}
		ids, raws = ids[n:], append(raws, out.Raw)
		for _, r := range out.Results {
			status := string(r.Status)
			if !r.OK {
				failed++
				if status = "failed"; r.Err != nil {
					status = r.Err.Error()
				}
			}
			if !asJSON {
				a.say("%s  %s", plain(r.RunID), plain(status))
			}
		}
	}
	if asJSON {
		if err := a.joined("results", raws, ""); err != nil {
			return err
		}
	}
	if failed > 0 {
		if !asJSON {
			a.note("error: %s not cancelled", plural(failed, "run"))
		}
		return told{ExitFailed}
	}
	return nil
}
