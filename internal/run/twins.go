package run

import (
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/flow"
)

// The kind-specific types that are older than the two which every kind uses. Their
// payloads are the same. A host says them beside those for consumers that have not
// moved on, where its operator has such (spec v2 interrupt.md §Events), or where it
// serves v1, whose clients were built on them (spec v1 interrupt.md). They are in the
// log and not made up for a reader, because every event there has a sequence of its
// own. They change nothing in a fold.

// twinOfRequest says what is asked once more.
func (t *turn) twinOfRequest(nodeID string, req event.Interrupt) {
	if !t.lim.LegacyEvents && !t.lim.OlderMajor {
		return
	}
	switch req.Kind {
	case "approval":
		t.because(event.ApprovalRequested, nodeID, req)
	case "clarification":
		t.because(event.ClarificationRequested, nodeID, req)
	}
}

// twinOfAnswer says how it was resolved once more, before interrupt.resolved does. v1
// knows granted and rejected of another kind of gate only: it says received of every
// answer, of what time has decided, too.
func (t *turn) twinOfAnswer(step *flow.Step, p event.Resolution) {
	if t.lim.OlderMajor && p.Kind == "approval" {
		t.sayAnswer(event.ApprovalReceived, step, p)
	}
	switch {
	case p.Decision == "granted" && t.lim.LegacyEvents:
		t.sayAnswer(event.ApprovalGranted, step, p)
	case p.Decision == "rejected" && t.lim.LegacyEvents:
		t.sayAnswer(event.ApprovalRejected, step, p)
	case p.Kind == "clarification" && (t.lim.LegacyEvents || t.lim.OlderMajor && p.Reason == ""):
		t.sayAnswer(event.ClarificationResolved, step, p)
	}
}

// decided reports whether an approval.received is the twin of what resolved its
// interrupt, and no vote among several.
func decided(p *event.Resolution) bool { return p.Decision != "" || p.Action == "refine" }
