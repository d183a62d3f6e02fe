package engine

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/node"
	"github.com/go-json-experiment/json/jsontext"
)

// How much one turn may do before it is made durable and the next one begins.
const (
	turnCalls = 256
	turnBytes = 1 << 20
	turnTime  = 20 * time.Millisecond
)

// checkpointFloor is the least size of log worth a checkpoint.
const checkpointFloor = 64 << 10

// turn is what a batch of commands does to one run, and to the child runs that
// come into being with it, before any of it is durable.
type turn struct {
	e      *Engine
	s      *run.State
	row    store.Run // as it was read
	events []event.Event
	bytes  int

	todo     []run.Execute // calls of pure nodes to make in this turn
	later    []run.Execute // calls of impure nodes to make once durable
	cancels  []run.CancelChild
	aborts   []run.Abort
	children []*turn
	byID     map[string]*turn
	news     []run.ChildNews // of children that began and ended in this turn
	parent   *turn

	guest      bool    // another instance owns the run
	replay     *replay // of a run that is one
	inherited  int     // bytes of the log that are a source's
	staged     bool    // the log begins with what has been staged
	unfinished bool    // a replay has more to say

	ticked  bool      // what is due has had its chance
	actor   *actor    // of a run that comes into being, while it is reserved
	written store.Run // the row as the turn leaves it, once append has been called
	drafts  []*store.Draft
	broken  error // a defect or a store that does not answer: the state is void
}

func newTurn(e *Engine, s *run.State, row store.Run) *turn {
	return &turn{e: e, s: s, row: row}
}

// decide lets one command happen in memory. The error refuses the command and
// leaves the turn as it was.
func (t *turn) decide(c run.Command) error {
	c = t.e.redacted(t.s.ID.Tenant, c)
	if r, ok := c.(run.NodeResult); ok && r.Err == nil && r.Inverse == 0 {
		c = t.vet(r)
	}
	env := t.e.env()
	if t.replay != nil {
		env.Source = t.replay.rec
	}
	d, err := run.Decide(t.s, c, env)
	if err != nil {
		var p *problem.Error
		if !errors.As(err, &p) || p.Code == problem.InternalError {
			t.broken = defect{err}
		}
		return err
	}
	for i := range d.Events {
		t.bytes += len(d.Events[i].Payload)
	}
	t.events = append(t.events, d.Events...)
	for _, x := range d.Effects {
		t.plan(x)
	}
	return nil
}

func (t *turn) plan(x run.Effect) {
	switch x := x.(type) {
	case run.Execute:
		if _, typ, bad := t.e.target(t.s, x); bad != nil || typ.Pure {
			t.todo = append(t.todo, x)
		} else {
			t.later = append(t.later, x)
		}
	case run.StartChild:
		t.startChild(x)
	case run.CancelChild:
		t.cancels = append(t.cancels, x)
	case run.Abort:
		t.aborts = append(t.aborts, x)
		t.later = without(t.later, x)
		t.todo = without(t.todo, x)
	}
}

func without(list []run.Execute, x run.Abort) []run.Execute {
	out := list[:0]
	for _, e := range list {
		if keyOf(e) != (callKey{x.NodeID, x.Visit, x.Attempt, x.Inverse}) {
			out = append(out, e)
		}
	}
	return out
}

// inline makes the calls of pure nodes and decides their results, until none is
// left or the turn has grown large enough.
func (t *turn) inline() {
	begun := time.Now()
	for n := 0; t.broken == nil; n++ {
		for len(t.news) > 0 && t.broken == nil {
			first := t.news[0]
			t.news = t.news[1:]
			if err := t.decide(first); err != nil && t.broken == nil {
				t.broken = err
			}
		}
		if t.broken != nil || n >= turnCalls || t.bytes >= turnBytes || n%16 == 15 && time.Since(begun) > turnTime {
			t.unfinished = t.replay != nil && t.s.Ended == ""
			return
		}
		if t.replay != nil {
			if !t.next() {
				return
			}
			continue
		}
		if len(t.todo) == 0 {
			return
		}
		x := t.todo[0]
		t.todo = t.todo[1:]
		t.make(t.e.life.Load().ctx, x)
	}
}

// make makes a call of a pure node and decides its result.
func (t *turn) make(ctx context.Context, x run.Execute) {
	r, err := t.e.call(ctx, t.s, x, callServices{turn: t})
	if err == nil && (t.replay == nil || !t.replay.hold(t.s, r)) {
		err = t.decide(r)
	}
	if err != nil && t.broken == nil {
		t.broken = err
	}
}

