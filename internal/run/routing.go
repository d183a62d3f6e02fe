package run

import (
	"slices"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/node"
)

// routing decides which outgoing links a finished step follows. A condition
// that cannot be evaluated is an error: a silent "no" would hide a mistake.
func (t *turn) routing(step *flow.Step, out Outcome, cause *event.Error, ports []string) ([]string, *node.Error) {
	taken := []string{}
	repeat := false
	for _, i := range step.Out {
		l := &t.s.wf.Links[i]
		ok, err := t.follows(step, l, out, cause, ports)
		if err != nil {
			if out == Success {
				return nil, err
			}
			continue
		}
		if ok {
			taken = append(taken, l.ID)
			repeat = repeat || l.Back
		}
	}
	if repeat {
		// A loop that starts over goes first: the ways out wait for its end.
		kept := taken[:0]
		for _, id := range taken {
			if t.link(step, id).Back {
				kept = append(kept, id)
			}
		}
		taken = kept
	}
	return taken, nil
}

func (t *turn) link(step *flow.Step, id string) *flow.Link {
	for _, i := range step.Out {
		if l := &t.s.wf.Links[i]; l.ID == id {
			return l
		}
	}
	return nil
}

func (t *turn) follows(step *flow.Step, l *flow.Link, out Outcome, cause *event.Error, ports []string) (bool, *node.Error) {
	if l.Edge == nil {
		return true, nil
	}
	if l.Back && !repeats(l.Edge.TriggerRule, out) {
		return false, nil
	}
	if port := l.Edge.SourceOutput; ports != nil && port != "" && !contains(ports, port) {
		return false, nil
	}
	if l.Cond == nil {
		return true, nil
	}
	sc := t.s.scope(step)
	sc.cause = cause
	outputs, _ := sc.Lookup("outputs")
	ok, err := l.Cond.Eval(sc, outputs)
	if err != nil {
		e := node.Fail(string(problem.NodeConfigInvalid), "condition of edge %s: %v", l.ID, err)
		e.Details = map[string]any{"edgeId": l.ID}
		return false, e
	}
	return ok, nil
}

// repeats says whether a loop's back edge fires for an outcome, by its rule.
func repeats(rule string, out Outcome) bool {
	switch rule {
	case flow.AllComplete:
		return true
	case flow.AnyFailed:
		return out == Failure
	}
	return out == Success
}

// overrun is a loop that would start over more often than it may.
type overrun struct {
	loop  *flow.Loop
	limit int
	count int
	kept  []string // the links that are followed all the same
}

func (t *turn) overrun(step *flow.Step, taken []string) *overrun {
	limit := t.s.maxRepeats(t.lim)
	if limit <= 0 {
		return nil
	}
	for _, id := range taken {
		l := t.link(step, id)
		if !l.Back || t.s.Loops[l.Loop] < limit {
			continue
		}
		return &overrun{loop: &t.s.wf.Loops[l.Loop], limit: limit, count: t.s.Loops[l.Loop] + 1, kept: []string{}}
	}
	return nil
}

// loopLimit records the breach and fails the run (spec v2 runs.md §run section).
func (t *turn) loopLimit(o *overrun) {
	id := t.s.wf.Steps[o.loop.Header].Node.ID
	t.say(event.LoopbackLimit, id, event.Loopback{NodeID: id, Iterations: o.count, Limit: o.limit})
	t.because(event.CapBreached, id, event.Breach{Kind: "loop-iterations", Limit: int64(o.limit), Observed: int64(o.count), NodeID: id})
	t.breach(*fault(problem.LoopLimitExceeded, "the loop at node %s may start over %d times", id, o.limit), id)
}

// leaveBody lets go of whatever else is still at work in a loop that starts over,
// and lists it. What the loop's end says of it comes behind the event that ends it
// (see left), for a consequence follows its cause.
func (t *turn) leaveBody(step *flow.Step, taken []string) []int {
	var out []int
	for _, id := range taken {
		l := t.link(step, id)
		if !l.Back {
			continue
		}
		for _, b := range t.s.wf.Loops[l.Loop].Body {
			if b != step.Index && t.s.Nodes[b].Phase.active() && !slices.Contains(out, b) {
				t.letGo(b)
				out = append(out, b)
			}
		}
	}
	return out
}

// left records what leaveBody has let go of. The event before is its cause.
func (t *turn) left(nodes []int) {
	cause := t.s.Seq
	for _, i := range nodes {
		id := t.s.wf.Steps[i].Node.ID
		t.emit(event.Draft{Type: event.NodeCancelled, NodeID: id, Causation: cause,
			Payload: event.Encode(event.NodeCancel{NodeID: id, Reason: "loop-repeated"})})
	}
}

// stop cancels one active node.
func (t *turn) stop(index int, reason string) {
	t.letGo(index)
	id := t.s.wf.Steps[index].Node.ID
	t.say(event.NodeCancelled, id, event.NodeCancel{NodeID: id, Reason: reason})
}

// letGo asks for the end of a node's call and of its child runs.
func (t *turn) letGo(index int) {
	n := t.s.Nodes[index]
	if n.Phase == Executing {
		t.effect(Abort{NodeID: t.s.wf.Steps[index].Node.ID, Visit: n.Visit, Attempt: n.Attempt})
	}
	t.dropChildren(n)
}

// dropChildren asks for the end of a node's open child runs.
func (t *turn) dropChildren(n *Node) {
	for _, c := range n.Children {
		if Terminal(c.Status) || c.Detached {
			continue
		}
		if id, err := parseRun(c.RunID); err == nil {
			t.effect(CancelChild{RunID: id})
		}
	}
}
