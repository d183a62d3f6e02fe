package event

import "github.com/go-json-experiment/json/jsontext"

// Undoing is the payload of compensation.requested, .started and .completed. It is
// free of content: what is undone with what stays in the plan (spec v2
// security-defaults.md §Compensation).
type Undoing struct {
	CompensationID string `json:"compensationId"`
	NodeID         string `json:"nodeId,omitzero"`
	EffectID       string `json:"effectId,omitzero"`
	Attempt        int    `json:"attempt,omitzero"`
	OrderingModel  string `json:"orderingModel,omitzero"`
}

// Halt is the payload of compensation.failed, .paused and
// .manual-intervention-required. Reason is of a closed vocabulary, or empty where
// it has no word for what happened.
type Halt struct {
	CompensationID string `json:"compensationId"`
	NodeID         string `json:"nodeId,omitzero"`
	EffectID       string `json:"effectId,omitzero"`
	Attempt        int    `json:"attempt,omitzero"`
	OrderingModel  string `json:"orderingModel,omitzero"`
	Reason         string `json:"reason,omitzero"`
}

// Why an inverse action was not done.
const (
	RetriesExhausted   = "retries-exhausted"
	ApprovalDenied     = "approval-denied"
	OperatorTerminated = "operator-terminated"
)

// Authorized is the payload of authorization.decided.
type Authorized struct {
	Principal string `json:"principal"`
	Action    string `json:"action"`
	Resource  string `json:"resource"`
	Allowed   bool   `json:"allowed"`
	Reason    string `json:"reason,omitzero"`
}

// PlanMark is a stretch of a compensation's plan, in the order in which it is
// carried out. A long plan has several, one after another.
type PlanMark struct {
	CompensationID string      `json:"compensationId"`
	Trigger        string      `json:"trigger"`
	ProfileVersion string      `json:"profileVersion"`
	Halts          bool        `json:"halts,omitzero"`   // an action that cannot be done waits for an operator
	Request        string      `json:"request,omitzero"` // as ResolutionX, of who asked for it
	Entries        []PlanEntry `json:"entries"`
}

// PlanEntry is one inverse action, with all it takes to carry it out: neither the
// definition nor the state is asked again.
type PlanEntry struct {
	Order    int    `json:"order"` // from 1
	NodeID   string `json:"nodeId"`
	Visit    int    `json:"visit"`
	Ordinal  int    `json:"ordinal"` // when the effect was recorded, from 1
	TypeID   string `json:"nodeTypeId,omitzero"`
	EffectID string `json:"effectId"`

	// Inputs is what was recorded when the effect was. It is kept from everybody
	// outside: it may hold anything.
	Inputs jsontext.Value `json:"inputs,omitzero"`
	// Unresolved says which fact is missing; then the action cannot be done.
	Unresolved string `json:"unresolved,omitzero"`

	MaxAttempts   int   `json:"maxAttempts,omitzero"`
	BackoffMs     int64 `json:"backoffMs,omitzero"`
	TimeoutMs     int64 `json:"timeoutMs,omitzero"`
	NeedsApproval bool  `json:"requiresApproval,omitzero"`
	WaiveApproval bool  `json:"waiveRequiresApproval,omitzero"`
	Irreversible  bool  `json:"irreversible,omitzero"`
}

// InverseMark is one step of one inverse action.
type InverseMark struct {
	Order   int    `json:"order"`
	Step    string `json:"step"`             // an InverseX
	Attempt int    `json:"attempt,omitzero"` // of the node within the plan, from 1
	DelayMs int64  `json:"delayMs,omitzero"` // of a repeat
	Code    string `json:"code,omitzero"`    // of what went wrong
	Purpose string `json:"purpose,omitzero"` // of a gate: the step that waits for it
	TypeID  string `json:"nodeTypeId,omitzero"`
	By      string `json:"by,omitzero"`
	Request string `json:"request,omitzero"` // as ResolutionX

	// Reason is an operator's own words. They are kept from everybody outside.
	Reason string `json:"reason,omitzero"`
}

// The steps of an inverse action.
const (
	InverseBegun      = "begun"      // an attempt: whatever comes of it, it is known to have been made
	InverseDone       = "done"       // the effect is undone
	InverseRepeats    = "repeats"    // the attempt failed, another follows
	InverseFailed     = "failed"     // no further attempt follows
	InverseSkipped    = "skipped"    // an operator gave it up
	InverseTerminated = "terminated" // an operator gave the rest of the plan up
	InverseAgain      = "again"      // an operator wants it tried again
	InverseReplaced   = "replaced"   // an operator wants it done by another node type
	InverseGate       = "gate"       // somebody must approve before Purpose
	InverseHeld       = "held"       // the plan waits for an operator
)
