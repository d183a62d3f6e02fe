package run

import (
	"fmt"
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Fold applies one event. Events must come in sequence; a type the fold does
// not know changes nothing but the sequence (spec v2 events.md §The envelope).
func (s *State) Fold(e *event.Event) error {
	if e.Seq != s.Seq+1 {
		return fmt.Errorf("fold %s: event %d after %d", s.ID, e.Seq, s.Seq)
	}
	s.Seq, s.Last = e.Seq, e.Time
	apply, known := folds[e.Type]
	if known {
		if err := apply(s, e); err != nil {
			return fmt.Errorf("fold %s event %d %s: %w", s.ID, e.Seq, e.Type, err)
		}
	}
	if s.Fork != nil {
		if s.Replaying() {
			s.follow(e)
		}
		if e.Seq == s.Fork.Seq-1 {
			s.inherit(e)
		}
	}
	return nil
}

var folds = map[event.Type]func(*State, *event.Event) error{
	event.RunStarted:         foldStarted,
	event.RunCompleted:       foldEnded,
	event.RunFailed:          foldEnded,
	event.RunCancelled:       foldEnded,
	event.RunPaused:          foldPaused,
	event.RunResumed:         foldResumed,
	event.NodeStarted:        foldNodeStarted,
	event.NodeCompleted:      foldNodeCompleted,
	event.NodeFailed:         foldNodeFailed,
	event.NodeSkipped:        foldNodeSkipped,
	event.NodeCancelled:      foldNodeCancelled,
	event.NodeRetried:        foldNodeRetried,
	event.NodeSuspended:      foldNodeSuspended,
	event.NodeResumed:        foldNodeResumed,
	event.NodeDispatched:     foldDispatched,
	event.InterruptRequested: foldRequested,
	event.InterruptResolved:  foldResolution,
	event.ApprovalReceived:   foldVote,
	event.VariableChanged:    foldVariable,
	event.ChannelWritten:     foldChannel,
	event.LogAppended:        foldMark,

	event.CompensationRequested: foldUndoRequested,
	event.CompensationStarted:   foldUndoStarted,
	event.CompensationCompleted: foldUndoCompleted,
}

func foldStarted(s *State, e *event.Event) error {
	p, err := event.Read[event.Started](e.Truth())
	if err != nil {
		return err
	}
	s.Owner, s.Transport, s.Tags, s.Metadata = p.Owner, p.Transport, p.Tags, p.Metadata
	s.Configurable, s.Era = p.X.Configurable, e.Era
	if p.X.WorkflowVersion != "" { // a log of v1 names none
		s.WorkflowVersion = p.X.WorkflowVersion
	}
	s.Parent, s.CallbackURL, s.CallbackMajor = p.X.Parent, p.X.CallbackURL, p.X.CallbackMajor
	s.StartedAt, s.Inputs = e.Time, p.Inputs
	if s.Fork != nil {
		s.adopt(e.Time)
	}
	for i := range s.wf.Def.Variables {
		v := &s.wf.Def.Variables[i]
		if len(v.DefaultValue) > 0 {
			s.Variables[v.Name] = v.DefaultValue
		}
	}
	if len(p.Inputs) > 0 {
		var in map[string]jsontext.Value
		if err := json.Unmarshal(p.Inputs, &in); err != nil {
			return err
		}
		for k, v := range in {
			s.Variables[k] = v
		}
	}
	for name, decl := range s.wf.Def.Channels {
		s.channel(name, decl)
	}
	return nil
}

func foldEnded(s *State, e *event.Event) error {
	s.CompletedAt = e.Time
	s.Paused, s.Draining, s.Closing = false, nil, nil
	for _, n := range s.Nodes {
		s.closeInterrupt(n)
	}
	switch e.Type {
	case event.RunCompleted:
		p, err := event.Read[event.Completed](e.Truth())
		if err != nil {
			return err
		}
		s.Outputs, s.Ended = p.Outputs, Completed
	case event.RunFailed:
		p, err := event.Read[event.Failed](e.Truth())
		if err != nil {
			return err
		}
		s.Error, s.FailedNode, s.Ended = &p.Error, p.FailedNodeID, Failed
	default:
		s.Ended = Cancelled
	}
	return nil
}

func foldPaused(s *State, _ *event.Event) error {
	s.Paused, s.Draining = true, nil
	for _, n := range s.Nodes {
		if n.Phase == Executing {
			n.Phase, n.Deadline = Cut, time.Time{}
		}
	}
	return nil
}

func foldResumed(s *State, _ *event.Event) error {
	s.Paused = false
	return nil
}

func (s *State) subject(e *event.Event) (*flow.Step, *Node, error) {
	step, n, ok := s.node(e.NodeID)
	if !ok {
		return nil, nil, fmt.Errorf("no node %q in workflow %s", e.NodeID, s.WorkflowID)
	}
	return step, n, nil
}

func foldNodeStarted(s *State, e *event.Event) error {
	step, n, err := s.subject(e)
	if err != nil {
		return err
	}
	p, err := event.Read[event.NodeStart](e.Payload)
	if err != nil {
		return err
	}
	s.Executions++
	if p.Attempt == 0 {
		for _, c := range n.Children {
			if !Terminal(c.Status) {
				s.Orphans = append(s.Orphans, c)
			}
		}
		if len(n.Children) > 0 {
			s.places = nil
		}
		*n = Node{Visit: n.Visit + 1, Outputs: n.Outputs, Tally: n.Tally}
	}
	n.Memo.Scratch = nil
	n.Attempt, n.Phase, n.StartedAt, n.CalledAt, n.Forced = p.Attempt, Executing, e.Time, e.Time, false
	n.Due, n.Deadline = time.Time{}, time.Time{}
	if ms := step.Settings.TimeoutMs; ms > 0 {
		n.Deadline = e.Time.Add(time.Duration(ms) * time.Millisecond)
	}
	return nil
}

func foldNodeCompleted(s *State, e *event.Event) error {
	step, n, err := s.subject(e)
	if err != nil {
		return err
	}
	p, err := event.Read[event.NodeDone](e.Truth())
	if err != nil {
		return err
	}
	n.Outputs = nil
	if len(p.Outputs) > 0 {
		if err := json.Unmarshal(p.Outputs, &n.Outputs); err != nil {
			return err
		}
	}
	s.finish(step, n, Done, e.Time)
	s.committed(step, n)
	s.route(step, Success, p.X)
	return nil
}

func foldNodeFailed(s *State, e *event.Event) error {
	step, n, err := s.subject(e)
	if err != nil {
		return err
	}
	p, err := event.Read[event.NodeFail](e.Truth())
	if err != nil {
		return err
	}
	if n.Phase == Idle {
		// Refused before it started: the visit counts all the same.
		if len(n.Children) > 0 {
			s.places = nil
		}
		*n = Node{Visit: n.Visit + 1, Outputs: n.Outputs, StartedAt: e.Time, Tally: n.Tally}
	}
	n.Error = &p.Error
	s.finish(step, n, Broken, e.Time)
	s.route(step, Failure, p.X)
	return nil
}

func foldNodeSkipped(s *State, e *event.Event) error {
	step, n, err := s.subject(e)
	if err != nil {
		return err
	}
	s.finish(step, n, Skipped, e.Time)
	s.route(step, Passed, nil)
	return nil
}

func foldNodeCancelled(s *State, e *event.Event) error {
	step, n, err := s.subject(e)
	if err != nil {
		return err
	}
	if n.Phase.active() { // else the loop it was in has started over, and let go of it
		s.finish(step, n, Aborted, e.Time)
	}
	return nil
}

// finish puts a node into a final phase and lets go of what only an active
// node needs. Its children stay listed until they have ended.
func (s *State) finish(_ *flow.Step, n *Node, p Phase, at time.Time) {
	s.closeInterrupt(n)
	n.Phase, n.EndedAt, n.Forced = p, at, false
	n.Due, n.Deadline, n.Saved, n.Wake, n.Answers, n.Partial = time.Time{}, time.Time{}, nil, nil, nil, false
}

func (s *State) closeInterrupt(n *Node) {
	if n.Interrupt != nil {
		s.closed = append(s.closed, n.Interrupt.ID)
		n.Interrupt = nil
	}
}

// route decides every outgoing link of a finished step. taken lists the links
// followed where that was recorded; otherwise all of them are.
func (s *State) route(step *flow.Step, out Outcome, taken *event.Routing) {
	follow := func(id string) bool {
		if taken == nil {
			return true
		}
		for _, t := range taken.Edges {
			if t == id {
				return true
			}
		}
		return false
	}
	var back []*flow.Link
	for _, i := range step.Out {
		l := &s.wf.Links[i]
		if l.Back {
			if taken != nil && follow(l.ID) {
				back = append(back, l)
			}
			continue
		}
		switch {
		case out == Passed:
			s.Links[i] = Passed
		case follow(l.ID):
			s.Links[i] = out
		default:
			s.Links[i] = Refused
		}
	}
	for _, l := range back {
		s.repeat(l)
	}
}

// repeat starts a loop over: its body forgets this turn, and whatever its links
// had decided is open again.
func (s *State) repeat(back *flow.Link) {
	loop := &s.wf.Loops[back.Loop]
	s.Loops[back.Loop]++
	for _, b := range loop.Body {
		n := s.Nodes[b]
		if n.Phase.active() {
			s.finish(&s.wf.Steps[b], n, Aborted, s.Last)
		}
		n.Phase, n.Forced = Idle, b == loop.Header
		for _, l := range s.wf.Steps[b].Out {
			s.Links[l] = Undecided
		}
	}
	for i := range s.wf.Loops {
		// A loop inside this one starts counting afresh.
		if i != back.Loop && loop.Holds(s.wf.Loops[i].Header) && !s.wf.Loops[i].Holds(loop.Header) {
			s.Loops[i] = 0
		}
	}
}

func foldNodeRetried(s *State, e *event.Event) error {
	_, n, err := s.subject(e)
	if err != nil {
		return err
	}
	p, err := event.Read[event.NodeRetry](e.Payload)
	if err != nil {
		return err
	}
	n.Failures++
	n.Phase, n.Error, n.Deadline = Retrying, p.LastError, time.Time{}
	n.Due = e.Time.Add(time.Duration(p.DelayMs) * time.Millisecond)
	return nil
}

func foldVariable(s *State, e *event.Event) error {
	p, err := event.Read[event.Variable](e.Truth())
	if err != nil {
		return err
	}
	if len(p.Next) == 0 {
		delete(s.Variables, p.Name)
	} else {
		s.Variables[p.Name] = p.Next
	}
	return nil
}

func parseRun(s string) (ids.Run, error) { return ids.ParseRun(s) }
