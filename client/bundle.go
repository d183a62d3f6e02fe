package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// DebugBundle is what there is to know of a run, in one document that can be handed
// on (spec v1 debug-bundle.md). Raw is the document.
type DebugBundle struct {
	BundleVersion string            `json:"bundleVersion"`
	GeneratedAt   time.Time         `json:"generatedAt"`
	Run           json.RawMessage   `json:"run"`
	Events        []json.RawMessage `json:"events"` // the log from its beginning

	RedactionApplied bool   `json:"redactionApplied"`
	RedactionMode    string `json:"redactionMode"` // mask, omit, hash or passthrough

	// Truncated says that something was left out, for TruncatedReason.
	Truncated       bool   `json:"truncated,omitempty"`
	TruncatedReason string `json:"truncatedReason,omitempty"`

	Raw json.RawMessage `json:"-"`
}

// GetDebugBundle reads a run's debug bundle, which is an operation of fermata's own.
// It holds at most maxEvents events, or as many as a bundle has room for if that is 0.
func (c *Client) GetDebugBundle(ctx context.Context, runID string, maxEvents int) (*DebugBundle, error) {
	q := url.Values{}
	setInt(q, "maxEvents", int64(maxEvents))
	a, err := c.do(ctx, call{method: http.MethodGet, path: "/host/fermata" + runPath(runID, "/debug-bundle"), query: q, again: true})
	if err != nil {
		return nil, err
	}
	var out DebugBundle
	out.Raw, err = a.into(&out)
	return &out, err
}
