package run

import (
	"fmt"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/go-json-experiment/json/jsontext"
)

// Gate is an approval that an undoing waits for. The run has ended, so its status
// does not show the wait; its inbox does.
type Gate struct {
	Order     int        `json:"order"`
	Purpose   string     `json:"purpose"` // the step that follows a yes: begun, skipped or terminated
	By        string     `json:"by,omitzero"`
	Reason    string     `json:"reason,omitzero"`
	Interrupt *Interrupt `json:"interrupt,omitzero"`
}

// entryShown is a plan's entry as an approver sees it: what would be done, with what.
type entryShown struct {
	EffectID      string         `json:"effectId"`
	NodeID        string         `json:"nodeId"`
	Order         int            `json:"order"`
	Ordinal       int            `json:"compensationOrdinal"`
	NodeTypeID    string         `json:"nodeTypeId"`
	Inputs        jsontext.Value `json:"inputs,omitzero"`
	PlanVersion   int            `json:"planVersion"`
	Justification string         `json:"justification,omitzero"`
}

// openGate asks for an approval before a step of an action: before it is done, or
// before it is given up.
func (t *turn) openGate(a *Action, purpose string, c Operate) {
	u := t.s.Undoing
	t.mark(a, event.InverseMark{Step: event.InverseGate, Purpose: purpose, By: c.By, Reason: c.Reason, Request: c.Request})
	shown := entryShown{
		EffectID: a.EffectID, NodeID: a.NodeID, Order: a.Order, Ordinal: a.Ordinal, NodeTypeID: a.TypeID,
		Inputs: a.Inputs, PlanVersion: u.Version, Justification: c.Reason,
	}
	if step, _, ok := t.s.node(a.NodeID); ok && step.Inverse != nil && t.s.secret(step.Inverse) {
		shown.Inputs, _ = t.s.maskValue(a.Inputs)
	}
	title := map[string]string{
		event.InverseBegun:      "Undo the effect of %s?",
		event.InverseSkipped:    "Give up undoing the effect of %s?",
		event.InverseTerminated: "Give up undoing the run, from the effect of %s on?",
	}[purpose]
	data := map[string]any{
		"artifactId": a.EffectID, "artifactType": "compensation", "title": fmt.Sprintf(title, a.NodeID),
		"artifactData": shown, "actions": []string{"accept", "reject"},
	}
	key := fmt.Sprintf("%s:compensation:%d:%d", t.s.ID.Opaque, a.Order, u.Asked)
	t.because(event.InterruptRequested, a.NodeID, event.Interrupt{Kind: "approval", Key: key, Data: event.Encode(data)})
	t.because(event.CompensationPaused, a.NodeID, event.Halt{
		CompensationID: u.ID, NodeID: a.NodeID, EffectID: a.EffectID, OrderingModel: flow.ReverseCompletion,
	})
}

// foldGate opens the interrupt of the gate that was noted just before it.
func (s *State) foldGate(e *event.Event) error {
	req, err := event.Read[event.Interrupt](e.Truth())
	if err != nil {
		return err
	}
	return s.ofUndoing(func(u *Undoing) {
		if u.Gate == nil {
			return
		}
		id := ids.Interrupt(s.ID, "compensation\x00"+e.NodeID, u.Gate.Order, u.Asked)
		u.Asked++
		u.Gate.Interrupt = &Interrupt{ID: id, NodeID: e.NodeID, Request: req, OpenedAt: e.Time}
		s.opened = append(s.opened, u.Gate.Interrupt)
	})
}

// gate is the open gate of an undoing, if it is what an answer is meant for.
func (s *State) gate(nodeID string, id ids.Run) *Gate {
	u := s.Undoing
	if u == nil || u.Gate == nil || u.Gate.Interrupt == nil {
		return nil
	}
	if i := u.Gate.Interrupt; i.NodeID == nodeID && (id.IsZero() || i.ID == id) {
		return u.Gate
	}
	return nil
}

// pass takes in the answer to a gate.
func (t *turn) pass(g *Gate, c Resolve) error {
	i, u := g.Interrupt, t.s.Undoing
	ground, err := c.judge(i)
	if err != nil {
		return err
	}
	if err := t.check(i, c.Value); err != nil {
		return err
	}
	v := verdictOf(i, c.Value)
	a := u.Actions[g.Order-1]
	p := event.Resolution{
		NodeID: i.NodeID, InterruptID: i.ID.String(), Kind: i.Request.Kind, ResumeValue: c.Value,
		ResolvedBy: &c.Subject, Decision: v.decision, Action: v.action,
		X: &event.ResolutionX{
			Eligibility: ground.Eligibility, Ref: ground.Ref, Source: ground.Source, Via: c.Via, Request: c.Request,
		},
	}
	purpose, given := g.Purpose, Operate{By: g.By, Reason: g.Reason}
	t.say(event.InterruptResolved, i.NodeID, p)
	t.audit(principal(&c.Subject), "compensation.approve", v.accept)
	switch {
	case t.err != nil:
	case v.accept && purpose == event.InverseBegun:
		t.goOn()
	case v.accept:
		t.giveUpUndoing(a, purpose, given)
	case purpose == event.InverseBegun:
		t.exhausted(a, event.InverseMark{Step: event.InverseFailed, Attempt: u.nextAttempt(a.NodeID), Code: event.ApprovalDenied}, event.ApprovalDenied)
	default:
		t.goOn() // it is not given up: everything stays as it was
	}
	return nil
}

// foldPassed closes a gate.
func (s *State) foldPassed(e *event.Event) error {
	p, err := event.Read[event.Resolution](e.Truth())
	if err != nil {
		return err
	}
	return s.ofUndoing(func(u *Undoing) {
		g := u.Gate
		if g == nil {
			return
		}
		s.dropGate()
		if a := u.Actions[g.Order-1]; g.Purpose == event.InverseBegun {
			a.Phase, a.Approved = Idle, p.Decision == "granted"
		}
	})
}

// dropGate closes the gate without an answer: what it asks about has changed.
func (s *State) dropGate() {
	if g := s.Undoing.Gate; g != nil {
		if g.Interrupt != nil {
			s.closed = append(s.closed, g.Interrupt.ID)
		}
		s.Undoing.Gate = nil
	}
}
