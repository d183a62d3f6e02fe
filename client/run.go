package client

import (
	"encoding/json"
	"time"
)

// Status is where a run stands.
type Status string

// The statuses of a run.
const (
	Pending         Status = "pending"
	Running         Status = "running"
	Paused          Status = "paused"
	WaitingApproval Status = "waiting-approval"
	WaitingInput    Status = "waiting-input"
	WaitingExternal Status = "waiting-external"
	Completed       Status = "completed"
	Failed          Status = "failed"
	Cancelling      Status = "cancelling"
	Cancelled       Status = "cancelled"
)

// Terminal reports whether a run in this status is over.
func (s Status) Terminal() bool { return s == Completed || s == Failed || s == Cancelled }

// Waiting reports whether a run in this status waits for somebody outside.
func (s Status) Waiting() bool {
	return s == WaitingApproval || s == WaitingInput || s == WaitingExternal
}

// Run is a run's snapshot: the fold of its log. In a list it comes without
// payloads.
type Run struct {
	RunID                 string          `json:"runId"`
	WorkflowID            string          `json:"workflowId"`
	Status                Status          `json:"status"`
	Owner                 json.RawMessage `json:"owner,omitempty"`
	EventLogSchemaVersion int             `json:"eventLogSchemaVersion"`
	EngineVersion         int             `json:"engineVersion"`
	CurrentNodeID         string          `json:"currentNodeId,omitempty"`
	StartedAt             time.Time       `json:"startedAt,omitzero"`
	CompletedAt           time.Time       `json:"completedAt,omitzero"`
	Error                 *RunError       `json:"error,omitempty"`
	Tags                  []string        `json:"tags,omitempty"`
	Metadata              json.RawMessage `json:"metadata,omitempty"`
	Configurable          json.RawMessage `json:"configurable,omitempty"`
	Variables             json.RawMessage `json:"variables,omitempty"`
	Channels              json.RawMessage `json:"channels,omitempty"`
	NodeStates            json.RawMessage `json:"nodeStates,omitempty"`

	// CompensationStatus is empty where the host does not provide compensation.
	CompensationStatus CompensationStatus `json:"compensationStatus,omitempty"`

	ETag string          `json:"-"` // validator of this snapshot; empty in a list
	Raw  json.RawMessage `json:"-"` // the snapshot as the host sent it
}

// UnmarshalJSON keeps the exact bytes beside the decoded members.
func (r *Run) UnmarshalJSON(b []byte) error {
	type bare Run
	if err := json.Unmarshal(b, (*bare)(r)); err != nil {
		return err
	}
	r.Raw = append(json.RawMessage(nil), b...)
	return nil
}

// RunError says why a run or a node failed.
type RunError struct {
	Code    string          `json:"code"`
	Message string          `json:"message"`
	Details json.RawMessage `json:"details,omitempty"`
}

func (e *RunError) Error() string { return e.Message + " (" + e.Code + ")" }
