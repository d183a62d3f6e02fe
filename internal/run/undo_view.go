package run

import (
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/flow"
	"github.com/go-json-experiment/json/jsontext"
)

// What compensationStatus says (spec v2 runs.md §Snapshot).
const (
	UndoNone      = "none"
	UndoPending   = "pending"
	UndoRunning   = "running"
	UndoCompleted = "completed"
	UndoPartial   = "partial"
	UndoFailed    = "failed"
	UndoManual    = "manual"
)

// CompensationStatus is how far the undoing of the run's effects has come.
func (s *State) CompensationStatus() string {
	u := s.Undoing
	switch {
	case u == nil || !u.Ready:
		return UndoNone
	case u.Held != 0:
		return UndoManual
	case u.Active() && !u.Started:
		return UndoPending
	case u.Active():
		return UndoRunning
	}
	done := 0
	for _, a := range u.Actions {
		if a.Phase == Done {
			done++
		}
	}
	switch done {
	case len(u.Actions):
		return UndoCompleted
	case 0:
		return UndoFailed
	}
	return UndoPartial
}

// Settled reports whether nothing can ever happen to the run any more: it has ended,
// and nothing of it is left to undo, now or when an operator asks.
func (s *State) Settled() bool {
	if s.Ended == "" {
		return false
	}
	if u := s.Undoing; u != nil {
		return u.spent()
	}
	return !s.wf.Policy.Fires(flow.OnOperatorRequest) || !s.undoable()
}

// undoCall is the call that an undoing waits for; nil for none.
func (s *State) undoCall() *Action {
	if u := s.Undoing; u.Active() && u.Held == 0 {
		if a := u.current(); a.Phase == Executing {
			return a
		}
	}
	return nil
}

// undoWake is when an undoing has something to do by itself; zero for never.
func (s *State) undoWake() time.Time {
	u := s.Undoing
	if !u.Active() || u.Held != 0 {
		return time.Time{}
	}
	switch a := u.current(); a.Phase {
	case Retrying:
		if u.Gate == nil {
			return a.Due
		}
	case Executing:
		return a.Deadline
	}
	return time.Time{}
}

// Projection is the answer of getRunCompensation (closed).
type Projection struct {
	RunID    string          `json:"runId"`
	Status   string          `json:"status"`
	Plan     []PlanShown     `json:"plan"`
	Attempts []AttemptsShown `json:"attempts"`
}

// PlanShown is one action of the plan, in the order in which it is carried out.
type PlanShown struct {
	NodeID             string         `json:"nodeId"`
	Order              int            `json:"order"`
	Policy             jsontext.Value `json:"policy,omitzero"` // in force for this action
	IrreversibleEffect bool           `json:"irreversibleEffect,omitzero"`
}

// AttemptsShown is one attempt that came to something.
type AttemptsShown struct {
	NodeID  string `json:"nodeId"`
	Attempt int    `json:"attempt"`
	Outcome string `json:"outcome"`
	At      string `json:"at"`
	Reason  string `json:"reason,omitzero"`
}

// Compensation projects the plan and the attempts.
func (s *State) Compensation() Projection {
	out := Projection{RunID: s.ID.String(), Status: s.CompensationStatus(), Plan: []PlanShown{}, Attempts: []AttemptsShown{}}
	if out.Status == UndoManual {
		out.Status = "manual-intervention" // the projection has a word of its own
	}
	if s.Undoing == nil {
		return out
	}
	for _, a := range s.Undoing.Actions {
		p := PlanShown{NodeID: a.NodeID, Order: a.Order, IrreversibleEffect: a.Irreversible}
		if !a.Irreversible && s.wf.Policy != nil {
			force := *s.wf.Policy
			force.Retry = &flow.Retry{MaxAttempts: &a.MaxAttempts, BackoffMs: &a.BackoffMs}
			p.Policy = event.Encode(force)
		}
		out.Plan = append(out.Plan, p)
	}
	for _, x := range s.Undoing.Attempts {
		out.Attempts = append(out.Attempts, AttemptsShown{x.NodeID, x.Attempt, x.Outcome, Stamp(x.At), x.Reason})
	}
	return out
}
