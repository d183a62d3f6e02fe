package run

import (
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/internal/problem"
)

func (t *turn) tick() {
	if t.s.Ended != "" {
		t.undoDue()
		return
	}
	if t.s.Paused || t.s.Replaying() {
		return // a replay looks at no clock
	}
	t.due()
	t.advance()
}

// due lets every timer fire whose time has come. A timer of something that has
// been answered meanwhile does not exist any more, so it cannot fire late.
func (t *turn) due() {
	s := t.s
	if s.Replaying() {
		return
	}
	if d := s.deadline(t.lim); s.Closing == nil && !d.IsZero() && !t.now.Before(d) {
		limit := s.maxDuration(t.lim)
		t.say(event.CapBreached, "", event.Breach{Kind: "run-duration", Limit: limit, Observed: t.elapsed()})
		t.breach(*fault(problem.RunTimeout, "the run exceeded its time limit of %d ms", limit), "")
		return
	}
	for i, n := range s.Nodes {
		if t.err != nil || s.Ended != "" {
			return
		}
		t.fire(&s.wf.Steps[i], n)
	}
}

func (t *turn) fire(step *flow.Step, n *Node) {
	switch n.Phase {
	case Sleeping:
		if !t.now.Before(n.Due) && t.s.Draining == nil {
			t.wake(step, n)
		}
	case Retrying:
		if !t.now.Before(n.Due) && t.s.Draining == nil && t.admit(step) {
			t.attempt(step, n.Attempt+1)
		}
	case Suspended:
		if x := n.Interrupt.ExpiresAt; !x.IsZero() && !t.now.Before(x) {
			t.expire(step, n)
		}
	case Executing, Awaiting:
		if d := n.Deadline; !d.IsZero() && !t.now.Before(d) {
			t.overdue(step, n)
		}
	}
}

// overdue ends an attempt that took longer than the node's own limit.
func (t *turn) overdue(step *flow.Step, n *Node) {
	if n.Phase == Executing {
		t.effect(Abort{NodeID: step.Node.ID, Visit: n.Visit, Attempt: n.Attempt})
	}
	e := fault(problem.RunTimeout, "node %s exceeded its time limit of %d ms", step.Node.ID, step.Settings.TimeoutMs)
	e.Details = map[string]any{"scope": "node", "nodeId": step.Node.ID, "timeoutMs": step.Settings.TimeoutMs}
	again := n.Phase == Executing && n.Wake == nil
	e.Retryable = &again
	t.failed(step, e)
}

// wake lets a waiting node go on.
func (t *turn) wake(step *flow.Step, n *Node) {
	id := step.Node.ID
	p := event.NodeResume{NodeID: id}
	if n.Wake != nil && n.Wake.Answer != nil {
		p.InterruptID = n.Wake.Answer.InterruptID
	}
	saved := n.Saved
	t.because(event.NodeResumed, id, p)
	if t.err == nil {
		t.execute(step, n.Wake, saved)
	}
}
