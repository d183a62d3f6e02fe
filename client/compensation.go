package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// CompensationStatus is how far the undoing of a run's effects has come. It is apart
// from the run's own status: a run that has failed and has been undone is failed, and
// its compensation completed.
type CompensationStatus string

// The statuses of a compensation. A snapshot says Manual where a compensation says
// ManualIntervention.
const (
	CompensationNone      CompensationStatus = "none"
	CompensationPending   CompensationStatus = "pending"
	CompensationRunning   CompensationStatus = "running"
	CompensationCompleted CompensationStatus = "completed"
	CompensationPartial   CompensationStatus = "partial"
	CompensationFailed    CompensationStatus = "failed"
	CompensationManual    CompensationStatus = "manual"
	ManualIntervention    CompensationStatus = "manual-intervention"
)

// Active reports whether more is to be expected without anybody's doing.
func (s CompensationStatus) Active() bool {
	return s == CompensationPending || s == CompensationRunning
}

// Compensation is what of a run's effects is to be undone, and what has come of it.
type Compensation struct {
	RunID    string                `json:"runId"`
	Status   CompensationStatus    `json:"status"`
	Plan     []CompensationEntry   `json:"plan"`     // in the order in which it is carried out
	Attempts []CompensationAttempt `json:"attempts"` // those with an outcome, oldest first

	Raw json.RawMessage `json:"-"`
}

// CompensationEntry is one inverse action.
type CompensationEntry struct {
	NodeID             string          `json:"nodeId"`
	Order              int             `json:"order"`
	Policy             json.RawMessage `json:"policy,omitempty"`
	IrreversibleEffect bool            `json:"irreversibleEffect,omitempty"`
}

// CompensationAttempt is one attempt at an inverse action. Node and attempt name it.
type CompensationAttempt struct {
	NodeID  string    `json:"nodeId"`
	Attempt int       `json:"attempt"`
	Outcome string    `json:"outcome"` // succeeded, failed, skipped or manual
	At      time.Time `json:"at"`
	Reason  string    `json:"reason,omitempty"`
}

// GetRunCompensation reads a run's compensation.
func (c *Client) GetRunCompensation(ctx context.Context, runID string) (*Compensation, error) {
	return c.compensation(ctx, call{method: http.MethodGet, path: runPath(runID, "/compensation"), again: true})
}

// CompensationOperation is what an operator asks of a compensation.
type CompensationOperation struct {
	Action     string `json:"action"`               // start, retry, skip, substitute or terminate
	Order      int    `json:"order,omitempty"`      // of the plan; 0 for the action it waits at
	NodeTypeID string `json:"nodeTypeId,omitempty"` // of a substitute
	Reason     string `json:"reason,omitempty"`     // of a skip; it is required there
}

// OperateCompensation acts on a run's compensation. It takes the scope
// fermata:compensation:operate, and is sent once. The answer is the compensation as
// it stands afterwards.
func (c *Client) OperateCompensation(ctx context.Context, runID string, o CompensationOperation) (*Compensation, error) {
	body, err := encode(o)
	if err != nil {
		return nil, err
	}
	return c.compensation(ctx, call{method: http.MethodPost, path: hostPath + runPath(runID, "/compensation"), body: body})
}

func (c *Client) compensation(ctx context.Context, k call) (*Compensation, error) {
	a, err := c.do(ctx, k)
	if err != nil {
		return nil, err
	}
	var out Compensation
	out.Raw, err = a.into(&out)
	return &out, err
}
