package run

import (
	"fmt"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/node"
	"github.com/go-json-experiment/json/jsontext"
)

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
	if req.Key == "" {
		req.Key = fmt.Sprintf("%s:%s:%d:%d", s.ID.Opaque, step.Node.ID, n.Visit, n.Asked)
	} else if len(req.Key) > 256 {
		return node.Fail(node.CodeConfig, "an interrupt's key has at most 256 characters")
	}
	if a, known := s.Answers[req.Key]; known {
		t.emitAll(writes)
		t.execute(step, &Wake{Answer: a}, jsontext.Value(r.State()))
		return nil
	}
	if s.Replaying() {
		return t.answerFrom(step, r, req.Key, recorded, writes)
	}
	for _, other := range s.Interrupts() {
		if other.Request.Key == req.Key {
			return node.Fail(node.CodeConfig, "interrupt key %q is open already", req.Key)
		}
	}
	t.emitAll(writes)
	id := ids.Interrupt(s.ID, step.Node.ID, n.Visit, n.Asked)
	t.say(event.InterruptRequested, step.Node.ID, req)
	p := event.NodeSuspend{NodeID: step.Node.ID, InterruptID: id.String(), Kind: req.Kind, Key: req.Key}
	d := event.Draft{Type: event.NodeSuspended, NodeID: step.Node.ID, Causation: s.Seq, Payload: event.Encode(p)}
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
		t.accept(step, n, verdictOf(n.Interrupt, sig.Value), Resolve{Value: sig.Value, Subject: sig.Subject}, "")
		return
	}
}
