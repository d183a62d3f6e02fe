package edge

import (
	"net/http"
	"slices"
	"strings"
)

// admitted are the request headers that some operation declares (spec v2
// headers.md §Cross-origin preflight), and exposed what an answer may carry.
var (
	admitted = []string{
		"Authorization", "Content-Type", "Accept-Language", "DPoP", "Idempotency-Key", "If-None-Match", "Last-Event-ID",
		"OpenWOP-Client-Version", "OpenWOP-Dedup", "OpenWOP-Force-Engine-Version", "OpenWOP-Version",
	}
	exposed = []string{
		"ETag", "Location", "Retry-After", "WWW-Authenticate", "DPoP-Nonce", "OpenWOP-Idempotent-Replay", "OpenWOP-Version",
	}
)

// preflightSeconds is how long a browser may remember a preflight: an origin that
// an operator takes out of the list is shut out within this time.
const preflightSeconds = "600"

// cors lets a page of a listed origin read the answer, and reports whether it did.
// Credentials that a browser adds by itself are never admitted: a caller is known
// by what the page sends, so nothing of another origin acts with somebody's rights.
func (e *edge) cors(h http.Header, r *http.Request) bool {
	if len(e.Origins) == 0 {
		return false
	}
	h.Add("Vary", "Origin") // also for those who get nothing: a cache must not pass it on
	origins := r.Header["Origin"]
	if len(origins) != 1 || !slices.Contains(e.Origins, origins[0]) {
		return false
	}
	h.Set("Access-Control-Allow-Origin", origins[0])
	h.Set("Access-Control-Expose-Headers", list(slices.Concat(exposed, e.Expose)))
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	return true
}

// admit answers a preflight of a granted origin.
func (e *edge) admit(h http.Header, methods []string) {
	h.Set("Access-Control-Allow-Methods", list(methods))
	h.Set("Access-Control-Allow-Headers", list(slices.Concat(admitted, e.Admit)))
	h.Set("Access-Control-Max-Age", preflightSeconds)
	h.Add("Vary", "Access-Control-Request-Method, Access-Control-Request-Headers")
}

func list(items []string) string { return strings.Join(items, ", ") }
