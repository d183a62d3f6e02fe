package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fermata-run/fermata/client"
)

// state is what a node is doing, as a person sees it.
type state string

const (
	working   state = "running"
	retrying  state = "retrying"
	waiting   state = "waiting"
	done      state = "completed"
	broken    state = "failed"
	skipped   state = "skipped"
	cancelled state = "cancelled"
)

func (s state) over() bool {
	return s == done || s == broken || s == skipped || s == cancelled
}

// row is one node of a run on the board.
type row struct {
	run, node string
	label     string
	depth     int
	state     state
	visits    int
	started   time.Time
	ended     time.Time
	note      string
}

// board is what is known of a run and its child runs from their events. It
// knows no terminal.
type board struct {
	rows  []*row
	byKey map[string]*row
	runs  map[string]*branch
}

// branch is one run on the board.
type branch struct {
	parent *row // that started it; nil for the run itself
	depth  int
	names  map[string]string // of nodes, by id
}

func newBoard(runID string, names map[string]string) *board {
	return &board{byKey: map[string]*row{}, runs: map[string]*branch{runID: {names: names}}}
}

func rowKey(run, node string) string { return run + "\x00" + node }

// row finds a node's row, or makes one behind the rows of its run.
func (b *board) row(run, node string) *row {
	if r := b.byKey[rowKey(run, node)]; r != nil {
		return r
	}
	br := b.runs[run]
	if br == nil {
		br = &branch{}
		b.runs[run] = br
	}
	r := &row{run: run, node: node, label: br.names[node], depth: br.depth}
	if r.label == "" {
		r.label = node
	}
	b.byKey[rowKey(run, node)] = r
	b.rows = slices.Insert(b.rows, b.behind(br), r)
	return r
}

// behind is where the next row of a branch goes: after the node that started
// the branch and everything below it.
func (b *board) behind(br *branch) int {
	if br.parent == nil {
		return len(b.rows)
	}
	i := slices.Index(b.rows, br.parent) + 1
	for i < len(b.rows) && b.rows[i].depth > br.parent.depth {
		i++
	}
	return i
}

// details are the members of payloads that the board shows.
type details struct {
	Attempt         int              `json:"attempt"`
	DelayMs         int64            `json:"delayMs"`
	Error           *client.RunError `json:"error"`
	LastError       *client.RunError `json:"lastError"`
	Reason          string           `json:"reason"`
	Action          string           `json:"action"`
	Chunk           string           `json:"chunk"`
	ChildRunID      string           `json:"childRunId"`
	ChildWorkflowID string           `json:"childWorkflowId"`
	Level           string           `json:"level"`
	Message         string           `json:"message"`
	Mark            json.RawMessage  `json:"x-fermata"`
}

// apply takes an event in. It returns the row that changed, or nil.
func (b *board) apply(run string, ev *client.Event) *row {
	var d details
	_ = ev.Decode(&d) // what is not there stays empty
	if ev.NodeID == "" {
		return nil
	}
	switch ev.Type {
	case "node.started":
		r := b.row(run, ev.NodeID)
		if d.Attempt == 0 {
			r.visits++
			r.started = ev.Time
		}
		r.state, r.ended, r.note = working, time.Time{}, ""
		if d.Attempt > 0 {
			r.note = fmt.Sprintf("attempt %d", d.Attempt+1)
		}
		return r
	case "node.completed":
		return b.end(run, ev, done, "")
	case "node.failed":
		return b.end(run, ev, broken, reasonOf(d.Error))
	case "node.skipped":
		return b.end(run, ev, skipped, d.Reason)
	case "node.cancelled":
		return b.end(run, ev, cancelled, d.Reason)
	}
	return b.middle(run, ev, &d)
}

// middle takes in what happens between a node's start and its end.
func (b *board) middle(run string, ev *client.Event, d *details) *row {
	set := func(s state, note string) *row {
		r := b.row(run, ev.NodeID)
		r.state, r.note = s, note
		return r
	}
	switch ev.Type {
	case "node.retried":
		return set(retrying, strings.TrimSuffix(fmt.Sprintf("again in %s: %s", span(time.Duration(d.DelayMs)*time.Millisecond), reasonOf(d.LastError)), ": "))
	case "interrupt.requested":
		return set(waiting, questionOf(ev.Payload))
	case "node.resumed":
		return set(working, "")
	case "node.dispatched":
		r := set(working, "runs "+d.ChildWorkflowID)
		if d.ChildRunID != "" && b.runs[d.ChildRunID] == nil {
			b.runs[d.ChildRunID] = &branch{parent: r, depth: r.depth + 1}
		}
		return r
	case "output.chunk":
		r := b.row(run, ev.NodeID)
		r.note = tail(r.note+d.Chunk, 200)
		return r
	}
	return nil
}

func (b *board) end(run string, ev *client.Event, s state, note string) *row {
	r := b.row(run, ev.NodeID)
	r.state, r.ended, r.note = s, ev.Time, note
	return r
}

// reasonOf writes an error for a person; empty for none.
func reasonOf(e *client.RunError) string {
	if e == nil {
		return ""
	}
	return e.Message + " (" + e.Code + ")"
}

// questionOf says in a few words what an interrupt waits for.
func questionOf(payload json.RawMessage) string {
	var r client.Request
	if json.Unmarshal(payload, &r) != nil {
		return "waits"
	}
	if t := titleOf(r); t != "" {
		return t
	}
	return "waits for " + r.Kind
}

// took is how long a row's node has been at it.
func (r *row) took(now time.Time) time.Duration {
	switch {
	case r.started.IsZero():
		return 0
	case !r.ended.IsZero():
		return r.ended.Sub(r.started)
	}
	return now.Sub(r.started)
}

// title is the row's label with what tells repeats apart.
func (r *row) title() string {
	if r.visits > 1 {
		return fmt.Sprintf("%s ×%d", plain(r.label), r.visits)
	}
	return plain(r.label)
}

// tail keeps the end of a text.
func tail(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[len(r)-n:])
}
