package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

// ForkMode says what a fork does behind the part it inherits.
type ForkMode string

// Replay executes the run anew with the outcomes its source recorded, and has no
// effects; Branch goes on as a run of its own, whose effects happen.
const (
	Replay ForkMode = "replay"
	Branch ForkMode = "branch"
)

// ForkRequest forks a run. A branch needs FromSeq; a replay without it begins at
// the beginning.
type ForkRequest struct {
	Mode              ForkMode     `json:"mode"`
	FromSeq           *int64       `json:"fromSeq,omitempty"` // the first event that is not inherited
	RunOptionsOverlay *ForkOptions `json:"runOptionsOverlay,omitempty"`
}

// ForkOptions are run options a branch has in place of its source's. What is left
// out stays.
type ForkOptions struct {
	Configurable json.RawMessage `json:"configurable,omitempty"`
	Tags         []string        `json:"tags,omitzero"` // nil to leave them, empty for none
	Metadata     json.RawMessage `json:"metadata,omitempty"`
}

// ForkedRun is a fork that has come into being.
type ForkedRun struct {
	RunID       string   `json:"runId"`
	SourceRunID string   `json:"sourceRunId"`
	FromSeq     int64    `json:"fromSeq"`
	Mode        ForkMode `json:"mode"`
	Status      Status   `json:"status"`
	EventsURL   string   `json:"eventsUrl"`

	Raw json.RawMessage `json:"-"`
}

// ForkRun makes a run that begins with the log of another. As CreateRun it is sent
// once.
func (c *Client) ForkRun(ctx context.Context, runID string, r ForkRequest) (*ForkedRun, error) {
	body, err := encode(r)
	if err != nil {
		return nil, err
	}
	a, err := c.do(ctx, call{method: http.MethodPost, path: runPath(runID, ":fork"), body: body})
	if err != nil {
		return nil, err
	}
	var out ForkedRun
	out.Raw, err = a.into(&out)
	return &out, err
}

// EventDiff is one sequence at which two logs differ: added (only B has an event
// there), removed (only A has one) or changed.
type EventDiff struct {
	Seq int64  `json:"seq"`
	Op  string `json:"op"`
	A   *Event `json:"aEvent,omitempty"`
	B   *Event `json:"bEvent,omitempty"`
}

// RunDiff is how two runs differ, apart from ids and times.
type RunDiff struct {
	A             string          `json:"a"`
	B             string          `json:"b"`
	DivergedAtSeq *int64          `json:"divergedAtSeq"` // nil if they do not differ
	EventDiffs    []EventDiff     `json:"eventDiffs"`
	StateDiff     json.RawMessage `json:"stateDiff"`
	Truncated     bool            `json:"truncated"` // one of them goes on, or there is more

	Raw json.RawMessage `json:"-"`
}

// DiffRuns compares two runs.
func (c *Client) DiffRuns(ctx context.Context, a, b string) (*RunDiff, error) {
	ans, err := c.do(ctx, call{
		method: http.MethodGet, path: runPath(a, ":diff"), query: url.Values{"against": {b}}, again: true,
	})
	if err != nil {
		return nil, err
	}
	var out RunDiff
	out.Raw, err = ans.into(&out)
	return &out, err
}

// Ancestry says which run dispatched another; Parent is nil for one that nobody
// did, such as a fork.
type Ancestry struct {
	RunID  string  `json:"runId"`
	HostID string  `json:"hostId"`
	Parent *Parent `json:"parent"`

	Raw json.RawMessage `json:"-"`
}

// Parent is the run that dispatched another, and how.
type Parent struct {
	RunID        string `json:"runId"`
	HostID       string `json:"hostId"`
	WellKnownURL string `json:"wellKnownUrl,omitempty"` // of another host
	Cause        string `json:"cause"`
}

// RunAncestry reads which run dispatched another.
func (c *Client) RunAncestry(ctx context.Context, runID string) (*Ancestry, error) {
	a, err := c.do(ctx, call{method: http.MethodGet, path: runPath(runID, "/ancestry"), again: true})
	if err != nil {
		return nil, err
	}
	var out Ancestry
	out.Raw, err = a.into(&out)
	return &out, err
}
