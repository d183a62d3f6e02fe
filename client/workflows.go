package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"
)

const hostPath = "/host/fermata"

// WorkflowInfo describes a registered version of a workflow.
type WorkflowInfo struct {
	WorkflowID string    `json:"workflowId"`
	Version    string    `json:"version"`
	Name       string    `json:"name,omitempty"`
	Digest     string    `json:"digest"`
	CreatedAt  time.Time `json:"createdAt"`
	Created    bool      `json:"created"` // by this very call

	Raw json.RawMessage `json:"-"`
}

// ErrNoWorkflowID says that a definition is no JSON object with an id, so that
// it cannot be registered. ValidateWorkflow tells where it goes wrong.
var ErrNoWorkflowID = errors.New("the definition is not a JSON object with a string id")

func workflowPath(id string) string { return hostPath + "/workflows/" + nameSegment(id) }

// PutWorkflow registers the version of a workflow that a definition describes,
// under the id it names. The bytes are sent as they are.
func (c *Client) PutWorkflow(ctx context.Context, definition json.RawMessage) (*WorkflowInfo, error) {
	var head struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(definition, &head) != nil || head.ID == "" {
		return nil, ErrNoWorkflowID
	}
	// The same definition again is fine for the host, so this may be repeated by
	// itself; the key keeps the answer the same.
	a, err := c.do(ctx, call{method: http.MethodPut, path: workflowPath(head.ID), body: definition, again: true, keyed: true})
	if err != nil {
		return nil, err
	}
	var out WorkflowInfo
	out.Raw, err = a.into(&out)
	return &out, err
}

// GetWorkflow reads a definition, exactly as the host stores it: the latest
// version, or the one named.
func (c *Client) GetWorkflow(ctx context.Context, id, version string) (json.RawMessage, error) {
	q := url.Values{}
	setText(q, "version", version)
	a, err := c.do(ctx, call{method: http.MethodGet, path: workflowPath(id), query: q, again: true})
	if err != nil {
		return nil, err
	}
	var out json.RawMessage
	return a.into(&out)
}

// PageOptions selects a page of a list.
type PageOptions struct {
	Limit  int    // 0 for the host's default
	Cursor string // NextCursor of the page before
}

func (o PageOptions) query() url.Values {
	q := url.Values{}
	setInt(q, "limit", int64(o.Limit))
	setText(q, "cursor", o.Cursor)
	return q
}

// WorkflowPage is one page of workflows, by id.
type WorkflowPage struct {
	Workflows  []WorkflowInfo `json:"workflows"`
	NextCursor string         `json:"nextCursor,omitempty"` // empty on the last page

	Raw json.RawMessage `json:"-"`
}

// ListWorkflows reads one page of the caller's workflows.
func (c *Client) ListWorkflows(ctx context.Context, o PageOptions) (*WorkflowPage, error) {
	a, err := c.do(ctx, call{method: http.MethodGet, path: hostPath + "/workflows", query: o.query(), again: true})
	if err != nil {
		return nil, err
	}
	var out WorkflowPage
	out.Raw, err = a.into(&out)
	return &out, err
}

// DeleteWorkflow hides a workflow. Runs that it started go on.
func (c *Client) DeleteWorkflow(ctx context.Context, id string) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: workflowPath(id), keyed: true})
	return err
}

// Validation is the verdict on a definition that is valid.
type Validation struct {
	Valid      bool   `json:"valid"`
	WorkflowID string `json:"workflowId"`
	Version    string `json:"version"`
	Digest     string `json:"digest"`

	Raw json.RawMessage `json:"-"`
}

// ValidateWorkflow checks a definition without registering it. What is wrong
// with it is an *Error that lists Issues.
func (c *Client) ValidateWorkflow(ctx context.Context, definition json.RawMessage) (*Validation, error) {
	a, err := c.do(ctx, call{method: http.MethodPost, path: hostPath + "/workflows:validate", body: definition, again: true})
	if err != nil {
		return nil, err
	}
	var out Validation
	out.Raw, err = a.into(&out)
	return &out, err
}
