package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// Interrupt is something a run waits for: an approval, answers, an event.
type Interrupt struct {
	InterruptID string    `json:"interruptId"`
	RunID       string    `json:"runId"`
	NodeID      string    `json:"nodeId"`
	Kind        string    `json:"kind"`
	Key         string    `json:"key"`
	Request     Request   `json:"request"`
	CreatedAt   time.Time `json:"createdAt"`
	ExpiresAt   time.Time `json:"expiresAt,omitzero"` // zero if it never does

	Notify    *Notify `json:"notify,omitempty"` // who should be told; nil for everybody
	MayAnswer bool    `json:"mayAnswer"`        // the caller could answer now
}

// Notify names whom something concerns.
type Notify struct {
	Subjects []string `json:"subjects,omitempty"`
	Groups   []string `json:"groups,omitempty"`
	Roles    []string `json:"roles,omitempty"`
}

// Request is what is asked: the protocol's interrupt payload.
type Request struct {
	Kind         string          `json:"kind"`
	Key          string          `json:"key"`
	ResumeSchema json.RawMessage `json:"resumeSchema,omitempty"` // the answer must satisfy it
	TimeoutMs    *int64          `json:"timeoutMs,omitempty"`
	Data         json.RawMessage `json:"data"` // depends on the kind
}

// InterruptPage is one page of the caller's inbox.
type InterruptPage struct {
	Interrupts []Interrupt `json:"interrupts"`
	NextCursor string      `json:"nextCursor,omitempty"` // empty on the last page

	Raw json.RawMessage `json:"-"`
}

// ListInterrupts reads one page of what the caller's runs wait for.
func (c *Client) ListInterrupts(ctx context.Context, o PageOptions) (*InterruptPage, error) {
	a, err := c.do(ctx, call{method: http.MethodGet, path: hostPath + "/interrupts", query: o.query(), again: true})
	if err != nil {
		return nil, err
	}
	var out InterruptPage
	out.Raw, err = a.into(&out)
	return &out, err
}

type resolution struct {
	ResumeValue json.RawMessage `json:"resumeValue"`
}

// ResolveInterrupt answers what a node of a run waits for. One call is one
// decision, however often it has to be sent.
func (c *Client) ResolveInterrupt(ctx context.Context, runID, nodeID string, resumeValue json.RawMessage) (*RunStatus, error) {
	return c.control(ctx, runPath(runID, "/interrupts/"+nameSegment(nodeID)), resolution{resumeValue})
}
