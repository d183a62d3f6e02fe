package run

import (
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/problem"
)

// NodeEgress records what was decided on an outbound call of an executing node,
// before anything leaves. It is refused if the run does not wait for the call any
// more: then nothing may leave either.
type NodeEgress struct {
	NodeID         string
	Visit, Attempt int
	Inverse        int // as NodeResult
	Decision       event.Egress
}

func (NodeEgress) command() {}

func (t *turn) egress(c NodeEgress) error {
	if !t.awaits(c) {
		return problem.New(problem.RunStateConflict, "the run does not wait for this call of node %s any more", c.NodeID)
	}
	t.say(event.EgressDecided, c.NodeID, c.Decision)
	return nil
}

func (t *turn) awaits(c NodeEgress) bool {
	if c.Inverse == 0 {
		_, _, ok := t.live(c.NodeID, c.Visit, c.Attempt)
		return ok
	}
	u := t.s.Undoing
	if u == nil || c.Inverse < 1 || c.Inverse > len(u.Actions) {
		return false
	}
	a := u.Actions[c.Inverse-1]
	return a.Phase == Executing && a.Attempt == c.Attempt
}
