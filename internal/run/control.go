package run

import (
	"slices"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/internal/problem"
)

// fail ends the run in failure: at once, or when the children it takes along
// have ended.
func (t *turn) fail(e event.Error, nodeID string) {
	t.end(event.ClosingMark{Kind: "fail", Error: &e, FailedNodeID: nodeID}, "run-failed")
}

// breach is fail for a run that has exceeded one of its bounds.
func (t *turn) breach(e event.Error, nodeID string) {
	t.end(event.ClosingMark{Kind: "fail", Error: &e, FailedNodeID: nodeID, Cap: true}, "run-failed")
}

func (t *turn) end(c event.ClosingMark, reason string) {
	if t.s.Closing != nil || t.s.Ended != "" || t.err != nil {
		return
	}
	for i, n := range t.s.Nodes {
		if n.Phase.active() {
			t.stop(i, reason)
		}
	}
	if len(t.s.OpenChildren()) == 0 {
		t.final(&c)
		return
	}
	t.note("info", "", "closing", &event.Mark{Closing: &c})
}

// close ends a run whose children have all ended.
func (t *turn) close() { t.final(t.s.Closing) }

func (t *turn) final(c *event.ClosingMark) {
	if c.Kind == "fail" {
		t.because(event.RunFailed, "", event.Failed{Error: *c.Error, FailedNodeID: c.FailedNodeID, DurationMs: t.elapsed()})
		trigger := flow.OnNodeFailure
		if c.Cap {
			trigger = flow.OnCapBreach
		}
		t.undo(trigger, "")
		return
	}
	t.because(event.RunCancelled, "", event.Cancelled{
		Reason: c.Reason, CancelledBy: c.By, DurationMs: t.elapsed(), ParentRunID: c.ParentRunID,
	})
	t.undo(flow.OnRunCancel, "")
}

func (t *turn) cancel(c Cancel) error {
	s := t.s
	if s.Ended != "" {
		return problem.New(problem.RunTerminal, "the run has already ended").With("runStatus", s.Ended)
	}
	if s.Closing != nil {
		return nil // on its way already
	}
	t.end(event.ClosingMark{Kind: "cancel", Reason: c.Reason, By: c.By, ParentRunID: c.ParentRunID}, "run-cancelled")
	return nil
}

func (t *turn) pause(c Pause) error {
	s := t.s
	if s.Ended != "" {
		return problem.New(problem.RunTerminal, "the run has already ended").With("runStatus", s.Ended)
	}
	if s.Replaying() {
		return problem.New(problem.RunStateConflict, "a replay waits for nothing and cannot be paused").With("runStatus", s.Status())
	}
	if s.Paused || s.Draining != nil || s.Closing != nil {
		status := s.Status()
		if s.Draining != nil {
			status = Paused
		}
		return problem.New(problem.RunStateConflict, "a run that is %s cannot be paused", status).With("runStatus", status)
	}
	if c.DrainPolicy == "immediate" {
		p := event.Paused{Reason: c.Reason, DrainPolicy: c.DrainPolicy}
		for i, n := range s.Nodes {
			if n.Phase != Executing {
				continue
			}
			id := s.wf.Steps[i].Node.ID
			if p.InterruptedNodeID == "" {
				p.InterruptedNodeID, p.InterruptedAttempt = id, n.Attempt+1
			}
			t.effect(Abort{NodeID: id, Visit: n.Visit, Attempt: n.Attempt})
		}
		t.say(event.RunPaused, "", p)
		return nil
	}
	if !t.executing() {
		t.say(event.RunPaused, "", event.Paused{Reason: c.Reason, DrainPolicy: "drain-current-node"})
		return nil
	}
	t.note("info", "", "draining", &event.Mark{Draining: &event.DrainMark{Reason: c.Reason}})
	return nil
}

func (t *turn) resume(c Resume) error {
	s := t.s
	if s.Ended != "" {
		return problem.New(problem.RunTerminal, "the run has already ended").With("runStatus", s.Ended)
	}
	if !s.Paused {
		return problem.New(problem.RunStateConflict, "the run is not paused").With("runStatus", s.Status())
	}
	t.say(event.RunResumed, "", event.Resumed{Reason: c.Reason})
	for i, n := range s.Nodes {
		step := &s.wf.Steps[i]
		switch n.Phase {
		case Cut:
			if t.admit(step) {
				t.attempt(step, n.Attempt+1)
			}
		case Resolved:
			t.wake(step, n)
		case Awaiting:
			if n.news() {
				t.wake(step, n)
			}
		}
	}
	t.due()
	t.advance()
	return nil
}

// recover takes over after an owner was lost: whatever was executing begins a
// fresh attempt, and what was asked of children is asked again.
func (t *turn) recover(c Recover) {
	s := t.s
	if s.Ended != "" {
		t.undoAgain(c.Alive)
		return
	}
	for i, n := range s.Nodes {
		if n.Phase != Executing {
			continue
		}
		step := &s.wf.Steps[i]
		if slices.Contains(c.Alive, Call{step.Node.ID, n.Visit, n.Attempt, 0}) {
			continue
		}
		if step.Type.Pure {
			// Nothing happened outside, so it is the same attempt.
			t.execute(step, n.Wake, n.Saved)
		} else if !s.Replaying() && t.admit(step) {
			t.attempt(step, n.Attempt+1)
		}
	}
	if s.Closing != nil {
		for _, c := range s.OpenChildren() {
			if id, err := parseRun(c.RunID); err == nil {
				t.effect(CancelChild{RunID: id})
			}
		}
	}
	if !s.Paused {
		t.due()
	}
	t.advance()
}
