package conformance_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// ofSecond selects requests about a run of the second tenant.
func ofSecond(sel func(*http.Request) bool) func(*http.Request) bool {
	return func(r *http.Request) bool {
		return sel(r) && strings.Contains(r.URL.EscapedPath(), "/"+secondTenant+"~2F")
	}
}

// anyone asks as the second tenant, whoever asks.
func anyone(r *http.Request) { r.Header.Set("Authorization", "Bearer "+secondKey) }

// mixed shows the second tenant's newest run in everybody's list.
func mixed(next http.Handler) http.Handler {
	var mu sync.Mutex
	last := ""
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		next.ServeHTTP(rec, r)
		c := &captured{rec.Code, rec.Header(), rec.Body.Bytes()}
		mu.Lock()
		if r.URL.Path == "/runs" && r.Method == "POST" && c.status == 201 && strings.HasSuffix(r.Header.Get("Authorization"), secondKey) {
			var made struct{ RunID string }
			_ = json.Unmarshal(c.body, &made)
			last = made.RunID
		}
		if r.URL.Path == "/runs" && r.Method == "GET" && last != "" {
			object(func(m map[string]any) {
				m["runs"] = append(m["runs"].([]any), map[string]any{"runId": last, "status": "completed"})
			})(r, c)
		}
		mu.Unlock()
		for k, v := range c.header {
			w.Header()[k] = v
		}
		w.Header().Del("Content-Length")
		w.WriteHeader(c.status)
		_, _ = w.Write(c.body)
	})
}

const anInterrupt = `{"kind":"approval"}`

// tenantMutations are hosts that mix tenants up, or believe any token.
var tenantMutations = []mutation{
	{"a foreign run is shown", "identity.second-tenant", requests(ofSecond(when("GET", aRun)), anyone)},
	{"a foreign log is read", "identity.second-tenant", requests(ofSecond(when("GET", aPoll)), anyone)},
	{"a foreign run is streamed", "identity.second-tenant", requests(ofSecond(when("GET", aStream)), anyone)},
	{"a foreign run is cancelled", "identity.second-tenant", requests(ofSecond(when("POST", aCancel)), anyone)},
	{"a foreign run is listed", "identity.second-tenant", mixed},
	{"a foreign run is streamed from a cursor", "resume.after-authorization", requests(func(r *http.Request) bool {
		return ofSecond(when("GET", aStream))(r) && r.Header.Get("Last-Event-ID") != ""
	}, anyone)},
	{"a token of an unknown key is taken", "token.unheld-key", instead(when("", `^/interrupts/ow2\.hs256\.`), 200, anInterrupt)},
	{"a token that is not signed is taken", "token.unknown-alg", instead(when("", `^/interrupts/ow2\.none\.`), 200, anInterrupt)},
	{"a cursor ahead of the log is refused", "resume.past-end", instead(func(r *http.Request) bool {
		return when("GET", aStream)(r) && len(r.Header.Get("Last-Event-ID")) > 3
	}, 400, `{"error":"validation_error","message":"no such sequence"}`)},
	{"a cursor ahead of a live log is refused", "resume.past-end-live", instead(func(r *http.Request) bool {
		return when("GET", aStream)(r) && len(r.Header.Get("Last-Event-ID")) > 3
	}, 400, `{"error":"validation_error","message":"no such sequence"}`)},
	{"every key is refused", "idempotency.key-accepted", instead(func(r *http.Request) bool {
		return r.Method == "POST" && r.Header.Get("Idempotency-Key") != ""
	}, 400, `{"error":"idempotency_key_invalid","message":"no"}`)},
	{"a run id of another grammar", "identity.run-id", answers(when("POST", create), on(201, object(func(m map[string]any) {
		m["runId"] = strings.ReplaceAll(m["runId"].(string), "/", ":")
	})))},
}
