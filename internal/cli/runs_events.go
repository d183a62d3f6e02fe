package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/fermata-run/fermata/client"
	"github.com/spf13/cobra"
)

func (a *app) runsEvents(t *target) *cobra.Command {
	var follow bool
	var mode string
	var after int64
	cmd := &cobra.Command{
		Use: "events RUN", Short: "Show a run's events", Args: exactly("a run id"),
		Long: "Shows a run's events so far, or follows them until the run is over. A lost connection is made anew,\nand no event is shown twice or left out.",
	}
	cmd.Flags().BoolVar(&follow, "follow", false, "wait for more until the run is over")
	cmd.Flags().StringVar(&mode, "mode", "debug", "with --follow, what to show: values, updates, messages, debug, or several of the last three")
	cmd.Flags().Int64Var(&after, "after", -1, "only events behind this sequence")
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("mode") && !follow {
			return usage("--mode goes with --follow")
		}
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		id := runID(args[0])
		show := a.printEvent
		if *asJSON {
			show = func(ev *client.Event) { fmt.Fprintf(a.env.Stdout, "%s\n", ev.Raw) }
		}
		if !follow {
			return pollAll(cmd.Context(), c, id, after, show)
		}
		for ev, err := range c.Stream(cmd.Context(), id, client.StreamOptions{Mode: mode, After: &after}) {
			if err != nil {
				return err
			}
			show(&ev)
		}
		return nil
	}
	return cmd
}

// pollAll shows what there is, page after page.
func pollAll(ctx context.Context, c *client.Client, id string, after int64, show func(*client.Event)) error {
	for {
		page, err := c.Poll(ctx, id, client.PollOptions{After: &after, Wait: time.Second})
		if err != nil {
			return err
		}
		for i := range page.Events {
			show(&page.Events[i])
			after = page.Events[i].Sequence
		}
		if len(page.Events) == 0 || after >= page.LastSequence {
			return nil
		}
	}
}

// printEvent shows an event as one line for a person.
func (a *app) printEvent(ev *client.Event) {
	seq, at := fmt.Sprint(ev.Sequence), "-"
	if ev.Sequence < 0 {
		seq = "-"
	}
	if !ev.Time.IsZero() {
		at = ev.Time.Local().Format("15:04:05.000")
	}
	line := fmt.Sprintf("%5s  %-12s  %-22s  %-20s", seq, at, plain(ev.Type), plain(dash(ev.NodeID)))
	a.say("%s  %s", line, short(plain(gist(ev)), 120))
}

// gist is what matters most in a payload.
func gist(ev *client.Event) string {
	var d details
	if ev.Decode(&d) != nil {
		return string(ev.Payload)
	}
	switch {
	case d.Error != nil:
		return reasonOf(d.Error)
	case ev.Type == "interrupt.requested":
		return questionOf(ev.Payload)
	case d.Message != "":
		return d.Message
	case d.Chunk != "":
		return d.Chunk
	case d.ChildRunID != "":
		return d.ChildWorkflowID + " as " + d.ChildRunID
	case d.Action != "":
		return d.Action
	case d.Reason != "":
		return d.Reason
	}
	return string(ev.Payload)
}
