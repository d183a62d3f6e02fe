package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/fermata-run/fermata/client"
	"github.com/spf13/cobra"
)

func (a *app) runsShow(t *target) *cobra.Command {
	cmd := &cobra.Command{Use: "show RUN", Short: "Show where a run stands", Args: exactly("a run id")}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		r, err := c.GetRun(cmd.Context(), runID(args[0]))
		if err != nil {
			return err
		}
		if *asJSON {
			return a.document(r.Raw)
		}
		a.printRun(r)
		if r.Status == client.Completed {
			return a.printOutputs(cmd.Context(), c, r.RunID)
		}
		return nil
	}
	return cmd
}

// printOutputs prints what a run has come to, masked as its last event is.
func (a *app) printOutputs(ctx context.Context, c *client.Client, id string) error {
	after := int64(beyondLog)
	end, err := c.Poll(ctx, id, client.PollOptions{After: &after})
	if err != nil {
		return err
	}
	// Little follows the event with the outputs, if anything does.
	after = end.LastSequence - 50
	page, err := c.Poll(ctx, id, client.PollOptions{After: &after})
	if err != nil {
		return err
	}
	for _, ev := range page.Events {
		var p struct {
			Outputs json.RawMessage `json:"outputs"`
		}
		if ev.Type == "run.completed" && ev.Decode(&p) == nil {
			a.printValues("outputs", p.Outputs)
		}
	}
	return nil
}

// beyondLog is a cursor behind every event: the answer names the last one.
const beyondLog = 1 << 52

// nodeState is one entry of a snapshot's nodeStates.
type nodeState struct {
	Status    string    `json:"status"`
	Visit     int       `json:"visit"`
	Attempt   int       `json:"attempt"`
	StartedAt time.Time `json:"startedAt"`
	EndedAt   time.Time `json:"endedAt"`
	WakesAt   time.Time `json:"wakesAt"`
	Error     *client.RunError
	Interrupt *struct {
		Kind      string          `json:"kind"`
		Data      json.RawMessage `json:"data"`
		ExpiresAt time.Time       `json:"expiresAt"`
	} `json:"interrupt"`
	Children []struct {
		RunID  string `json:"runId"`
		Status string `json:"status"`
	} `json:"children"`
}

func (a *app) printRun(r *client.Run) {
	line := func(name, value string) {
		if value != "" {
			a.say("%-10s %s", name, plain(value))
		}
	}
	line("run", r.RunID)
	line("workflow", r.WorkflowID)
	line("status", string(r.Status))
	line("started", stamp(r.StartedAt))
	if !r.CompletedAt.IsZero() {
		line("ended", stamp(r.CompletedAt)+" ("+span(r.CompletedAt.Sub(r.StartedAt))+")")
	}
	if r.CompensationStatus != "" && r.CompensationStatus != client.CompensationNone {
		line("undone", string(r.CompensationStatus))
	}
	line("tags", strings.Join(r.Tags, ", "))
	if r.Error != nil {
		line("error", r.Error.Error())
	}
	a.printNodes(r.NodeStates)
	a.printValues("variables", r.Variables)
	a.printValues("channels", r.Channels)
}

func (a *app) printNodes(raw json.RawMessage) {
	var states map[string]nodeState
	if json.Unmarshal(raw, &states) != nil || len(states) == 0 {
		return
	}
	ids := make([]string, 0, len(states))
	for id := range states {
		ids = append(ids, id)
	}
	sort.Slice(ids, func(i, j int) bool {
		x, y := states[ids[i]], states[ids[j]]
		for _, pair := range [][2]time.Time{{x.StartedAt, y.StartedAt}, {x.EndedAt, y.EndedAt}} {
			if !pair[0].Equal(pair[1]) {
				return sooner(pair[0], pair[1])
			}
		}
		return ids[i] < ids[j]
	})
	t := newTable("NODE", "STATUS", "TOOK", "NOTE")
	for _, id := range ids {
		n := states[id]
		took := "-"
		if !n.StartedAt.IsZero() && !n.EndedAt.IsZero() {
			took = span(n.EndedAt.Sub(n.StartedAt))
		}
		t.add(id, n.Status, took, n.note())
	}
	a.say("")
	t.print(a.env.Stdout)
}

// sooner puts what has not happened last.
func sooner(x, y time.Time) bool {
	if x.IsZero() || y.IsZero() {
		return y.IsZero()
	}
	return x.Before(y)
}

// note says in a few words what is particular about a node.
func (n *nodeState) note() string {
	var parts []string
	if n.Visit > 1 {
		parts = append(parts, fmt.Sprintf("visit %d", n.Visit))
	}
	if n.Error != nil {
		parts = append(parts, n.Error.Error())
	}
	if i := n.Interrupt; i != nil {
		s := "waits: " + titleOf(client.Request{Kind: i.Kind, Data: i.Data})
		if !i.ExpiresAt.IsZero() {
			s += ", until " + stamp(i.ExpiresAt)
		}
		parts = append(parts, s)
	}
	if !n.WakesAt.IsZero() {
		parts = append(parts, "wakes at "+stamp(n.WakesAt))
	}
	switch c := n.Children; {
	case len(c) == 1:
		parts = append(parts, "run "+c[0].RunID+" is "+c[0].Status)
	case len(c) > 1:
		parts = append(parts, plural(len(c), "child run"))
	}
	return strings.Join(parts, "; ")
}

func (a *app) printValues(title string, raw json.RawMessage) {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil || len(m) == 0 {
		return
	}
	if b, err := indent(raw); err == nil {
		a.say("\n%s", title)
		fmt.Fprint(a.env.Stdout, string(maskControls(b))+"\n")
	}
}
