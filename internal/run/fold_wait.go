package run

import (
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
)

func foldRequested(s *State, e *event.Event) error {
	if s.Ended != "" {
		return s.foldGate(e)
	}
	_, n, err := s.subject(e)
	if err != nil {
		return err
	}
	req, err := event.Read[event.Interrupt](e.Truth())
	if err != nil {
		return err
	}
	n.Interrupt = &Interrupt{NodeID: e.NodeID, Request: req, OpenedAt: e.Time}
	if req.TimeoutMs != nil && *req.TimeoutMs > 0 {
		n.Interrupt.ExpiresAt = e.Time.Add(time.Duration(*req.TimeoutMs) * time.Millisecond)
	}
	return nil
}

func foldNodeSuspended(s *State, e *event.Event) error {
	_, n, err := s.subject(e)
	if err != nil {
		return err
	}
	p, err := event.Read[event.NodeSuspend](e.Truth())
	if err != nil {
		return err
	}
	// It follows from its place; what the payload names is, in a fork's inherited
	// part, the source's.
	id := ids.Interrupt(s.ID, e.NodeID, n.Visit, n.Asked)
	n.Phase, n.Asked, n.Wake, n.Saved, n.Deadline = Suspended, n.Asked+1, nil, nil, time.Time{}
	if p.X != nil {
		n.Saved = p.X.State
	}
	if n.Interrupt != nil {
		n.Interrupt.ID = id
		s.opened = append(s.opened, n.Interrupt)
	}
	return nil
}

func foldVote(s *State, e *event.Event) error {
	_, n, err := s.subject(e)
	if err != nil {
		return err
	}
	p, err := event.Read[event.Resolution](e.Truth())
	if err != nil {
		return err
	}
	if p.ResolvedBy == nil || decided(&p) {
		return nil
	}
	said := Said{By: p.ResolvedBy.SubjectID, At: e.Time, Value: p.ResumeValue}
	if p.X != nil && !p.X.At.IsZero() {
		said.At = p.X.At
	}
	if n.Interrupt == nil {
		if s.Fork != nil && p.Action == "" {
			i := Interrupt{Exchange: n.Heard}
			i.say(said)
			n.Heard = i.Exchange
		}
		return nil
	}
	if p.Action == "" { // no vote: a question, or an answer to one
		n.Interrupt.say(said)
		return nil
	}
	by := *p.ResolvedBy
	if p.X != nil && p.X.Voter != "" {
		by.SubjectID = p.X.Voter
	}
	n.Interrupt.vote(principal(&by), p.Action != "reject")
	return nil
}

// vote records a principal's vote; a later one replaces an earlier.
func (i *Interrupt) vote(principal string, accept bool) {
	for k := range i.Votes {
		if i.Votes[k].Principal == principal {
			i.Votes[k].Accept = accept
			return
		}
	}
	i.Votes = append(i.Votes, Vote{principal, accept})
}

// How much of an exchange a state keeps. All of it stays in the log.
const (
	maxSaid      = 32
	maxSaidBytes = 16 << 10
)

// say adds to the exchange, at the cost of its oldest part where it grows long:
// a gate may be asked for years.
func (i *Interrupt) say(s Said) {
	if len(s.Value) > maxSaidBytes {
		return
	}
	kept := append(i.Exchange[:len(i.Exchange):len(i.Exchange)], s)
	size, from := 0, len(kept)
	for from > 0 && len(kept)-from < maxSaid {
		if size += len(kept[from-1].Value); size > maxSaidBytes {
			break
		}
		from--
	}
	i.Exchange = kept[from:]
}

func principal(s *event.Subject) string { return s.Issuer + " " + s.SubjectID }

func foldResolution(s *State, e *event.Event) error {
	if s.Ended != "" {
		return s.foldPassed(e)
	}
	_, n, err := s.subject(e)
	if err != nil {
		return err
	}
	p, err := event.Read[event.Resolution](e.Truth())
	if err != nil {
		return err
	}
	a := &Answer{InterruptID: p.InterruptID, Kind: p.Kind, Value: p.ResumeValue, Action: p.Action, TimedOut: p.Reason == "timeout"}
	if p.ResolvedBy != nil {
		a.By = p.ResolvedBy.SubjectID
	}
	if n.Interrupt != nil {
		a.Exchange = n.Interrupt.Exchange
		n.learn(n.Interrupt.Request.Key, a)
		s.closeInterrupt(n)
	} else if p.X != nil && p.X.Key != "" {
		a.Exchange, n.Heard = n.Heard, nil
		n.learn(p.X.Key, a)
		n.Asked, n.Saved, n.Deadline = n.Asked+1, p.X.State, time.Time{}
	}
	n.Phase, n.Wake = Resolved, &Wake{Answer: a}
	return nil
}

