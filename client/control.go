package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// RunStatus is what a run's status became by an operation on it.
type RunStatus struct {
	RunID     string    `json:"runId"`
	NodeID    string    `json:"nodeId,omitempty"`
	Status    Status    `json:"status"`
	PausedAt  time.Time `json:"pausedAt,omitzero"`
	ResumedAt time.Time `json:"resumedAt,omitzero"`

	Raw json.RawMessage `json:"-"`
}

type reasonBody struct {
	Reason      string `json:"reason,omitempty"`
	DrainPolicy string `json:"drainPolicy,omitempty"`
}

// control sends one operation on a run. Its key tells the host a repetition from
// a second cancel or pause, which would be refused.
func (c *Client) control(ctx context.Context, path string, body any) (*RunStatus, error) {
	return c.answer(ctx, call{method: http.MethodPost, path: path, keyed: true}, body)
}

// answer sends a body and reads what a run's status became.
func (c *Client) answer(ctx context.Context, k call, body any) (*RunStatus, error) {
	var err error
	if k.body, err = encode(body); err != nil {
		return nil, err
	}
	a, err := c.do(ctx, k)
	if err != nil {
		return nil, err
	}
	var out RunStatus
	out.Raw, err = a.into(&out)
	return &out, err
}

// CancelRun asks a run to end. The reason may be empty.
func (c *Client) CancelRun(ctx context.Context, runID, reason string) (*RunStatus, error) {
	return c.control(ctx, runPath(runID, "/cancel"), reasonBody{Reason: reason})
}

// DrainPolicy says what a pause does to the node that is executing.
type DrainPolicy string

// Drain lets the node finish first and is the default; Immediate interrupts it,
// and it starts again when the run is resumed.
const (
	Drain     DrainPolicy = "drain-current-node"
	Immediate DrainPolicy = "immediate"
)

// PauseRun lets a run stand still.
func (c *Client) PauseRun(ctx context.Context, runID, reason string, policy DrainPolicy) (*RunStatus, error) {
	return c.control(ctx, runPath(runID, ":pause"), reasonBody{reason, string(policy)})
}

// ResumeRun lets a paused run go on.
func (c *Client) ResumeRun(ctx context.Context, runID, reason string) (*RunStatus, error) {
	return c.control(ctx, runPath(runID, ":resume"), reasonBody{Reason: reason})
}

// BulkResult is what became of one run of a bulk cancel.
type BulkResult struct {
	RunID  string
	OK     bool
	Status Status
	Err    *Error // why it failed; its Status is 0, as entries carry none
}

// UnmarshalJSON reads an entry with its error envelope.
func (r *BulkResult) UnmarshalJSON(b []byte) error {
	var w struct {
		RunID  string `json:"runId"`
		OK     bool   `json:"ok"`
		Status Status `json:"status"`
		Error  *struct {
			Code    string                     `json:"error"`
			Message string                     `json:"message"`
			Details map[string]json.RawMessage `json:"details"`
		} `json:"error"`
	}
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	*r = BulkResult{RunID: w.RunID, OK: w.OK, Status: w.Status}
	if e := w.Error; e != nil {
		r.Err = &Error{Code: e.Code, Message: e.Message, Details: e.Details}
	}
	return nil
}

// BulkCancel is the outcome of a bulk cancel, in request order.
type BulkCancel struct {
	Results []BulkResult `json:"results"`

	Raw json.RawMessage `json:"-"`
}

// BulkCancelRuns cancels many runs, each by itself.
func (c *Client) BulkCancelRuns(ctx context.Context, runIDs []string, reason string) (*BulkCancel, error) {
	b, err := encode(struct {
		RunIDs []string `json:"runIds"`
		Reason string   `json:"reason,omitempty"`
	}{runIDs, reason})
	if err != nil {
		return nil, err
	}
	a, err := c.do(ctx, call{method: http.MethodPost, path: "/runs:bulk-cancel", body: b, keyed: true})
	if err != nil {
		return nil, err
	}
	var out BulkCancel
	out.Raw, err = a.into(&out)
	return &out, err
}
