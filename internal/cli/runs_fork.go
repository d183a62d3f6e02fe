package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fermata-run/fermata/client"
	"github.com/spf13/cobra"
)

func (a *app) runsFork(t *target) *cobra.Command {
	var mode string
	var from int64
	var tags []string
	var configurable, metadata string
	cmd := &cobra.Command{
		Use: "fork RUN", Short: "Replay a run, or branch off from it", Args: exactly("a run id"),
		Long: "Makes a run that begins with the log of another. A replay executes the rest with the outcomes its\n" +
			"source recorded and has no effects. A branch goes on as a run of its own: from --from on its effects\n" +
			"happen, those among them that the source has made already.",
	}
	cmd.Flags().StringVar(&mode, "mode", "replay", "replay or branch")
	cmd.Flags().Int64Var(&from, "from", 0, "first sequence that is not inherited; a branch needs it")
	cmd.Flags().StringSliceVar(&tags, "tag", nil, "tag of a branch, in place of its source's; repeatable")
	cmd.Flags().StringVar(&configurable, "configurable", "", "options of a branch, as JSON")
	cmd.Flags().StringVar(&metadata, "metadata", "", "metadata of a branch, as JSON")
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r := client.ForkRequest{Mode: client.ForkMode(mode)}
		if cmd.Flags().Changed("from") {
			r.FromSeq = &from
		}
		o := client.ForkOptions{Tags: tags}
		for name, x := range map[string]struct {
			text string
			into *json.RawMessage
		}{"configurable": {configurable, &o.Configurable}, "metadata": {metadata, &o.Metadata}} {
			if x.text == "" {
				continue
			}
			if !json.Valid([]byte(x.text)) {
				return usage("--%s is not JSON", name)
			}
			*x.into = json.RawMessage(x.text)
		}
		if o.Tags != nil || o.Configurable != nil || o.Metadata != nil {
			r.RunOptionsOverlay = &o
		}
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		f, err := c.ForkRun(cmd.Context(), runID(args[0]), r)
		if err != nil {
			return err
		}
		if *asJSON {
			return a.document(f.Raw)
		}
		a.say("%s  %s of %s from %d  %s", plain(f.RunID), plain(string(f.Mode)), plain(f.SourceRunID), f.FromSeq, plain(string(f.Status)))
		return nil
	}
	return cmd
}

func (a *app) runsDiff(t *target) *cobra.Command {
	cmd := &cobra.Command{
		Use: "diff RUN OTHER", Short: "Show how two runs differ, apart from ids and times", Args: exactly("a run id", "another run id"),
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		d, err := c.DiffRuns(cmd.Context(), runID(args[0]), runID(args[1]))
		if err != nil {
			return err
		}
		if *asJSON {
			return a.document(d.Raw)
		}
		return a.printDiff(d)
	}
	return cmd
}

func (a *app) printDiff(d *client.RunDiff) error {
	more := ""
	if d.Truncated {
		more = " (there may be more)"
	}
	if d.DivergedAtSeq == nil {
		a.say("the runs do not differ%s", more)
		return nil
	}
	a.say("the runs differ from sequence %d on%s", *d.DivergedAtSeq, more)
	t := newTable("SEQ", "", "A", "B")
	for _, e := range d.EventDiffs {
		t.add(fmt.Sprint(e.Seq), e.Op, eventBrief(e.A), eventBrief(e.B))
	}
	t.print(a.env.Stdout)
	if len(d.StateDiff) > 2 {
		a.say("state: %s", short(plain(string(d.StateDiff)), 400))
	}
	return nil
}

func eventBrief(e *client.Event) string {
	if e == nil {
		return "-"
	}
	return short(e.Type+" "+e.NodeID+" "+string(e.Payload), 60)
}

func (a *app) runsAncestry(t *target) *cobra.Command {
	cmd := &cobra.Command{
		Use: "ancestry RUN", Short: "Show which runs led to a run", Args: exactly("a run id"),
		Long: "Walks from a run to the run that dispatched it, and so on. A fork was dispatched by nobody.",
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		var chain []json.RawMessage
		for id, cause := runID(args[0]), ""; ; {
			x, err := c.RunAncestry(cmd.Context(), id)
			if err != nil {
				return err
			}
			if chain = append(chain, x.Raw); !*asJSON {
				a.say("%s", strings.TrimSpace(plain(x.RunID)+"  "+plain(cause)))
			}
			if x.Parent == nil || x.Parent.WellKnownURL != "" || len(chain) >= maxAncestry {
				break
			}
			id, cause = x.Parent.RunID, "dispatched by "+x.Parent.Cause
		}
		if *asJSON {
			doc, err := json.Marshal(map[string]any{"ancestry": chain})
			if err != nil {
				return err
			}
			return a.document(doc)
		}
		return nil
	}
	return cmd
}

// maxAncestry bounds a walk towards the top.
const maxAncestry = 100
