package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// Effect is one attempt of a run at something it does outside.
type Effect struct {
	EffectID     string    `json:"effectId"` // the same for every attempt at one effect
	NodeID       string    `json:"nodeId"`
	Attempt      int       `json:"attempt"` // of the node, from 1
	Keying       string    `json:"keying"`  // business-identity or activity-recipe
	State        string    `json:"state"`   // claimed, completed, released or escaped
	At           time.Time `json:"at"`      // when it came into this state
	InvocationID string    `json:"invocationId,omitempty"`
	ProviderKey  string    `json:"providerKey,omitempty"` // the idempotency key the other side was shown
}

// Effects is the ledger of one run.
type Effects struct {
	RunID   string   `json:"runId"`
	Effects []Effect `json:"effects"` // oldest first

	Raw json.RawMessage `json:"-"`
}

// GetRunEffects reads what a run has done outside, attempt by attempt.
func (c *Client) GetRunEffects(ctx context.Context, runID string) (*Effects, error) {
	a, err := c.do(ctx, call{method: http.MethodGet, path: runPath(runID, "/effects"), again: true})
	if err != nil {
		return nil, err
	}
	var out Effects
	out.Raw, err = a.into(&out)
	return &out, err
}
