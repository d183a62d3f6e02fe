package run

import (
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/flow"
)

// The kind-specific types that are older than the two which every kind uses. Their
// payloads are the same. A host says them beside those for consumers that have not
// moved on, where its operator has such (spec v2 interrupt.md §Events). They change
// nothing in a fold.

// twinOfRequest says what is asked once more.
func (t *turn) twinOfRequest(nodeID string, req event.Interrupt) {
	if !t.lim.LegacyEvents {
		return
	}
	switch req.Kind {
	case "approval":
		t.because(event.ApprovalRequested, nodeID, req)
	case "clarification":
		t.because(event.ClarificationRequested, nodeID, req)
	}
}

// twinOfAnswer says how it was resolved once more, before interrupt.resolved does.
func (t *turn) twinOfAnswer(step *flow.Step, p event.Resolution) {
	if !t.lim.LegacyEvents {
		return
	}
	switch {
	case p.Decision == "granted":
		t.sayAnswer(event.ApprovalGranted, step, p)
	case p.Decision == "rejected":
		t.sayAnswer(event.ApprovalRejected, step, p)
	case p.Kind == "clarification":
		t.sayAnswer(event.ClarificationResolved, step, p)
	}
}