// vet refuses a result the run core cannot judge by itself: children of
// workflows that are not there, interrupts outside their schema.
func (t *turn) vet(r run.NodeResult) run.NodeResult {
	switch r.Result.Kind() {
	case node.Awaiting:
		for _, c := range r.Result.Children() {
			wf, err := t.e.defs.Get(context.Background(), t.s.ID.Tenant, c.WorkflowID, "")
			if errors.Is(err, store.ErrNotFound) {
				r.Err = node.Fail(string(problem.NodeConfigInvalid), "workflow %q is not registered", c.WorkflowID)
				r.Err.Details = map[string]any{"workflowId": c.WorkflowID, "nodeId": r.NodeID}
			} else if isDefect(err) {
				r.Err = node.Fail(string(problem.NodeConfigInvalid), "%v", err)
			} else if err != nil {
				t.broken = err
			} else if name, reason := wf.CheckInputs(jsonOf(c.Inputs)); reason != "" {
				r.Err = node.Fail(string(problem.NodeConfigInvalid), "input %s of workflow %s %s", name, c.WorkflowID, reason)
				r.Err.Details = map[string]any{"field": "inputs." + name, "workflowId": c.WorkflowID, "nodeId": r.NodeID}
			}
		}
	case node.Suspended:
		if check := t.e.cfg.CheckInterrupt; check != nil {
			if err := check(interruptDoc(r.Result.Interrupt())); err != nil {
				r.Err = node.Fail(string(problem.NodeConfigInvalid), "the interrupt is malformed: %v", err)
			}
		}
	}
	return r
}

func jsonOf(m map[string]json.RawMessage) map[string]jsontext.Value {
	out := make(map[string]jsontext.Value, len(m))
	for k, v := range m {
		out[k] = jsontext.Value(v)
	}
	return out
}

func interruptDoc(i *node.Interrupt) []byte {
	ms := i.Timeout.Milliseconds()
	p := event.Interrupt{Kind: i.Kind, Key: i.Key, Data: []byte(i.Data), ResumeSchema: []byte(i.ResumeSchema), TimeoutMs: &ms}
	if p.Key == "" {
		p.Key = "derived"
	}
	if len(p.Data) == 0 {
		p.Data = []byte("null")
	}
	return event.Encode(p)
}

// startChild brings a child run into being within its parent's turn. Both
// become durable together or not at all.
func (t *turn) startChild(x run.StartChild) {
	wf, err := t.e.defs.Get(context.Background(), x.ID.Tenant, x.WorkflowID, "")
	if err != nil {
		t.broken = err // vet has seen it a moment ago
		return
	}
	child := newTurn(t.e, run.New(x.ID, wf).MaskWith(t.e.cfg.MaskSecret), store.Run{})
	child.parent = t
	depth := t.s.Depth + 1
	if t.s.Parent != nil {
		depth = t.s.Parent.Depth + 1
	}
	start := run.Start{
		Owner: t.s.Owner, Transport: t.s.Transport, Tags: t.s.Tags,
		Parent: &event.Parent{RunID: t.s.ID.String(), NodeID: x.NodeID, Depth: depth},
	}
	if len(x.Inputs) > 0 {
		start.Inputs = run.EncodeObject(x.Inputs)
	}
	if err := child.decide(start); err != nil {
		t.broken = defect{err}
		return
	}
	child.inline()
	if child.broken != nil {
		t.broken = child.broken
		return
	}
	t.children = append(t.children, child)
	t.bytes += child.bytes
	if t.byID == nil {
		t.byID = map[string]*turn{}
	}
	t.byID[x.ID.String()] = child
	if st := child.s.Status(); tellsParent(run.Pending, st) {
		t.defers(run.ChildNews{RunID: x.ID, Status: st})
	}
}

// defers decides a child's news within the same turn, once the decision that
// started the child is complete.
func (t *turn) defers(n run.ChildNews) { t.news = append(t.news, n) }

// tellsParent reports whether a change of a child's status concerns its parent.
func tellsParent(before, after string) bool {
	if before == after {
		return false
	}
	return run.Terminal(after) || waiting(after) || waiting(before)
}

func waiting(status string) bool {
	return status == run.WaitingApproval || status == run.WaitingInput || status == run.WaitingExternal
}

// childState finds the state of a child that is not durable yet.
func (t *turn) childState(id ids.Run) *run.State {
	if c := t.byID[id.String()]; c != nil {
		return c.s
	}
	return nil
}
