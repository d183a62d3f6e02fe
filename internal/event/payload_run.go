package event

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Extension is the key under which a payload carries what only this host needs
// to fold its own log. The payload schemas admit keys that start with "x-"
// (spec v2 events.md §Payloads) and a reader must carry them unread.
const Extension = "x-fermata"

// Subject is who owns a run or resolved an interrupt (spec v2 identity.md §1.1).
type Subject struct {
	Issuer    string   `json:"issuer"`
	SubjectID string   `json:"subjectId"`
	Tenant    string   `json:"tenant"`
	Lane      string   `json:"lane"`
	Kind      string   `json:"kind"`
	KeyClass  string   `json:"keyClass,omitzero"`
	Actor     *Subject `json:"actor,omitzero"`
}

// Owner is the closed owner block of run.started and of the snapshot.
type Owner struct {
	Tenant    string  `json:"tenant"`
	Workspace string  `json:"workspace,omitzero"`
	Subject   Subject `json:"subject"`
}

// Error is the error object of run.failed, node.failed and the snapshot. Code is
// always a registered code (errors.md §The registry).
type Error struct {
	Code      string         `json:"code"`
	Message   string         `json:"message"`
	Details   map[string]any `json:"details,omitzero"`
	Retryable *bool          `json:"retryable,omitzero"`
}

// Started is the payload of run.started.
type Started struct {
	WorkflowID    string         `json:"workflowId"`
	Inputs        jsontext.Value `json:"inputs,omitzero"`
	Transport     string         `json:"transport"`
	EngineVersion int            `json:"engineVersion"`
	Owner         Owner          `json:"owner"`
	Tags          []string       `json:"tags,omitzero"`
	Metadata      jsontext.Value `json:"metadata,omitzero"`
	X             StartedX       `json:"x-fermata"`
}

// Trigger says which tick of a workflow's schedule a run came of.
type Trigger struct {
	ID   string `json:"id"`   // of the trigger in the definition
	Tick string `json:"tick"` // RFC 3339
}

// StartedX is what else a run needs to be folded from its log alone.
type StartedX struct {
	WorkflowVersion string         `json:"workflowVersion"`
	WorkflowDigest  string         `json:"workflowDigest"`
	Configurable    jsontext.Value `json:"configurable,omitzero"`
	ScopeID         string         `json:"scopeId,omitzero"`
	CallbackURL     string         `json:"callbackUrl,omitzero"`
	CallbackMajor   int            `json:"callbackMajor,omitzero"` // of the protocol it was given under; 0 is this one
	Trigger         *Trigger       `json:"trigger,omitzero"`       // nil if a caller or a run started it
	Parent          *Parent        `json:"parent,omitzero"`
}

// Parent links a child run to the node visit that started it.
type Parent struct {
	RunID  string `json:"runId"`
	NodeID string `json:"nodeId"`
	Depth  int    `json:"depth"`
}

// Completed is the payload of run.completed. Outputs is always an object.
type Completed struct {
	Outputs    jsontext.Value `json:"outputs"`
	DurationMs int64          `json:"durationMs"`
}

// Failed is the payload of run.failed.
type Failed struct {
	Error        Error  `json:"error"`
	FailedNodeID string `json:"failedNodeId,omitzero"`
	DurationMs   int64  `json:"durationMs"`
}

// Cancelled is the payload of run.cancelled.
type Cancelled struct {
	Reason      string `json:"reason,omitzero"`
	CancelledBy string `json:"cancelledBy,omitzero"`
	DurationMs  int64  `json:"durationMs"`
	ParentRunID string `json:"parentRunId,omitzero"`
}

// Paused is the payload of run.paused. InterruptedAttempt counts from 1.
type Paused struct {
	Reason             string `json:"reason,omitzero"`
	DrainPolicy        string `json:"drainPolicy,omitzero"`
	InterruptedNodeID  string `json:"interruptedNodeId,omitzero"`
	InterruptedAttempt int    `json:"interruptedAttempt,omitzero"`
}

// Resumed is the payload of run.resumed.
type Resumed struct {
	Reason string `json:"reason,omitzero"`
}

