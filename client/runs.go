package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

// CreateRunRequest starts a run. Only WorkflowID is required.
type CreateRunRequest struct {
	WorkflowID   string          `json:"workflowId"`
	Inputs       json.RawMessage `json:"inputs,omitempty"` // an object
	Tags         []string        `json:"tags,omitempty"`
	Metadata     json.RawMessage `json:"metadata,omitempty"`
	Configurable json.RawMessage `json:"configurable,omitempty"`
	ScopeID      string          `json:"scopeId,omitempty"`
}

// CreatedRun is a run that has come into being.
type CreatedRun struct {
	RunID     string `json:"runId"`
	Status    Status `json:"status"`
	EventsURL string `json:"eventsUrl"`
	StatusURL string `json:"statusUrl"`

	Raw json.RawMessage `json:"-"`
}

// CreateRun starts a run: one, however often the call is repeated. An error that
// is not an *Error leaves open whether the run has started; WithIdempotencyKey lets
// the caller ask again.
func (c *Client) CreateRun(ctx context.Context, r CreateRunRequest) (*CreatedRun, error) {
	body, err := encode(r)
	if err != nil {
		return nil, err
	}
	a, err := c.do(ctx, call{method: http.MethodPost, path: "/runs", body: body, keyed: true})
	if err != nil {
		return nil, err
	}
	var out CreatedRun
	out.Raw, err = a.into(&out)
	return &out, err
}

// GetRun reads a run's snapshot.
func (c *Client) GetRun(ctx context.Context, runID string) (*Run, error) {
	return c.GetRunIfChanged(ctx, runID, "")
}

// GetRunIfChanged reads a run's snapshot unless it is still the one that etag
// stands for; then the error is ErrNotModified.
func (c *Client) GetRunIfChanged(ctx context.Context, runID, etag string) (*Run, error) {
	k := call{method: http.MethodGet, path: runPath(runID, ""), again: true}
	if etag != "" {
		k.header = http.Header{"If-None-Match": {etag}}
	}
	a, err := c.do(ctx, k)
	if err != nil {
		return nil, err
	}
	var out Run
	if _, err := a.into(&out); err != nil {
		return nil, err
	}
	out.ETag = a.header.Get("ETag")
	return &out, nil
}

// ListRunsOptions selects a page of runs.
type ListRunsOptions struct {
	Limit      int    // 0 for the host's default
	Cursor     string // NextCursor of the page before
	WorkflowID string // only runs of this workflow
	Status     Status // only runs in this status
}

// RunPage is one page of runs, newest first, without payloads.
type RunPage struct {
	Runs       []Run  `json:"runs"`
	NextCursor string `json:"nextCursor,omitempty"` // empty on the last page

	Raw json.RawMessage `json:"-"`
}

// ListRuns reads one page of the caller's runs.
func (c *Client) ListRuns(ctx context.Context, o ListRunsOptions) (*RunPage, error) {
	q := url.Values{}
	setInt(q, "limit", int64(o.Limit))
	setText(q, "cursor", o.Cursor)
	setText(q, "workflowId", o.WorkflowID)
	setText(q, "status", string(o.Status))
	a, err := c.do(ctx, call{method: http.MethodGet, path: "/runs", query: q, again: true})
	if err != nil {
		return nil, err
	}
	var out RunPage
	out.Raw, err = a.into(&out)
	return &out, err
}
