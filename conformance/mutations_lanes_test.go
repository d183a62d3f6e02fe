package conformance_test

import (
	"encoding/base64"
	"net/http"
	"strings"
)

// laneOf edits one lane of discovery.
func laneOf(name string, edit func(map[string]any)) func(http.Handler) http.Handler {
	return answers(when("GET", wellKn), on(200, object(func(m map[string]any) {
		for _, l := range m["auth"].(map[string]any)["lanes"].([]any) {
			if l := l.(map[string]any); l["lane"] == name {
				edit(l)
			}
		}
	})))
}

// letIn lets requests in that carry a mark of their own, as if they had a key.
func letIn(sel func(*http.Request) bool) func(http.Handler) http.Handler {
	return requests(sel, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+testKey) })
}

// forged selects requests with a token whose header holds a text.
func forged(header string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		return strings.HasPrefix(r.Header.Get("Authorization"), "Bearer "+enc(header))
	}
}

// enc is how a token of the suite begins whose header begins with a text: whole
// groups of three bytes only, since the rest depends on what follows.
func enc(header string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(header[:len(header)/3*3]))
}

const aMeta = `^/\.well-known/oauth-protected-resource`

// laneMutations are hosts that let somebody in, or say of themselves what is not so.
var laneMutations = []mutation{
	{"rule of another lane", "lanes.advertised", laneOf("api-key", func(l map[string]any) { l["revocation"] = "crl" })},
	{"no window", "lanes.advertised", laneOf("oidc", func(l map[string]any) { delete(l, "revocationWindowSeconds") })},
	{"proof of another lane", "lanes.advertised", laneOf("oidc", func(l map[string]any) { l["delegationProofs"] = []string{"svid-chain"} })},
	{"lane twice", "lanes.advertised", laneOf("oidc", func(l map[string]any) {
		l["lane"], l["revocation"] = "api-key", "next-request"
		delete(l, "delegationProofs")
	})},
	{"issuer not named", "lanes.trust-root", laneOf("api-key", func(l map[string]any) { l["issuers"] = []string{"urn:other"} })},
	{"lane not named", "lanes.trust-root", laneOf("api-key", func(l map[string]any) { l["lane"] = "session" })},
	{"believes a proxy's header", "lanes.fail-closed", letIn(func(r *http.Request) bool { return r.Header.Get("X-Forwarded-User") != "" })},
	{"believes a certificate in a header", "lanes.fail-closed", letIn(func(r *http.Request) bool { return r.Header.Get("X-Forwarded-Client-Cert") != "" })},
	{"takes a key from the query", "lanes.fail-closed", requests(func(r *http.Request) bool { return r.URL.Query().Has("access_token") }, func(r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+r.URL.Query().Get("access_token"))
		query(r, "access_token", "")
	})},
	{"anonymous is somebody", "lanes.fail-closed", letIn(func(r *http.Request) bool { return r.Header.Get("Authorization") == "" })},
	{"takes the first of two", "lanes.one-credential", requests(when("", all), func(r *http.Request) { r.Header.Set("Authorization", r.Header.Get("Authorization")) })},
	{"takes the last of two", "lanes.one-credential", requests(when("", all), func(r *http.Request) {
		if v := r.Header.Values("Authorization"); len(v) > 0 {
			r.Header.Set("Authorization", v[len(v)-1])
		}
	})},
	{"takes alg none", "lanes.forged-token", letIn(forged(`{"alg":"none"}`))},
	{"takes a token's own key", "lanes.forged-token", letIn(forged(`{"alg":"ES256","typ":"at+jwt","jwk"`))},
	{"takes any kid", "lanes.forged-token", letIn(forged(`{"alg":"RS256","kid"`))},
	{"challenge without metadata", "lanes.challenge", answers(when("", all), on(401, header("WWW-Authenticate", "Bearer")))},
	{"invalid_token without a token", "lanes.challenge", answers(func(r *http.Request) bool { return r.Header.Get("Authorization") == "" }, on(401, func(_ *http.Request, c *captured) {
		c.header.Set("WWW-Authenticate", c.header.Get("WWW-Authenticate")+`, error="invalid_token"`)
	}))},
	{"scope asked for where none would help", "lanes.no-oracle", answers(when("", all), on(403, func(_ *http.Request, c *captured) {
		c.header.Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="runs:read"`)
	}))},
	{"metadata of another resource", "lanes.metadata", answers(when("GET", aMeta), on(200, set("resource", "https://other.example")))},
	{"metadata names another issuer", "lanes.metadata", answers(when("GET", aMeta), on(200, set("authorization_servers", []string{"https://evil.example"})))},
	{"metadata names no issuer", "lanes.metadata", answers(when("GET", aMeta), on(200, drop("authorization_servers")))},
	{"metadata asks for more than the lane", "lanes.metadata", answers(when("GET", aMeta), on(200, set("dpop_bound_access_tokens_required", true)))},
	{"metadata behind a door", "lanes.metadata", instead(when("GET", aMeta), 401, `{"error":"unauthenticated","message":"no"}`)},
}
