package run

import (
	"errors"
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/go-json-experiment/json/jsontext"
)

// The modes of a fork (spec v2 replay.md §Modes).
const (
	ModeReplay = "replay"
	ModeBranch = "branch"
)

// Fork says where a run that is a fork comes from. It never changes, and a state
// is the fold of the log from it on.
type Fork struct {
	Mode    string             `json:"mode"`
	Source  ids.Run            `json:"source"`
	Seq     int64              `json:"seq"` // below it the log is the source's
	At      time.Time          `json:"at"`  // when it was made
	Options *event.ForkOptions `json:"options,omitzero"`
}

// NewFork returns the empty state of a fork: what folds its log, the inherited
// part included.
func NewFork(id ids.Run, wf *flow.Workflow, f Fork) *State {
	s := New(id, wf)
	s.Fork = &f
	return s
}

func (s *State) lag() time.Duration { return time.Duration(s.LagNs) }

// Replaying reports whether the run is a replay: nothing of it reaches the
// outside, and what its source recorded stands for what is not executed.
func (s *State) Replaying() bool { return s.Fork != nil && s.Fork.Mode == ModeReplay }

// Tally counts what a replay has already said of a node, so that the place in
// the source's record follows from the log.
type Tally struct {
	Starts  int `json:"starts,omitzero"`
	Ends    int `json:"ends,omitzero"`    // node.completed and node.failed
	Resumes int `json:"resumes,omitzero"` // node.resumed
	Answers int `json:"answers,omitzero"` // interrupt.resolved
	Heard   int `json:"heard,omitzero"`   // what is ofAnswer, since the last answer
	Echoes  int `json:"echoes,omitzero"`  // what belongs to an outcome, since the last end
}

func (t *Tally) count(e *event.Event) {
	if part, _ := ofOutcome(e); part {
		t.Echoes++
	}
	switch {
	case e.Type == event.NodeStarted:
		t.Starts++
	case e.Type == event.NodeResumed:
		t.Resumes++
	case ofAnswer(e.Type):
		t.Heard++
	case e.Type == event.InterruptResolved:
		t.Answers++
		t.Heard = 0
	case e.Type == event.NodeCompleted, e.Type == event.NodeFailed:
		t.Ends++
		t.Echoes = 0
	}
}

// follow keeps what a replay counts.
func (s *State) follow(e *event.Event) {
	if Comparable(e) {
		s.Said++
	}
	if e.NodeID == "" {
		return
	}
	if _, n, ok := s.node(e.NodeID); ok {
		n.Tally.count(e)
	}
}

// adopt lays over what a fork inherited from its source's run.started what is its
// own: it is nobody's child, calls nobody back, and may have other options.
func (s *State) adopt(at time.Time) {
	if s.Parent != nil {
		s.Depth, s.Parent = s.Parent.Depth, nil
	}
	s.CallbackURL = ""
	if o := s.Fork.Options; o != nil {
		if o.Configurable != nil {
			s.Configurable = o.Configurable
		}
		if o.Tags != nil {
			s.Tags = o.Tags
		}
		if o.Metadata != nil {
			s.Metadata = o.Metadata
		}
	}
	if s.Fork.Seq == 0 {
		s.LagNs = max(int64(s.Fork.At.Sub(at)), 0)
	}
}

// inherit turns what the source's log folds to into the beginning of a run of its
// own, once the last inherited event is folded. Time goes on as if none had
// passed since that event. Child runs belong to the source: a branch starts over
// what waits for one, with children of its own, and a replay takes the outcome
// from the record.
func (s *State) inherit(last *event.Event) {
	s.LagNs = max(int64(s.Fork.At.Sub(s.Last)), 0)
	later := func(t *time.Time) {
		if !t.IsZero() {
			*t = t.Add(s.lag())
		}
	}
	for _, n := range s.Nodes {
		if n.Phase.active() {
			later(&n.StartedAt)
			later(&n.CalledAt)
		}
		later(&n.Due)
		later(&n.Deadline)
		if n.Interrupt != nil {
			if n.Phase != Suspended {
				n.Interrupt = nil // asked for, but not yet open
			} else {
				later(&n.Interrupt.ExpiresAt)
			}
		}
		s.disown(n)
	}
	s.Orphans, s.places = nil, nil
	s.Disown()
	if s.Replaying() {
		s.Paused, s.Draining = false, nil // spec v2 runs.md §Pause and resume
		s.opened, s.closed = nil, nil
		s.amid(last)
	}
}

// amid marks the node whose outcome a replay has inherited in part: the rest of it
// is taken from the record, for a call would say the first part again.
func (s *State) amid(last *event.Event) {
	switch last.Type {
	case event.VariableChanged, event.ChannelWritten, event.LogAppended:
		part, _ := ofOutcome(last)
		if _, n, ok := s.node(last.NodeID); ok && part && n.Phase == Executing {
			n.Partial = true
		}
	}
}

