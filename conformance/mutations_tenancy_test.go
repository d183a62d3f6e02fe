package conformance_test

import (
	"net/http"
	"strings"
)

// there selects requests about a run of the second tenant that exists.
func there(sel func(*http.Request) bool) func(*http.Request) bool {
	return func(r *http.Request) bool {
		return ofSecond(sel)(r) && !strings.Contains(r.URL.EscapedPath(), "unknown")
	}
}

// bySecond selects requests of the second tenant.
func bySecond(sel func(*http.Request) bool) func(*http.Request) bool {
	return func(r *http.Request) bool {
		return sel(r) && strings.HasSuffix(r.Header.Get("Authorization"), secondKey)
	}
}

// tenancyMutations are hosts by which one tenant learns something of another.
var tenancyMutations = []mutation{
	{"a foreign run that exists has another header", "tenancy.bytes", answers(there(when("GET", aRun)), on(403, header("Last-Modified", "x")))},
	{"a foreign run that exists has another message", "tenancy.bytes", answers(there(when("GET", aPoll)), on(403, set("message", "it belongs to another tenant")))},
	{"a foreign run is not found in bulk", "tenancy.bulk", answers(when("POST", `^/runs:bulk-cancel$`), on(200, object(func(m map[string]any) {
		for _, r := range m["results"].([]any) {
			if e, ok := r.(map[string]any)["error"].(map[string]any); ok && e["error"] == "id_tenant_mismatch" {
				e["error"] = "not_found"
			}
		}
	})))},
	{"another tenant can be named", "tenancy.create", answers(when("POST", create), on(403, func(_ *http.Request, c *captured) {
		c.status, c.body = 404, []byte(`{"error":"not_found","message":"no"}`)
	}))},
	{"a cursor carries its tenant", "tenancy.cursor", requests(bySecond(func(r *http.Request) bool {
		return r.Method == "GET" && r.URL.Query().Has("cursor")
	}), func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+testKey) })},
	{"keys of requests are everybody's", "tenancy.request-keys", requests(bySecond(func(r *http.Request) bool {
		return r.Header.Get("Idempotency-Key") != ""
	}), func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+testKey) })},
	{"an id is decoded twice", "tenancy.id-tricks", instead(func(r *http.Request) bool {
		return r.Method == "GET" && strings.Contains(r.URL.EscapedPath(), "%252F")
	}, 200, `{}`)},
	{"a case of another kind is the same tenant", "tenancy.id-tricks", instead(func(r *http.Request) bool {
		return r.Method == "GET" && strings.HasPrefix(r.URL.EscapedPath(), "/runs/DEFAULT~2F")
	}, 200, `{}`)},
	{"authorization may fail open", "identity.roles", answers(when("GET", wellKn), on(200, object(func(m map[string]any) {
		m["authorization"].(map[string]any)["failClosed"] = false
	})))},
	{"a role without a name", "identity.roles", answers(when("GET", wellKn), on(200, object(func(m map[string]any) {
		m["authorization"].(map[string]any)["roles"].([]any)[0].(map[string]any)["role"] = ""
	})))},
}
