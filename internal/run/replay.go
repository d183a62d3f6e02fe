package run

import (
	"errors"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/node"
	"github.com/go-json-experiment/json"
)

// The commands of a replay. They bring what the source recorded; nothing else
// may move a node that is not executed again.

// Echo says an event of the source again, as part of a node's outcome. With Hold
// nothing follows from it yet: the source said a move of another node with it.
type Echo struct {
	Event event.Event
	Hold  bool
}

// Elapse ends what a node of a replay waits for: a time, or a pause. Hold is as in Echo.
type Elapse struct {
	NodeID string
	Hold   bool
}

// Missing fails a node of which the source has no outcome (spec v2 replay.md
// §Suppression, rule 3).
type Missing struct{ NodeID string }

// Late ends a replay whose source used up its time.
type Late struct{}

func (Begin) command()   {}
func (Echo) command()    {}
func (Elapse) command()  {}
func (Missing) command() {}
func (Late) command()    {}

// replay lets a command of a replay happen.
func (t *turn) replay(c Command) error {
	if !t.s.Replaying() {
		return problem.Internal(errors.New("run: no replay"))
	}
	switch c := c.(type) {
	case Echo:
		return t.echo(&c.Event, c.Hold)
	case Elapse:
		t.elapse(c.NodeID)
		if c.Hold {
			return nil
		}
	case Missing:
		if step, n, ok := t.s.node(c.NodeID); ok && n.Phase.active() {
			t.broken(step, t.missing(step))
		}
	case Late:
		limit := t.s.maxDuration(t.lim)
		t.say(event.CapBreached, "", event.Breach{Kind: "run-duration", Limit: limit, Observed: limit + 1})
		t.fail(*fault(problem.RunTimeout, "the run exceeded its time limit of %d ms", limit), "")
	}
	t.advance()
	return nil
}

func (t *turn) missing(step *flow.Step) *event.Error {
	e := fault(problem.ReplaySourceMissing, "the source run has no outcome of node %s to take", step.Node.ID)
	e.Details = map[string]any{"nodeId": step.Node.ID, "sourceRunId": t.s.Fork.Source.String()}
	return e
}

// echo says again what the source said of a node. Edges are taken as recorded.
func (t *turn) echo(e *event.Event, hold bool) error {
	step, n, ok := t.s.node(e.NodeID)
	if !ok || !n.Phase.active() {
		return problem.Internal(errors.New("run: an echo of a node that does not wait for it"))
	}
	d := event.Draft{Type: e.Type, NodeID: e.NodeID, Causation: -1, Payload: e.Payload, Sealed: e.Sealed}
	switch e.Type {
	case event.NodeCompleted:
		p, err := event.Read[event.NodeDone](e.Truth())
		if err != nil {
			return problem.Internal(err)
		}
		before := n.Outputs
		n.Outputs = nil
		if len(p.Outputs) > 0 && json.Unmarshal(p.Outputs, &n.Outputs) != nil {
			n.Outputs = before
		}
		t.echoEnd(step, d, Success, nil, p.X)
	case event.NodeFailed:
		p, err := event.Read[event.NodeFail](e.Truth())
		if err != nil {
			return problem.Internal(err)
		}
		taken, over := t.echoEnd(step, d, Failure, &p.Error, p.X)
		if !over && !t.takenOver(step, taken) {
			t.fail(p.Error, e.NodeID)
		}
	case event.ApprovalReceived:
		var err error
		if d, err = heard(e); err != nil {
			return problem.Internal(err)
		}
		t.emit(d)
	case event.OutputChunk:
		p, err := event.Read[event.Chunk](e.Payload)
		if err != nil {
			return problem.Internal(err)
		}
		p.RunID = t.s.ID.String()
		d.Payload = event.Encode(p)
		t.emit(d)
	default:
		t.emit(d)
	}
	if (moves(e.Type) || step.Type.Pure) && !hold {
		t.advance()
	}
	return nil
}