// disown lets go of a node's child runs.
func (s *State) disown(n *Node) {
	n.Memo, n.sum = Memo{}, brood{} // both tell of children
	onChildren := n.Phase == Awaiting || n.Phase == Executing && n.Wake != nil && n.Wake.Children
	if onChildren {
		n.Wake = nil
		if n.Phase = Cut; s.Replaying() {
			n.Phase = Awaiting
		}
	}
	if n.Phase.active() {
		n.Children = nil
		return
	}
	kept := n.Children[:0:0]
	for _, c := range n.Children {
		if Terminal(c.Status) {
			kept = append(kept, c)
		}
	}
	n.Children = kept
}

// Begin lets a fork go on from what it has inherited. The source's run.started is
// given to a fork that inherits nothing.
type Begin struct {
	Payload, Sealed jsontext.Value
	At              time.Time // of the source's run.started

	// End is, for a replay that begins where the source was ending, how it ended,
	// behind what it still said of the limits it had reached (Record.End).
	End []event.Event
}

func (t *turn) begun(c Begin) error {
	s := t.s
	if s.Fork == nil || s.Seq != s.Fork.Seq-1 {
		return problem.Internal(errors.New("run: a fork began in the wrong place"))
	}
	if s.Fork.Seq == 0 {
		return t.startAgain(c)
	}
	if t.doomed(c.End); s.Closing == nil && s.Ended == "" {
		t.takeUp()
	}
	t.advance()
	return nil
}

// doomed ends a fork that begins where its source was ending already: a failure
// nobody takes over is recorded, or the source's own end says so.
func (t *turn) doomed(events []event.Event) {
	s := t.s
	for i, n := range s.Nodes {
		if len(events) > 0 {
			break // the source's own end says it better: a limit may have ended it
		}
		if n.Phase != Broken || n.Error == nil {
			continue
		}
		step, taken := &s.wf.Steps[i], []string{}
		for _, k := range step.Out {
			if s.Links[k] == Failure {
				taken = append(taken, s.wf.Links[k].ID)
			}
		}
		if !t.takenOver(step, taken) {
			t.fail(*n.Error, step.Node.ID)
			return
		}
	}
	if len(events) == 0 {
		return
	}
	end, limits := &events[len(events)-1], events[:len(events)-1]
	for i := range limits {
		t.emit(event.Draft{Type: limits[i].Type, NodeID: limits[i].NodeID, Causation: t.s.Seq, Payload: limits[i].Payload})
	}
	switch end.Type {
	case event.RunFailed:
		if p, err := event.Read[event.Failed](end.Payload); err == nil {
			t.fail(p.Error, p.FailedNodeID)
		}
	case event.RunCancelled:
		if p, err := event.Read[event.Cancelled](end.Payload); err == nil {
			t.end(event.ClosingMark{Kind: "cancel", Reason: p.Reason, By: p.CancelledBy, ParentRunID: p.ParentRunID}, "run-cancelled")
		}
	}
}

// startAgain is the run.started of a fork from the very beginning. In a replay it
// is history, with the time it had: expressions look at it.
func (t *turn) startAgain(c Begin) error {
	d := event.Draft{Type: event.RunStarted, Causation: -1, Payload: c.Payload, Sealed: c.Sealed}
	now := t.now
	if t.s.Replaying() {
		t.now = c.At
	} else if err := t.overlay(&d); err != nil {
		return err
	}
	t.emit(d)
	t.now = now
	t.advance()
	return nil
}

// overlay writes a branch's own options into its run.started.
func (t *turn) overlay(d *event.Draft) error {
	o := t.s.Fork.Options
	if o.IsZero() {
		return nil
	}
	for _, v := range []*jsontext.Value{&d.Payload, &d.Sealed} {
		if *v == nil {
			continue
		}
		p, err := event.Read[event.Started](*v)
		if err != nil {
			return problem.Internal(err)
		}
		if o.Configurable != nil {
			p.X.Configurable = o.Configurable
		}
		if o.Tags != nil {
			p.Tags = o.Tags
		}
		if o.Metadata != nil {
			p.Metadata = o.Metadata
		}
		*v = event.Encode(p)
	}
	return nil
}

// takeUp makes the calls that were being made where the log was cut off, and lets
// go on what was about to.
func (t *turn) takeUp() {
	s := t.s
	for i, n := range s.Nodes {
		step := &s.wf.Steps[i]
		switch {
		case t.err != nil || s.Ended != "":
			return
		case n.Phase == Executing && step.Type.Pure && !n.recorded():
			t.execute(step, n.Wake, n.Saved)
		case n.Phase == Executing && !s.Replaying(), n.Phase == Cut && !s.Replaying() && !t.held():
			if t.admit(step) {
				t.attempt(step, n.Attempt+1)
			}
		case n.Phase == Resolved && !s.Replaying() && !t.held():
			t.wake(step, n)
		}
	}
	if !s.Paused {
		t.due()
	}
}
