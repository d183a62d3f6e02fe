package run

import (
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/node"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Undoing is the compensation of a run: what is left of its effects is undone
// after its end, action by action (spec v2 security-defaults.md §Compensation). The
// run's status stays what it is.
type Undoing struct {
	ID       string    `json:"id"`
	Trigger  string    `json:"trigger"`
	Halts    bool      `json:"halts,omitzero"`
	Ready    bool      `json:"ready,omitzero"` // the plan is complete
	Started  bool      `json:"started,omitzero"`
	Held     int       `json:"held,omitzero"`   // the action that waits for an operator
	Closed   bool      `json:"closed,omitzero"` // an operator gave the rest up
	Version  int       `json:"version"`         // of the plan, from 1
	Told     bool      `json:"told,omitzero"`   // its success has been announced
	Asked    int       `json:"asked,omitzero"`  // gates so far
	Gate     *Gate     `json:"gate,omitzero"`
	Actions  []*Action `json:"actions"`
	Attempts []Tried   `json:"attempts,omitzero"` // those with an outcome, oldest first
}

// Action is one inverse action of the plan.
type Action struct {
	event.PlanEntry
	Phase    Phase     `json:"phase,omitzero"` // Idle, Executing, Retrying, Suspended, Done, Broken, Skipped or Aborted
	Approved bool      `json:"approved,omitzero"`
	Attempt  int       `json:"attempt,omitzero"`  // of the node within the plan, from 1
	Failures int       `json:"failures,omitzero"` // since it was begun or asked for again
	Due      time.Time `json:"due,omitzero"`
	Deadline time.Time `json:"deadline,omitzero"`
}

// Tried is the outcome of one attempt.
type Tried struct {
	NodeID  string    `json:"nodeId"`
	Attempt int       `json:"attempt"`
	Outcome string    `json:"outcome"` // succeeded, failed, skipped or manual
	At      time.Time `json:"at"`
	Reason  string    `json:"reason,omitzero"`
}

// undo begins to undo a run that has just ended, if its author wants that for what
// ended it and there is something to undo.
func (t *turn) undo(trigger, request string) {
	s := t.s
	if t.err != nil || s.Replaying() || s.Undoing != nil || !s.wf.Policy.Fires(trigger) || !s.undoable() {
		return
	}
	id := ids.Interrupt(s.ID, "compensation\x00"+flow.CompensationProfile, 0, 0).String()
	for _, part := range parts(s.plan()) {
		whole := event.PlanMark{
			CompensationID: id, Trigger: trigger, ProfileVersion: flow.CompensationProfile,
			Halts: s.wf.Policy.Halts(), Request: request, Entries: part,
		}
		shown, hide := whole, false
		shown.Entries = make([]event.PlanEntry, len(part))
		for i, e := range part {
			hide = hide || len(e.Inputs) > 0
			e.Inputs = nil
			shown.Entries[i] = e
		}
		t.private("", "what is to be undone", event.Mark{Plan: &shown}, event.Mark{Plan: &whole}, hide)
	}
	t.say(event.CompensationRequested, "", event.Undoing{CompensationID: id, OrderingModel: flow.ReverseCompletion})
	t.goOn()
}

// partBytes is how much of a plan one event holds.
const partBytes = 256 << 10

func parts(plan []event.PlanEntry) [][]event.PlanEntry {
	var out [][]event.PlanEntry
	from, size := 0, 0
	for i := range plan {
		n := len(plan[i].Inputs) + 512
		if i > from && size+n > partBytes {
			out = append(out, plan[from:i])
			from, size = i, 0
		}
		size += n
	}
	return append(out, plan[from:])
}

// goOn takes up the next action, unless one is under way or the plan is held.
func (t *turn) goOn() {
	for u := t.s.Undoing; t.err == nil && u.Active() && u.Held == 0 && u.Gate == nil; {
		a := u.current()
		switch {
		case a.Phase != Idle:
			return // its result, its timer or its answer is what comes next
		case a.Unresolved != "":
			t.fault(a)
		case a.NeedsApproval && !a.Approved:
			t.openGate(a, event.InverseBegun, Operate{})
			return
		default:
			t.try(a)
			return
		}
	}
	if u := t.s.Undoing; t.err == nil && u.complete() && !u.Told {
		t.say(event.CompensationCompleted, "", event.Undoing{CompensationID: u.ID, OrderingModel: flow.ReverseCompletion})
	}
}

// current is the first action of the plan that has no outcome; nil for none.
func (u *Undoing) current() *Action {
	for _, a := range u.Actions {
		if !a.Phase.final() {
			return a
		}
	}
	return nil
}

// Active reports whether some action of the plan has no outcome yet.
func (u *Undoing) Active() bool { return u != nil && u.Ready && !u.Closed && u.current() != nil }

func (u *Undoing) complete() bool {
	for _, a := range u.Actions {
		if a.Phase != Done {
			return false
		}
	}
	return true
}

// spent reports whether nobody can do anything more about the plan.
func (u *Undoing) spent() bool {
	for _, a := range u.Actions {
		if a.Phase != Done && !a.Irreversible {
			return u.Closed
		}
	}
	return true
}

// try makes the next attempt at an action. That it is made is on disk before it is.
func (t *turn) try(a *Action) {
	u := t.s.Undoing
	t.mark(a, event.InverseMark{Step: event.InverseBegun, Attempt: u.nextAttempt(a.NodeID)})
	if t.err == nil && !u.Started {
		p := event.Undoing{
			CompensationID: u.ID, NodeID: a.NodeID, EffectID: a.EffectID, Attempt: a.Attempt, OrderingModel: flow.ReverseCompletion,
		}
		t.say(event.CompensationStarted, a.NodeID, p)
	}
	var inputs map[string]jsontext.Value
	if err := json.Unmarshal(a.Inputs, &inputs); err != nil && t.err == nil {
		t.err = err
	}
	if t.err == nil {
		t.effect(Execute{NodeID: a.NodeID, Visit: a.Visit, Attempt: a.Attempt, Inputs: inputs, Inverse: a.call()})
	}
}

// call is what the shell must know beside what it knows of every call.
func (a *Action) call() *Inverse {
	id, _ := parseRun(a.EffectID)
	return &Inverse{Order: a.Order, TypeID: a.TypeID, EffectKey: id.Opaque}
}

// nextAttempt counts the attempts at undoing a node over all of its visits, so that
// node and attempt name one.
func (u *Undoing) nextAttempt(nodeID string) int {
	n := 0
	for _, a := range u.Actions {
		if a.NodeID == nodeID {
			n = max(n, a.Attempt)
		}
	}
	return n + 1
}

// mark notes one step of an action. reason stays inside.
func (t *turn) mark(a *Action, m event.InverseMark) {
	m.Order = a.Order
	shown := m
	shown.Reason = ""
	t.private(a.NodeID, "undoing: "+m.Step, event.Mark{Inverse: &shown}, event.Mark{Inverse: &m}, m.Reason != "")
}

// undone takes in the result of a call that undoes something.
func (t *turn) undone(c NodeResult) {
	u := t.s.Undoing
	if u == nil || c.Inverse < 1 || c.Inverse > len(u.Actions) {
		return
	}
	a := u.Actions[c.Inverse-1]
	if a.Phase != Executing || a.Attempt != c.Attempt {
		return // given up, or begun anew
	}
	for _, l := range c.Logs {
		t.say(event.LogAppended, a.NodeID, event.Log{Level: level(l.Level), Message: l.Message, NodeID: a.NodeID, Fields: l.Fields})
	}
	failed := c.Err
	if failed == nil && c.Result.Err() != nil {
		failed = node.Fail(node.CodeConfig, "%v", c.Result.Err())
	}
	if failed == nil && c.Result.Kind() != node.Completed {
		failed = node.Fail(node.CodeConfig, "an inverse action must come to its end within one call")
	}
	if failed != nil {
		t.notUndone(a, faultOf(failed))
		return
	}
	t.mark(a, event.InverseMark{Step: event.InverseDone, Attempt: a.Attempt})
	t.goOn()
}

// notUndone records a failed attempt: another if one is left, else the end of the
// action. Only the code of what went wrong is kept: anything more could be a
// provider's words.
func (t *turn) notUndone(a *Action, e *event.Error) {
	if again := e.Retryable != nil && *e.Retryable; !again || a.Failures+1 >= a.MaxAttempts {
		t.exhausted(a, event.InverseMark{Step: event.InverseFailed, Attempt: a.Attempt, Code: e.Code}, event.RetriesExhausted)
		return
	}
	delay := undoBackoff(a)
	t.mark(a, event.InverseMark{Step: event.InverseRepeats, Attempt: a.Attempt, Code: e.Code, DelayMs: delay.Milliseconds()})
	if t.err == nil && delay == 0 {
		t.try(a)
	}
}

// longestUndoWait bounds the wait between two attempts, unless the author's own
// first wait is longer.
const longestUndoWait = 5 * time.Minute

// undoBackoff doubles the declared wait with every failure.
func undoBackoff(a *Action) time.Duration {
	d := time.Duration(a.BackoffMs) * time.Millisecond
	for range a.Failures {
		if d >= longestUndoWait {
			break
		}
		d = min(2*d, longestUndoWait)
	}
	return d
}

// fault records that an action cannot even be tried: a fact it needs was never
// recorded. It is never made with something missing.
func (t *turn) fault(a *Action) {
	m := event.InverseMark{Step: event.InverseFailed, Attempt: t.s.Undoing.nextAttempt(a.NodeID), Code: string(problem.NodeConfigInvalid)}
	t.exhausted(a, m, "")
}

// exhausted ends an action that was not done, and hands the plan to an operator if
// its author wants that.
func (t *turn) exhausted(a *Action, m event.InverseMark, reason string) {
	u := t.s.Undoing
	t.mark(a, m)
	h := event.Halt{
		CompensationID: u.ID, NodeID: a.NodeID, EffectID: a.EffectID, Attempt: a.Attempt,
		OrderingModel: flow.ReverseCompletion, Reason: reason,
	}
	t.say(event.CompensationFailed, a.NodeID, h)
	if u.Halts {
		t.mark(a, event.InverseMark{Step: event.InverseHeld})
		t.because(event.CompensationManual, a.NodeID, h)
	}
	t.goOn()
}

// undoDue lets the timers of an undoing fire.
func (t *turn) undoDue() {
	u := t.s.Undoing
	if !u.Active() || u.Held != 0 {
		return
	}
	a := u.current()
	switch {
	case a.Phase == Retrying && u.Gate == nil && !t.now.Before(a.Due):
		t.try(a)
	case a.Phase == Executing && !a.Deadline.IsZero() && !t.now.Before(a.Deadline):
		t.effect(Abort{NodeID: a.NodeID, Visit: a.Visit, Attempt: a.Attempt, Inverse: a.Order})
		e := fault(problem.RunTimeout, "the inverse action exceeded its time limit")
		again := true
		e.Retryable = &again
		t.notUndone(a, e)
	}
}

// undoAgain takes over an undoing whose owner was lost: what was under way is asked
// for once more under the same name, and nothing else is.
func (t *turn) undoAgain(alive []Call) {
	u := t.s.Undoing
	if !u.Active() || u.Held != 0 {
		return
	}
	a := u.current()
	if a.Phase == Executing {
		for _, c := range alive {
			if c == (Call{a.NodeID, a.Visit, a.Attempt, a.Order}) {
				return
			}
		}
		t.try(a)
		return
	}
	t.undoDue()
	t.goOn()
}