// learn keeps an answer, under the key of what asked for it.
func (n *Node) learn(key string, a *Answer) {
	if n.Answers == nil {
		n.Answers = map[string]*Answer{}
	}
	n.Answers[key] = a
}

func foldNodeResumed(s *State, e *event.Event) error {
	step, n, err := s.subject(e)
	if err != nil {
		return err
	}
	switch n.Phase {
	case Sleeping:
		n.Wake = &Wake{Timer: true}
	case Awaiting:
		n.Wake = &Wake{Children: true, Fresh: n.tell()}
	}
	n.Phase, n.Due, n.CalledAt = Executing, time.Time{}, e.Time
	if ms := step.Settings.TimeoutMs; ms > 0 && n.Deadline.IsZero() {
		n.Deadline = e.Time.Add(time.Duration(ms) * time.Millisecond)
	}
	return nil
}

func foldDispatched(s *State, e *event.Event) error {
	step, n, err := s.subject(e)
	if err != nil {
		return err
	}
	p, err := event.Read[event.NodeDispatch](e.Payload)
	if err != nil {
		return err
	}
	if s.places != nil {
		s.places[p.ChildRunID] = place{step.Index, len(n.Children)}
	}
	n.adopt(Child{RunID: p.ChildRunID, WorkflowID: p.ChildWorkflowID, Status: p.ChildStatus})
	return nil
}

// foldMark applies the run's own notes, which travel as log.appended.
func foldMark(s *State, e *event.Event) error {
	p, err := event.Read[event.Log](e.Truth())
	if err != nil || p.X == nil {
		return err
	}
	m := p.X
	switch {
	case m.Draining != nil:
		s.Draining = m.Draining
	case m.Closing != nil:
		s.Closing = m.Closing
	case m.Child != nil:
		s.child(m.Child)
	case m.Plan != nil:
		s.foldPlan(m.Plan)
	case m.Inverse != nil:
		return s.foldInverse(m.Inverse, e.Time)
	}
	if e.NodeID == "" {
		return nil
	}
	_, n, err := s.subject(e)
	if err != nil {
		return err
	}
	switch {
	case m.Wait != nil:
		n.Phase, n.Due, n.Saved, n.Wake, n.Deadline = Sleeping, m.Wait.Until, m.Wait.State, nil, time.Time{}
	case m.Saved != nil:
		n.Phase, n.Wake = Awaiting, nil
		if !m.Saved.Same {
			n.Saved = m.Saved.State
		}
		for i, k := range m.Saved.Keys {
			if at := len(n.Children) - len(m.Saved.Keys) + i; at >= 0 {
				n.Children[at].Key, n.Children[at].Detached = k.Key, k.Detached
			}
		}
	case m.Signal != nil:
		if s.Signals == nil {
			s.Signals = map[string][]Signal{}
		}
		s.Signals[e.NodeID] = append(s.Signals[e.NodeID], Signal{m.Signal.Value, m.Signal.Subject})
	case m.Taken != nil:
		if q := s.Signals[e.NodeID]; *m.Taken < len(q) {
			s.Signals[e.NodeID] = append(q[:*m.Taken:*m.Taken], q[*m.Taken+1:]...)
		}
	}
	return nil
}

func (s *State) child(m *event.ChildMark) {
	if at, ok := s.placeOf(m.RunID); ok {
		s.Nodes[at.node].turned(at.child, m.Status)
		return
	}
	if c := s.findChild(m.RunID); c != nil {
		c.Status = m.Status
	}
	// An orphan that has ended is nobody's concern any more.
	kept := s.Orphans[:0]
	for _, c := range s.Orphans {
		if !Terminal(c.Status) {
			kept = append(kept, c)
		}
	}
	s.Orphans = kept
}

func (s *State) findChild(runID string) *Child {
	if at, ok := s.placeOf(runID); ok {
		return &s.Nodes[at.node].Children[at.child]
	}
	for i := range s.Orphans {
		if s.Orphans[i].RunID == runID {
			return &s.Orphans[i]
		}
	}
	return nil
}
