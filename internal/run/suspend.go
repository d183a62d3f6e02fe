package run

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/node"
	"github.com/go-json-experiment/json/jsontext"
)

// unreachable refuses a gate that nobody could ever pass, from whatever node: its
// list is shorter than its quorum, and each on it has one vote.
func unreachable(req event.Interrupt) *node.Error {
	if req.Kind != "approval" {
		return nil
	}
	d := (&Interrupt{Request: req}).approval()
	listed := map[string]bool{}
	for _, s := range d.ApproversList {
		listed[s] = true
	}
	if len(listed) == 0 || d.RequiredApprovals <= len(listed) || d.OverrideBypassesQuorum || len(d.ApproverGroupRefs)+len(d.ApproverRoleRefs) > 0 {
		return nil
	}
	return node.Fail(node.CodeConfig, "the gate wants %d approvals, but only %d may approve", d.RequiredApprovals, len(listed))
}

// maxKey is the most characters of a key (spec v2 suspend-request.schema.json).
const maxKey = 256

// maxTold is how often in a row a node is given answers it has had before.
const maxTold = 1000

// key is the re-entry key of what a node asks. It comes of run, node and visit, so
// that a loop asks anew each time it comes around, and of the author's own key or,
// failing that, the ordinal of what the visit asks (spec v2 interrupt.md §Re-entry
// and resume values).
func (s *State) key(nodeID string, n *Node, chosen string) string {
	return n.key(s.ID.Opaque, nodeID, chosen)
}

func (n *Node) key(run, nodeID, chosen string) string {
	if chosen == "" {
		chosen = strconv.Itoa(n.Asked)
	} else {
		// The mark keeps an author's "0" apart from the first ordinal.
		chosen = "=" + chosen
	}
	k := fmt.Sprintf("%s:%s:%d:%s", run, nodeID, n.Visit, chosen)
	if len(k) > maxKey {
		sum := sha256.Sum256([]byte(k))
		k = k[:maxKey-2*len(sum)] + hex.EncodeToString(sum[:])
		k = strings.ToValidUTF8(k, "")
	}
	return k
}

// answer finds what the run's log has answered already of what a node asks. The
// keys in the part of the log that a fork has inherited name the run that made them.
func (s *State) answer(nodeID string, n *Node, chosen string) (*Answer, bool) {
	a, known := n.Answers[s.key(nodeID, n, chosen)]
	if known || s.Fork == nil {
		return a, known
	}
	for k := range n.Answers {
		origin, _, _ := strings.Cut(k, ":")
		if a, known := n.Answers[n.key(origin, nodeID, chosen)]; known {
			return a, true
		}
	}
	return nil, false
}

// Answered reports whether the log answers already what a node asks for, under the
// key of the author's choice.
func (s *State) Answered(nodeID, chosen string) bool {
	_, n, ok := s.node(nodeID)
	if !ok {
		return false
	}
	_, known := s.answer(nodeID, n, chosen)
	return known
}

// suspend opens the interrupt a call asked for, unless the run's log answers it
// already: a key is asked at most once in a run's life (spec v2 interrupt.md
// §Payload).
func (t *turn) suspend(step *flow.Step, r node.Result, recorded []event.Event, writes []event.Draft) *node.Error {
	s, n := t.s, t.s.Nodes[step.Index]
	in := r.Interrupt()
	req := event.Interrupt{Kind: in.Kind, Key: in.Key, Data: jsontext.Value(in.Data), ResumeSchema: jsontext.Value(in.ResumeSchema)}
	if in.Timeout > 0 {
		ms := in.Timeout.Milliseconds()
		req.TimeoutMs = &ms
	}
	if e := unreachable(req); e != nil {
		return e
	}
	if field, err := flow.AnswerSchemas(req.Kind, req.ResumeSchema, req.Data); err != nil {
		return node.Fail(node.CodeConfig, "%s of the interrupt %v", field, err)
	}
	if len(req.Key) > maxKey {
		return node.Fail(node.CodeConfig, "an interrupt's key has at most %d characters", maxKey)
	}
	req.Key = s.key(step.Node.ID, n, req.Key)
	if a, known := s.answer(step.Node.ID, n, in.Key); known {
		// It is told again what it knows. A node that never gets past that would
		// ask for ever, and leave no trace.
		if n.told++; n.told > maxTold {
			return node.Fail(node.CodeConfig, "the node asks again and again for what has been answered (key %q)", in.Key)
		}
		t.emitAll(writes)
		t.execute(step, &Wake{Answer: a}, jsontext.Value(r.State()))
		return nil
	}
	n.told = 0
	if s.Replaying() {
		return t.answerFrom(step, r, req.Key, recorded, writes)
	}
	t.emitAll(writes)
	id := ids.Interrupt(s.ID, step.Node.ID, n.Visit, n.Asked)
	t.say(event.InterruptRequested, step.Node.ID, req)
	asked := s.Seq
	t.twinOfRequest(step.Node.ID, req)
	p := event.NodeSuspend{NodeID: step.Node.ID, InterruptID: id.String(), Kind: req.Kind, Key: req.Key}
	d := event.Draft{Type: event.NodeSuspended, NodeID: step.Node.ID, Causation: asked, Payload: event.Encode(p)}
	if state := r.State(); len(state) > 0 {
		// What a node keeps for itself is nobody else's business.
		p.X = &event.SuspendX{State: jsontext.Value(state)}
		d.Sealed = event.Encode(p)
	}
	t.emit(d)
	t.useSignal(step, n)
	return nil
}

// useSignal answers a fresh external-event interrupt with the first kept signal
// that fits it.
func (t *turn) useSignal(step *flow.Step, n *Node) {
	if t.err != nil || n.Interrupt == nil {
		return
	}
	for i, sig := range t.s.Signals[step.Node.ID] {
		if t.check(n.Interrupt, sig.Value) != nil {
			continue
		}
		at := i
		t.note("debug", step.Node.ID, "kept answer used", &event.Mark{Taken: &at})
		t.accept(step, n, verdictOf(n.Interrupt, sig.Value), Resolve{Value: sig.Value, Subject: sig.Subject}, Ground{})
		return
	}
}