// echoEnd ends a step as the source did, and reports the links it took and
// whether its loop came to its limit there.
func (t *turn) echoEnd(step *flow.Step, d event.Draft, out Outcome, cause *event.Error, x *event.Routing) ([]string, bool) {
	var taken []string
	if x != nil {
		taken = x.Edges
	} else {
		for _, i := range step.Out {
			if l := &t.s.wf.Links[i]; !l.Back {
				taken = append(taken, l.ID)
			}
		}
	}
	var over *overrun
	if live, err := t.routing(step, out, cause, nil); err == nil && step.Routed && x != nil && len(taken) == 0 {
		over = t.overrun(step, live)
	}
	var left []int
	if over == nil {
		left = t.leaveBody(step, taken)
	}
	t.emit(d)
	t.left(left)
	if over != nil {
		t.loopLimit(over)
	}
	return taken, over != nil
}

func (t *turn) elapse(nodeID string) {
	step, n, ok := t.s.node(nodeID)
	if !ok {
		return
	}
	switch n.Phase {
	case Sleeping, Resolved:
		t.wake(step, n)
	case Retrying, Cut:
		if t.admit(step) {
			t.attempt(step, n.Attempt+1)
		}
	}
}

// answerFrom resolves what a call of a replay asks for by what is recorded. No
// interrupt is raised, and who could answer is not asked again.
func (t *turn) answerFrom(step *flow.Step, r node.Result, key string, recorded []event.Event, writes []event.Draft) *node.Error {
	if len(recorded) == 0 {
		e := t.missing(step)
		return &node.Error{Code: e.Code, Message: e.Message, Details: e.Details}
	}
	t.emitAll(writes)
	for i := range recorded {
		e := &recorded[i]
		d := event.Draft{Type: e.Type, NodeID: e.NodeID, Causation: -1, Payload: e.Payload, Sealed: e.Sealed}
		var err error
		switch e.Type {
		case event.InterruptResolved:
			d, err = resolvedBy(e, key, r.State())
		case event.ApprovalReceived:
			d, err = heard(e)
		}
		if err != nil {
			return node.Fail(node.CodeInternal, "the recorded answer cannot be read: %v", err)
		}
		t.emit(d)
	}
	return nil
}

// resolvedBy is the recorded interrupt.resolved, with what the events say that
// stand before it in the source and not here.
func resolvedBy(e *event.Event, key string, state []byte) (event.Draft, error) {
	return noted(e, len(state) > 0, func(x *event.ResolutionX, whole bool) {
		if x.Key = key; whole {
			x.State = state
		}
	})
}

// heard is a recorded approval.received, with the time at which it was said.
func heard(e *event.Event) (event.Draft, error) {
	return noted(e, false, func(x *event.ResolutionX, _ bool) {
		if x.At.IsZero() { // else the source is a replay, too
			x.At = e.Time
		}
	})
}

// noted is a recorded resolution with notes of the host's own: in what is shown, and
// in what is whole, which stands apart if it is already or is told to.
func noted(e *event.Event, apart bool, note func(x *event.ResolutionX, whole bool)) (event.Draft, error) {
	with := func(v []byte, whole bool) ([]byte, error) {
		p, err := event.Read[event.Resolution](v)
		if err != nil {
			return nil, err
		}
		if p.X == nil {
			p.X = &event.ResolutionX{}
		}
		note(p.X, whole)
		return event.Encode(p), nil
	}
	d := event.Draft{Type: e.Type, NodeID: e.NodeID, Causation: -1}
	shown, err := with(e.Payload, false)
	if err != nil {
		return d, err
	}
	d.Payload = shown
	if e.Sealed != nil || apart {
		whole, err := with(e.Truth(), true)
		if err != nil {
			return d, err
		}
		d.Sealed = whole
	}
	return d, nil
}

// compare says so where a replay is about to differ from its source: once for
// each stretch in which it does, ahead of the first event of it, for nothing may
// follow the last event of a run.
func (t *turn) compare(d *event.Draft) {
	s := t.s
	if t.source == nil || !s.Replaying() || s.Seq < s.Fork.Seq-1 {
		return
	}
	e := event.Event{Run: s.ID, Seq: s.Seq + 1, Type: d.Type, NodeID: d.NodeID, Payload: d.Payload}
	if !Comparable(&e) {
		return
	}
	p, differs := t.source.differs(s.Said, &e)
	apart := s.apart
	if s.apart = differs; !differs || apart {
		return
	}
	p.X.ReplayEventID = ids.Event(s.ID, e.Seq+1)
	t.say(event.ReplayDiverged, d.NodeID, p)
}
