package conformance_test

import (
	"net/http"
	"strings"
)

const (
	aCredential  = `^/host/fermata/credentials(/[^/]+)?$`
	someMaterial = "conformance-material-leaked"
)

// wider lets every credential go to the suite's receivers.
func wider(m map[string]any) {
	if m["audiences"] != nil {
		m["audiences"] = []any{"127.0.0.1", "localhost"}
	}
}

// swapped replaces a text in an answer.
func swapped(old, text string) func(*http.Request, *captured) {
	return func(_ *http.Request, c *captured) { c.body = []byte(strings.ReplaceAll(string(c.body), old, text)) }
}

var credentialMutations = []mutation{
	{"a scope of nobody's is advertised", "credentials.advertised", answers(when("GET", "^/.well-known/openwop$"), on(200, object(func(m map[string]any) {
		m["credentials"].(map[string]any)["scopes"] = []any{"user", "user"}
	})))},
	{"the answer that takes a credential shows it", "credentials.write-only", answers(when("POST", aCredential), on(201, set("secret", someMaterial)))},
	{"a credential can be read", "credentials.write-only", answers(when("GET", aCredential), on(200, set("secret", someMaterial)))},
	{"the log shows what the other side was shown", "credentials.redacted", answers(when("GET", `/events/poll$`), on(200, swapped(`"call"`, `"call `+someMaterial+`"`)))},
	{"the snapshot shows it", "credentials.redacted", answers(when("GET", aRun), on(200, set("variables", map[string]any{"x": someMaterial})))},
	{"nothing is said of the call", "credentials.redacted", answers(when("GET", `/events/poll$`), on(200, swapped("egress.decided", "negotiation.decided")))},
	{"a credential goes everywhere", "credentials.audience", body(aCredential, wider)},
	{"a denied call is not recorded", "credentials.audience", answers(when("GET", `/events/poll$`), on(200, swapped("out-of-audience", "ok")))},
	{"an absent credential has another code", "credentials.absent", answers(when("GET", aRun), on(200, swapped("credential_not_found", "internal_error")))},
}
