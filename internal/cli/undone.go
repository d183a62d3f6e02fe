package cli

import (
	"context"
	"time"

	"github.com/fermata-run/fermata/client"
)

// awaitUndone waits until nothing of the runs of a local host is being undone any
// more: the host goes when this command ends, and an undoing must not be cut off. It
// gives up when somebody stops the command, or an undoing waits for an approval.
func (a *app) awaitUndone(ctx context.Context, l *local, root string) error {
	told := false
	for ctx.Err() == nil {
		run, err := busyUndoing(ctx, l.client)
		if err != nil || run == "" {
			break
		}
		if !told {
			a.note("The run is being undone …")
			told = true
		}
		inbox, err := l.client.ListInterrupts(ctx, client.PageOptions{})
		if err != nil {
			return err
		}
		for _, i := range inbox.Interrupts {
			if i.RunID == run {
				a.note("What undoes %s waits for an approval.", plain(i.NodeID))
				return a.tellUndone(ctx, l, root)
			}
		}
		page, err := l.client.Poll(ctx, run, client.PollOptions{Wait: time.Second})
		if err == nil {
			_, err = l.client.Poll(ctx, run, client.PollOptions{After: &page.LastSequence, Wait: time.Second})
		}
		if err != nil {
			break
		}
	}
	return a.tellUndone(context.WithoutCancel(ctx), l, root)
}

// busyUndoing finds a run that is being undone.
func busyUndoing(ctx context.Context, c *client.Client) (string, error) {
	for o := (client.ListRunsOptions{}); ; {
		page, err := c.ListRuns(ctx, o)
		if err != nil {
			return "", err
		}
		for _, r := range page.Runs {
			if r.CompensationStatus.Active() {
				return r.RunID, nil
			}
		}
		if o.Cursor = page.NextCursor; o.Cursor == "" {
			return "", nil
		}
	}
}

func (a *app) tellUndone(ctx context.Context, l *local, root string) error {
	k, err := l.client.GetRunCompensation(ctx, root)
	if err != nil || k.Status == client.CompensationNone {
		return err
	}
	a.note("undone: %s", plain(string(k.Status)))
	for _, x := range k.Attempts {
		if x.Outcome != "succeeded" {
			a.note("  %s: %s %s", plain(x.NodeID), plain(x.Outcome), plain(x.Reason))
		}
	}
	return nil
}
