package run

import (
	"strconv"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/node"
	"github.com/go-json-experiment/json/jsontext"
)

// await starts the child runs a call asked for and parks its node. A child's id
// follows from the visit and its place in it, so that a repeated step names the
// same child.
func (t *turn) await(step *flow.Step, r node.Result, writes []event.Draft) *node.Error {
	if t.s.Replaying() {
		return node.Fail(node.CodeInternal, "node %s asked for child runs in a replay", step.Node.ID) // its outcome is taken
	}
	n := t.s.Nodes[step.Index]
	asked := r.Children()
	if len(asked) == 0 && n.children().open == 0 && !n.news() {
		return node.Fail(node.CodeInternal, "node %s waits for children it never started", step.Node.ID)
	}
	if max := t.lim.MaxChildren; max > 0 && len(n.Children)+len(asked) > max {
		return node.Fail(string(problem.RecursionLimitExceeded), "node %s may start at most %d child runs", step.Node.ID, max)
	}
	if max := t.lim.MaxDepth; max > 0 && len(asked) > 0 && t.depth() >= max {
		return node.Fail("sub_chain_depth_exceeded", "child runs are nested deeper than %d levels", max)
	}
	t.emitAll(writes)
	mark := &event.SavedMark{State: jsontext.Value(r.State())}
	if len(n.Saved) > 0 && string(mark.State) == string(n.Saved) {
		mark.State, mark.Same = nil, true // a node with many children must not fill the log
	}
	for _, c := range asked {
		id := ids.Run{Tenant: t.s.ID.Tenant, Opaque: ids.Derive(t.now, t.s.ID.Opaque, step.Node.ID, strconv.Itoa(n.Visit), strconv.Itoa(len(n.Children)))}
		t.say(event.NodeDispatched, step.Node.ID, event.NodeDispatch{
			ChildRunID: id.String(), ChildWorkflowID: c.WorkflowID, ChildStatus: Pending,
		})
		mark.Keys = append(mark.Keys, event.ChildKey{Key: c.Key, Detached: c.Detached})
		t.effect(StartChild{ID: id, NodeID: step.Node.ID, WorkflowID: c.WorkflowID, Inputs: values(c.Inputs)})
	}
	shown := *mark
	shown.State = nil
	t.private(step.Node.ID, "awaiting children", event.Mark{Saved: &shown}, event.Mark{Saved: mark}, len(mark.State) > 0)
	if n.news() && !t.held() {
		// A child ended while the call was being made.
		t.wake(step, n)
	}
	return nil
}

func (t *turn) depth() int {
	if t.s.Parent == nil {
		return t.s.Depth
	}
	return t.s.Parent.Depth
}

// news reports whether a child has ended that the node has not been told of.
// Only a paused run lets that happen: otherwise the news wakes the node.
func (n *Node) news() bool { return len(n.children().untold) > 0 }

// childNews records a change of a child's status and wakes the node that waits
// for it when the child has ended.
func (t *turn) childNews(c ChildNews) {
	s := t.s
	if s.Ended != "" {
		return
	}
	child := s.findChild(c.RunID.String())
	if child == nil || child.Status == c.Status || Terminal(child.Status) {
		return
	}
	var step *flow.Step
	var n *Node
	nodeID := ""
	if at, ok := s.placeOf(c.RunID.String()); ok {
		step, n = &s.wf.Steps[at.node], s.Nodes[at.node]
		nodeID = step.Node.ID
	}
	t.note("debug", nodeID, "child run is "+c.Status, &event.Mark{Child: &event.ChildMark{RunID: c.RunID.String(), Status: c.Status}})
	if Terminal(c.Status) && n != nil && n.Phase == Awaiting && !s.Paused && s.Draining == nil && s.Closing == nil {
		t.wake(step, n)
	}
	t.advance()
}
