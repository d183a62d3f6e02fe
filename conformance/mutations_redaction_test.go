package conformance_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
)

var aCanary = regexp.MustCompile(`conformance-canary-[a-z0-9]+`)

// leaks remembers the secret of a check wherever it was sent, and has it put into
// the answers to selected requests.
func leaks(sel func(*http.Request) bool, status int, put func(secret string) func(*http.Request, *captured)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		var last atomic.Value
		leak := answers(sel, on(status, func(r *http.Request, c *captured) {
			if s, ok := last.Load().(string); ok {
				put(s)(r, c)
			}
		}))(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b := readAll(r)
			putBody(r, b)
			path, _ := url.PathUnescape(r.URL.EscapedPath())
			sent := strings.Join([]string{path, r.Header.Get("Authorization"), r.Header.Get("Idempotency-Key"), string(b)}, "\n")
			if s := aCanary.FindString(sent); s != "" {
				last.Store(s)
			}
			leak.ServeHTTP(w, r)
		})
	}
}

func member(name string) func(string) func(*http.Request, *captured) {
	return func(secret string) func(*http.Request, *captured) { return set(name, secret) }
}

func inHeader(secret string) func(*http.Request, *captured) { return header("X-Request", secret) }

// inText puts a secret where a text was.
func inText(old string) func(string) func(*http.Request, *captured) {
	return func(secret string) func(*http.Request, *captured) { return swapped(old, secret) }
}

// asked puts a member into whatever a refusal says.
func asked(secret string) func(*http.Request, *captured) {
	return object(func(m map[string]any) { m["details"] = map[string]any{"value": secret} })
}

// unmasked takes from a definition what says that its variable is sensitive.
func unmasked(r *http.Request) {
	var m map[string]any
	b := readAll(r)
	if json.Unmarshal(b, &m) == nil {
		b = bytes.ReplaceAll(b, []byte(`"sensitive":true`), []byte(`"sensitive":false`))
	}
	putBody(r, b)
}

const (
	aTokenPath = `^/interrupts/`
	aHook      = `^/webhooks`
)

var redactionMutations = []mutation{
	{"a refusal repeats the credential", "redaction.credential", leaks(when("GET", aRun), 401, member("message"))},
	{"a challenge repeats the credential", "redaction.credential", leaks(when("POST", create), 401, inHeader)},
	{"the audit log has what was tried", "redaction.credential", leaks(when("GET", `^/host/fermata/audit$`), 200, member("tried"))},
	{"a refusal repeats the token", "redaction.interrupt-token", leaks(when("GET", aTokenPath), 401, asked)},
	{"a refused answer repeats the token", "redaction.interrupt-token", leaks(when("POST", aTokenPath), 401, member("message"))},
	{"a bad key is repeated", "redaction.idempotency-key", leaks(when("POST", create), 400, asked)},
	{"a key that is taken is repeated", "redaction.idempotency-key", leaks(when("POST", create), 409, member("message"))},
	{"the key comes back in a header", "redaction.idempotency-key", leaks(when("POST", create), 201, inHeader)},
	{"the run shows its key", "redaction.idempotency-key", leaks(when("GET", aRun), 200, member("requestKey"))},
	{"a subscription shows its secret", "redaction.webhook-secret", leaks(when("POST", aHook), 201, member("secret"))},
	{"a refused subscription shows its secret", "redaction.webhook-secret", leaks(when("POST", aHook), 400, asked)},
	{"dead letters show the secret", "redaction.webhook-secret", leaks(when("GET", aHook), 200, member("secret"))},
	{"nothing is masked", "redaction.sensitive", requests(when("PUT", `^/host/fermata/workflows/`), unmasked)},
	{"the snapshot shows a sensitive input", "redaction.sensitive", leaks(when("GET", aRun), 200, member("inputs"))},
	{"the list shows a sensitive input", "redaction.sensitive", leaks(when("GET", create), 200, member("hint"))},
	{"a poll shows a sensitive input", "redaction.sensitive", leaks(when("GET", aPoll), 200, inText("[REDACTED]"))},
	{"a stream shows a sensitive input", "redaction.sensitive", leaks(finished, 200, inText("[REDACTED]"))},
	{"a refused input is repeated", "redaction.sensitive", leaks(when("POST", create), 400, asked)},
	{"the audit log shows a sensitive input", "redaction.sensitive", leaks(when("GET", `^/host/fermata/audit/export$`), 200, inText("workflow"))},
	{"a refusal repeats a key that is good", "redaction.suite-key", answers(when("GET", aRun), func(r *http.Request, c *captured) {
		if c.status >= 400 {
			set("message", r.Header.Get("Authorization"))(r, c)
		}
	})},
}
