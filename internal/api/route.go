package api

import (
	"context"
	"net/http"
	"time"

	"github.com/fermata-run/fermata/internal/identity"
)

// Route is one row of a route table: everything the matcher, the authorizer and
// the OpenAPI document need to know of an operation.
type Route struct {
	Method  string
	Pattern string // "/runs/{runId}:pause"; a {name} is one path segment
	ID      string // operationId of spec v2 path-manifest.json, or our own
	Summary string // one sentence for the OpenAPI document
	Spec    string // where the protocol text defines it, "runs.md §Cancel"
	Scope   string // scope a credential must hold; empty for a public operation

	// Wire names the wire of an older major the row belongs to; empty for this one.
	// The same operation of two wires is two operations to an Idempotency-Key.
	Wire string

	// Protocol marks operations of the path manifest: only they carry
	// OpenWOP-Version (spec v2 versioning.md §1.4).
	Protocol bool

	// Stream marks operations that stay open; they are not counted against the
	// capacity for calls.
	Stream bool

	// ReadOnly marks operations that change nothing although their method is not
	// GET: no key is needed to send them again.
	ReadOnly bool

	// AnyQuery marks operations that ignore query parameters they do not know,
	// where the protocol says so, and Ignored names the single ones that others
	// ignore. Anything else unknown is refused.
	AnyQuery bool
	Ignored  []string

	// ShowsSecret marks operations whose answer holds a secret that is meant for
	// the caller and nobody else.
	ShowsSecret bool

	Query   []Param
	Headers []Param
	Body    *Body            // nil for an operation without a request body
	Returns map[int]Response // success answers by status
	Errors  []int            // statuses of the error envelope beyond 400, 401, 403, 404

	Handle func(w http.ResponseWriter, r *Request) error
}

// The headers of requests that may be sent again (spec v2 idempotency.md §Layer 1).
const (
	KeyHeader    = "Idempotency-Key"
	ReplayHeader = "OpenWOP-Idempotent-Replay"
)

// Mutates reports whether the operation changes something, and so honours an
// Idempotency-Key.
func (r *Route) Mutates() bool { return r.Method != http.MethodGet && !r.ReadOnly }

// Param is a query or header parameter.
type Param struct {
	Name        string
	Description string
	Required    bool
	Schema      string // JSON Schema as JSON text
}

// Body is a request body.
type Body struct {
	Schema   string // name of a schema in schema/v2, or JSON text starting with {
	Optional bool
}

// Response is a success answer.
type Response struct {
	Description string
	Schema      string // as Body.Schema; empty for no body
	ContentType string // default application/json
}

// Request is an HTTP request after matching: path parameters decoded.
type Request struct {
	*http.Request
	Route  *Route
	Params map[string]string

	// Home, if set, is the tenant of whoever asks, in which a run's id stands that
	// names none (spec v2 versioning.md §5).
	Home string

	// Still is who asks as of now: it fails once the credential, or what lets its
	// holder in, is withdrawn. What stays open asks from time to time, not less often
	// than Recheck. Nil where nobody has to be known.
	Still   func(context.Context) (identity.Caller, error)
	Recheck time.Duration
}
