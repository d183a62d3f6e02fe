package run

import (
	"fmt"
	"time"

	"github.com/fermata-run/fermata/internal/event"
)

// foldPlan adds a stretch of the plan.
func (s *State) foldPlan(m *event.PlanMark) {
	if s.Undoing == nil {
		s.Undoing = &Undoing{ID: m.CompensationID, Trigger: m.Trigger, Halts: m.Halts, Version: 1}
		s.Commits, s.Facts = nil, 0 // the plan has them now
	}
	for _, e := range m.Entries {
		a := &Action{PlanEntry: e}
		if e.Irreversible {
			a.Phase = Skipped // its outcome is known: it stays
		}
		s.Undoing.Actions = append(s.Undoing.Actions, a)
	}
}

func foldUndoRequested(s *State, _ *event.Event) error {
	return s.ofUndoing(func(u *Undoing) { u.Ready = true })
}
func foldUndoStarted(s *State, _ *event.Event) error {
	return s.ofUndoing(func(u *Undoing) { u.Started = true })
}
func foldUndoCompleted(s *State, _ *event.Event) error {
	return s.ofUndoing(func(u *Undoing) { u.Told = true })
}

func (s *State) ofUndoing(change func(*Undoing)) error {
	if s.Undoing == nil {
		return fmt.Errorf("run %s has no plan of what to undo", s.ID)
	}
	change(s.Undoing)
	return nil
}

// foldInverse applies one step of one action.
func (s *State) foldInverse(m *event.InverseMark, at time.Time) error {
	u := s.Undoing
	if u == nil || m.Order < 1 || m.Order > len(u.Actions) {
		return fmt.Errorf("run %s has no action %d to undo", s.ID, m.Order)
	}
	a := u.Actions[m.Order-1]
	tried := func(outcome, reason string) {
		u.Attempts = append(u.Attempts, Tried{a.NodeID, max(m.Attempt, a.Attempt), outcome, at, reason})
	}
	a.Due, a.Deadline = time.Time{}, time.Time{}
	switch m.Step {
	case event.InverseBegun:
		a.Phase, a.Attempt = Executing, m.Attempt
		if a.TimeoutMs > 0 {
			a.Deadline = at.Add(time.Duration(a.TimeoutMs) * time.Millisecond)
		}
	case event.InverseDone:
		a.Phase = Done
		tried("succeeded", "")
	case event.InverseRepeats:
		a.Phase, a.Due = Retrying, at.Add(time.Duration(m.DelayMs)*time.Millisecond)
		a.Failures++
		tried("failed", m.Code)
	case event.InverseFailed:
		a.Phase, a.Attempt = Broken, max(m.Attempt, a.Attempt)
		a.Failures++
		tried("failed", m.Code)
	case event.InverseSkipped:
		a.Phase, a.Attempt, u.Held = Skipped, m.Attempt, 0
		tried("skipped", "")
	case event.InverseTerminated:
		a.Phase, a.Attempt, u.Held, u.Closed = Aborted, m.Attempt, 0, true
		tried("skipped", event.OperatorTerminated)
	case event.InverseAgain:
		a.Phase, a.Failures, u.Held = Idle, 0, 0
	case event.InverseReplaced:
		a.Phase, a.Failures, u.Held = Idle, 0, 0
		a.TypeID, a.Approved = m.TypeID, false // what was approved is not what would be done
		u.Version++
	case event.InverseHeld:
		u.Held = a.Order
	case event.InverseGate:
		u.Gate = &Gate{Order: m.Order, Purpose: m.Purpose, By: m.By, Reason: m.Reason}
		if m.Purpose == event.InverseBegun {
			a.Phase = Suspended
		}
	}
	return nil
}
