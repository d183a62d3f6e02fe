package event

import "time"

import "github.com/go-json-experiment/json/jsontext"

// NodeStart is the payload of node.started. Attempt counts from 0.
type NodeStart struct {
	NodeID  string `json:"nodeId"`
	TypeID  string `json:"typeId"`
	Attempt int    `json:"attempt"`
}

// Routing records which outgoing edges a finished node took, where any of them
// carries a condition: the fold then never evaluates an expression.
type Routing struct {
	Edges []string `json:"edges"`
}

// NodeDone is the payload of node.completed.
type NodeDone struct {
	NodeID     string         `json:"nodeId"`
	Outputs    jsontext.Value `json:"outputs,omitzero"`
	DurationMs int64          `json:"durationMs"`
	X          *Routing       `json:"x-fermata,omitzero"`
}

// NodeFail is the payload of node.failed.
type NodeFail struct {
	NodeID   string   `json:"nodeId"`
	Error    Error    `json:"error"`
	Attempts int      `json:"attempts"`
	X        *Routing `json:"x-fermata,omitzero"`
}

// NodeSkip is the payload of node.skipped.
type NodeSkip struct {
	NodeID string `json:"nodeId"`
	Reason string `json:"reason,omitzero"`
}

// NodeCancel is the payload of node.cancelled.
type NodeCancel struct {
	NodeID string `json:"nodeId"`
	Reason string `json:"reason,omitzero"`
}

// NodeRetry is the payload of node.retried: the attempt to come, counted from
// 1, and how long it waits.
type NodeRetry struct {
	NodeID    string `json:"nodeId"`
	Attempt   int    `json:"attempt"`
	DelayMs   int64  `json:"delayMs"`
	LastError *Error `json:"lastError,omitzero"`
}

// NodeSuspend is the payload of node.suspended.
type NodeSuspend struct {
	NodeID      string    `json:"nodeId"`
	InterruptID string    `json:"interruptId"`
	Kind        string    `json:"kind"`
	Reason      string    `json:"reason,omitzero"`
	Key         string    `json:"key"`
	X           *SuspendX `json:"x-fermata,omitzero"`
}

// SuspendX keeps what the suspended node wants to be given back.
type SuspendX struct {
	State jsontext.Value `json:"state,omitzero"`
}

// NodeResume is the payload of node.resumed.
type NodeResume struct {
	NodeID      string         `json:"nodeId"`
	InterruptID string         `json:"interruptId,omitzero"`
	ResumeValue jsontext.Value `json:"resumeValue,omitzero"`
}

// NodeDispatch is the payload of node.dispatched; the envelope's nodeId names
// the dispatching node.
type NodeDispatch struct {
	ChildRunID      string `json:"childRunId"`
	ChildWorkflowID string `json:"childWorkflowId"`
	ChildStatus     string `json:"childStatus"`
}

// Interrupt is the payload of interrupt.requested: the InterruptPayload
// verbatim (spec v2 interrupt.md §Payload; closed).
type Interrupt struct {
	Kind         string         `json:"kind"`
	Key          string         `json:"key"`
	ResumeSchema jsontext.Value `json:"resumeSchema,omitzero"`
	TimeoutMs    *int64         `json:"timeoutMs,omitzero"`
	Data         jsontext.Value `json:"data"`
}

// Resolution is the payload of interrupt.resolved and, for a vote that does not
// decide yet, of approval.received.
type Resolution struct {
	NodeID             string         `json:"nodeId"`
	InterruptID        string         `json:"interruptId"`
	Kind               string         `json:"kind,omitzero"`
	Reason             string         `json:"reason,omitzero"`
	ResumeValue        jsontext.Value `json:"resumeValue,omitzero"`
	ResolvedBy         *Subject       `json:"resolvedBy,omitzero"`
	Decision           string         `json:"decision,omitzero"`
	Action             string         `json:"action,omitzero"`
	RefineFeedback     jsontext.Value `json:"refineFeedback,omitzero"`
	EditedArtifactData jsontext.Value `json:"editedArtifactData,omitzero"`
	X                  *ResolutionX   `json:"x-fermata,omitzero"`
}

// ResolutionX records by what right an answer was given, and which request brought
// it. A replay reads it and never decides it again (spec v2 interrupt.md §Approver
// enforcement).
type ResolutionX struct {
	// Eligibility of who answered an approval: listed, group or role, or open to
	// everybody who may answer at all.
	Eligibility string `json:"eligibility,omitzero"`
	// Ref is the group or role that made the answer count, and Source the place
	// where its membership was looked up, at the moment of the answer.
	Ref    string `json:"ref,omitzero"`
	Source string `json:"source,omitzero"`
	// Override says that an override principal released the gate alone, without
	// the quorum it asks for.
	Override bool `json:"override,omitzero"`
	// Voter is whose vote it is, where whoever answered has vouched for somebody.
	Voter string `json:"voter,omitzero"`
	// Via is token for an answer that came with an interrupt token.
	Via string `json:"via,omitzero"`
	// Key and State stand in a replay for the interrupt.requested and node.suspended
	// it does not raise: which interrupt is resolved, and what its node kept.
	Key   string         `json:"key,omitzero"`
	State jsontext.Value `json:"state,omitzero"`
	// At is, in a replay, when it was said in the source: the exchange tells.
	At time.Time `json:"at,omitzero"`
	// Request names the request by a hash, so that its repetition is known from
	// the log (spec v2 idempotency.md §Layer 1).
	Request string `json:"request,omitzero"`
}

// Chunk is the payload of output.chunk.
type Chunk struct {
	NodeID  string         `json:"nodeId"`
	RunID   string         `json:"runId"`
	Chunk   string         `json:"chunk"`
	IsLast  bool           `json:"isLast"`
	Channel string         `json:"channel,omitzero"`
	Meta    jsontext.Value `json:"meta,omitzero"`
}
