package run

import (
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/internal/problem"
)

// What an operator may ask of a compensation.
const (
	UndoStart      = "start"      // begin to undo a run that has ended
	UndoRetry      = "retry"      // try an action again, under the same name
	UndoSkip       = "skip"       // give an action up
	UndoSubstitute = "substitute" // let another node type do it
	UndoTerminate  = "terminate"  // give the rest of the plan up, for good
)

// Operate is an operator's word on a run's compensation.
type Operate struct {
	Action  string // an UndoX
	Order   int    // the action of the plan; 0 for the one that the plan waits at
	TypeID  string // of a substitute
	Reason  string // of a skip
	By      string // who asks, as the audit names him
	Request string // hash that names the request, for its repetition; may be empty
}

func (t *turn) operate(c Operate) error {
	s := t.s
	if s.Ended == "" {
		return s.conflict("the run has not ended; its effects are undone after its end")
	}
	if c.Action == UndoStart {
		return t.operateStart(c)
	}
	u := s.Undoing
	if u == nil {
		return s.conflict("nothing of this run is being undone")
	}
	if u.spent() {
		return s.conflict("this compensation has come to its end")
	}
	a, err := u.meant(c.Order)
	if err != nil {
		return err
	}
	switch a.Phase {
	case Done:
		return s.conflict("action %d has been done, and is never done twice", a.Order).With("order", a.Order)
	case Executing:
		if c.Action != UndoTerminate {
			return s.conflict("action %d is under way", a.Order).With("order", a.Order)
		}
	}
	if x := s.undoCall(); x != nil && a.Order < x.Order && (c.Action == UndoRetry || c.Action == UndoSubstitute) {
		return s.conflict("action %d is under way; there is one at a time", x.Order).With("order", x.Order)
	}
	if a.Irreversible && c.Action != UndoTerminate {
		return s.conflict("the effect of node %s cannot be undone", a.NodeID).With("order", a.Order)
	}
	t.audit(c.By, "compensation."+c.Action, true)
	switch c.Action {
	case UndoRetry:
		t.anew(a, event.InverseMark{Step: event.InverseAgain, By: c.By, Request: c.Request})
	case UndoSubstitute:
		t.anew(a, event.InverseMark{Step: event.InverseReplaced, TypeID: c.TypeID, By: c.By, Request: c.Request})
	case UndoSkip:
		t.waive(a, event.InverseSkipped, c)
	case UndoTerminate:
		t.waive(a, event.InverseTerminated, c)
	default:
		return problem.Invalid("action", "%q is not start, retry, skip, substitute or terminate", c.Action)
	}
	return nil
}

func (t *turn) operateStart(c Operate) error {
	s := t.s
	if s.Undoing != nil {
		return s.conflict("a run is undone once")
	}
	if !s.wf.Policy.Fires(flow.OnOperatorRequest) {
		return s.conflict("the workflow's policy does not name %s", flow.OnOperatorRequest).
			With("field", "settings.compensation.triggers")
	}
	if s.undoable() {
		t.audit(c.By, "compensation.start", true)
		t.undo(flow.OnOperatorRequest, c.Request)
	}
	return nil // with nothing to undo, nothing was asked for
}

// conflict refuses an operation for which the run does not stand right.
func (s *State) conflict(format string, args ...any) *problem.Error {
	return problem.New(problem.RunStateConflict, format, args...).
		With("runStatus", s.Status()).With("compensationStatus", s.CompensationStatus())
}

// meant finds the action an operator speaks of.
func (u *Undoing) meant(order int) (*Action, error) {
	if order == 0 {
		if order = u.Held; order == 0 {
			a := u.current()
			if a == nil {
				return nil, problem.Invalid("order", "say which action of the plan is meant")
			}
			order = a.Order
		}
	}
	if order < 1 || order > len(u.Actions) {
		return nil, problem.Invalid("order", "the plan has the actions 1 to %d", len(u.Actions))
	}
	return u.Actions[order-1], nil
}

// audit records who decided what about a compensation (spec v2 security-defaults.md
// §Compensation, the operator action family).
func (t *turn) audit(by, action string, allowed bool) {
	if by != "" {
		t.say(event.AuthorizationDecided, "", event.Authorized{
			Principal: by, Action: action, Resource: t.s.ID.String(), Allowed: allowed,
		})
	}
}

// anew lets an action be tried again.
func (t *turn) anew(a *Action, m event.InverseMark) {
	t.closeGate()
	t.mark(a, m)
	t.goOn()
}

// waive gives an action up, or asks first whether that may be.
func (t *turn) waive(a *Action, step string, c Operate) {
	asks := a.WaiveApproval
	if step == event.InverseTerminated {
		for _, x := range t.s.Undoing.Actions {
			asks = asks || !x.Phase.final() && x.WaiveApproval
		}
	}
	t.closeGate()
	if asks {
		t.openGate(a, step, c)
		return
	}
	t.giveUpUndoing(a, step, c)
}

// closeGate withdraws whatever approval is being asked for: the operator's word is
// newer than the question.
func (t *turn) closeGate() {
	u := t.s.Undoing
	if g := u.Gate; g != nil && g.Interrupt != nil {
		i := g.Interrupt
		t.say(event.InterruptResolved, i.NodeID, event.Resolution{
			NodeID: i.NodeID, InterruptID: i.ID.String(), Kind: i.Request.Kind, Reason: "cancelled",
		})
	}
}

// giveUpUndoing ends one action without its being done, or all that is left.
func (t *turn) giveUpUndoing(a *Action, step string, c Operate) {
	u := t.s.Undoing
	held := u.Held
	give := func(x *Action) {
		if x.Phase == Executing {
			t.effect(Abort{NodeID: x.NodeID, Visit: x.Visit, Attempt: x.Attempt, Inverse: x.Order})
		}
		t.mark(x, event.InverseMark{Step: step, Attempt: u.nextAttempt(x.NodeID), By: c.By, Reason: c.Reason, Request: c.Request})
	}
	if step == event.InverseSkipped {
		give(a)
		t.goOn()
		return
	}
	for _, x := range u.Actions {
		if !x.Phase.final() || x.Order == held || x == a && x.Phase == Broken {
			give(x)
		}
	}
	t.because(event.CompensationFailed, a.NodeID, event.Halt{
		CompensationID: u.ID, NodeID: a.NodeID, EffectID: a.EffectID, OrderingModel: flow.ReverseCompletion, Reason: event.OperatorTerminated,
	})
}

// Disown forgets the effects the log so far tells of: a fork begins with the log of
// another run, which made them and alone may undo them.
func (s *State) Disown() { s.Commits, s.Facts = nil, 0 }