// Breach is the payload of cap.breached.
type Breach struct {
	Kind     string `json:"kind"`
	Limit    int64  `json:"limit"`
	Observed int64  `json:"observed"`
	NodeID   string `json:"nodeId,omitzero"`
}

// Loopback is the payload of workflow.loopback-limit.
type Loopback struct {
	NodeID     string `json:"nodeId"`
	Iterations int    `json:"iterations"`
	Limit      int    `json:"limit"`
}

// Variable is the payload of variable.changed.
type Variable struct {
	Name   string         `json:"name"`
	Next   jsontext.Value `json:"next,omitzero"`
	NodeID string         `json:"nodeId,omitzero"`
}

// Channel is the payload of channel.written: the value written, before the
// reducer (closed; spec v2 events.md §Payloads).
type Channel struct {
	Channel       string         `json:"channel"`
	Value         jsontext.Value `json:"value"`
	Reducer       string         `json:"reducer"`
	NodeID        string         `json:"nodeId,omitzero"`
	WrittenAt     string         `json:"writtenAt"`
	SchemaVersion int            `json:"schemaVersion,omitzero"`
}

// Log is the payload of log.appended. X carries what the run's own bookkeeping
// must remember and no registered type has a place for.
type Log struct {
	Level   string         `json:"level"`
	Message string         `json:"message"`
	NodeID  string         `json:"nodeId,omitzero"`
	Fields  map[string]any `json:"fields,omitzero"`
	X       *Mark          `json:"x-fermata,omitzero"`
}

// Mark is one durable note of the run core; exactly one member is set.
type Mark struct {
	Wait     *WaitMark    `json:"wait,omitzero"`
	Signal   *SignalMark  `json:"signal,omitzero"`
	Closing  *ClosingMark `json:"closing,omitzero"`
	Child    *ChildMark   `json:"child,omitzero"`
	Draining *DrainMark   `json:"draining,omitzero"`
	Saved    *SavedMark   `json:"saved,omitzero"`
	Taken    *int         `json:"taken,omitzero"` // index of a kept signal that was used
	Plan     *PlanMark    `json:"plan,omitzero"`
	Inverse  *InverseMark `json:"inverse,omitzero"`
}

// WaitMark records that a node sleeps until a time, with what it wants to be
// given back when it wakes.
type WaitMark struct {
	Until time.Time      `json:"until"`
	State jsontext.Value `json:"state,omitzero"`
}

// SavedMark records what a node that waits for its children wants to be given
// back, and what the node.dispatched events just before it have no place for.
type SavedMark struct {
	State jsontext.Value `json:"state,omitzero"`
	Same  bool           `json:"same,omitzero"` // the state has not changed
	Keys  []ChildKey     `json:"keys,omitzero"`
}

// ChildKey belongs to one of the children dispatched last, in their order.
type ChildKey struct {
	Key      string `json:"key,omitzero"`
	Detached bool   `json:"detached,omitzero"`
}

// SignalMark keeps an answer that arrived before its node began to wait.
type SignalMark struct {
	Value   jsontext.Value `json:"value"`
	Subject Subject        `json:"subject"`
	Request string         `json:"request,omitzero"` // as ResolutionX
}

// ClosingMark records that the run is on its way to a terminal state and waits
// only for its children to end.
type ClosingMark struct {
	Kind         string `json:"kind"` // cancel or fail
	Reason       string `json:"reason,omitzero"`
	By           string `json:"by,omitzero"`
	ParentRunID  string `json:"parentRunId,omitzero"`
	Error        *Error `json:"error,omitzero"`
	FailedNodeID string `json:"failedNodeId,omitzero"`
	Cap          bool   `json:"cap,omitzero"` // a bound of the run was exceeded
}

// ChildMark records a change of a child run's status.
type ChildMark struct {
	RunID  string `json:"runId"`
	Status string `json:"status"`
}

// DrainMark records an accepted pause that waits for the executing node.
type DrainMark struct {
	Reason string `json:"reason,omitzero"`
}
