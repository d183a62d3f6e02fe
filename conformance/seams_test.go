package conformance_test

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/conformance"
)

const (
	seed    = `^/conformance/seams/sample/event-log/seed$`
	retry   = `^/conformance/seams/sample/test/idempotency/effect-retry$`
	receive = `^/conformance/seams/sample/webhooks/receive$`
	ledger  = `^/runs/[^/]+/effects$`
)

// seamed is a host that was started for a suite.
func seamed(t *testing.T) http.Handler {
	t.Helper()
	return start(t, fermata.Config{DataDir: t.TempDir(), BootstrapKey: testKey, ConformanceSeams: true, EgressCAFile: trusted(t),
		AllowEgress: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
}

// forkedBy lets a host make, in place of a fork, the run that one of its seams makes.
func forkedBy(path, body string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !when("POST", aFork)(r) {
				next.ServeHTTP(w, r)
				return
			}
			q := httptest.NewRequest("POST", "/conformance/seams/sample/"+path, strings.NewReader(body))
			q.Header.Set("Authorization", r.Header.Get("Authorization"))
			q.Header.Set("Content-Type", "application/json")
			next.ServeHTTP(w, q)
		})
	}
}

// anotherV1 is the log of v1 that the check seeds, but for its second event.
const anotherV1 = `{"eventLogSchemaVersion":2,"status":"completed","events":[{"type":"run.started","sequence":0,"payload":{"workflowId":"conformance-noop"}},` +
	`{"type":"run.resumed","sequence":1,"payload":{}},{"type":"node.started","sequence":2,"payload":{"nodeId":"noop","typeId":"core.noop"}},` +
	`{"type":"node.completed","sequence":3,"payload":{"nodeId":"noop","outputs":{}}},{"type":"run.completed","sequence":4,"payload":{"outputs":{}}}]}`

// through lets a host call a provider by way of a relay.
func through(relay func(to string) http.Handler) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !when("POST", retry)(r) {
				next.ServeHTTP(w, r)
				return
			}
			var b struct{ ProviderURL string }
			_ = json.Unmarshal(readAll(r), &b)
			srv := httptest.NewServer(relay(b.ProviderURL))
			defer srv.Close()
			body, _ := json.Marshal(map[string]string{"providerUrl": srv.URL})
			putBody(r, body)
			next.ServeHTTP(w, r)
		})
	}
}

// relayed sends a call on, with a change, and breaks off where the provider does.
func relayed(times int, change func(n int, h http.Header)) func(to string) http.Handler {
	return func(to string) http.Handler {
		n := 0
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			var res *http.Response
			var err error
			for range times {
				n++
				q, _ := http.NewRequest(r.Method, to, bytes.NewReader(body))
				q.Header = r.Header.Clone()
				change(n, q.Header)
				if res, err = relays.Do(q); err != nil {
					break
				}
				res.Body.Close()
			}
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			w.WriteHeader(res.StatusCode)
		})
	}
}

// relays is the client that trusts the suite's receivers.
var relays = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: receivers().pool}}}

func asIs(int, http.Header) {}

// seamMutations are hosts whose inside is broken: what only a seam can show.
var seamMutations = []mutation{
	{"the provider is called twice", "seams.effect-retry", through(relayed(2, asIs))},
	{"a key for each attempt", "seams.effect-retry", through(relayed(1, func(n int, h http.Header) { h.Set("Idempotency-Key", fmt.Sprint("key-", n)) }))},
	{"no key reaches the provider", "seams.effect-retry", through(relayed(1, func(_ int, h http.Header) { h.Del("Idempotency-Key") }))},
	{"the ledger has another key", "seams.effect-retry", answers(when("GET", ledger), object(func(m map[string]any) {
		for _, e := range m["effects"].([]any) {
			e.(map[string]any)["providerKey"] = "constant"
		}
	}))},
	{"the ledger has no key", "seams.effect-retry", answers(when("GET", ledger), object(func(m map[string]any) {
		for _, e := range m["effects"].([]any) {
			delete(e.(map[string]any), "providerKey")
		}
	}))},
	{"a replay fires again", "seams.no-refire", forkedBy("effect-seams/fire", `{"seam":"core.http.request"}`)},
	{"any delivery is taken", "seams.v1-webhook", answers(when("POST", receive), set("accepted", true))},
	{"no delivery of v1 is taken", "seams.v1-webhook", answers(when("POST", receive), set("accepted", false))},
	{"a fork has another prefix", "seams.fork-v1", forkedBy("event-log/seed", anotherV1)},
	{"names of v1 are not translated", "seams.fork-v1", answers(when("GET", aPoll), ofType("run.resume-started", func(e map[string]any) { e["type"] = "run.resuming" }))},
	{"a real issuer for a subject of v1", "seams.fork-v1", answers(when("GET", aPoll), ofType("run.started", func(e map[string]any) {
		e["payload"].(map[string]any)["owner"].(map[string]any)["subject"].(map[string]any)["issuer"] = "urn:fermata:api-key"
	}))},
	{"an event of v1 is left out", "seams.fork-v1", answers(when("GET", aPoll), events(func(l []any) []any { return append(l[:2:2], l[3:]...) }))},
	{"runs of v1 cannot be forked", "seams.fork-v1", instead(when("POST", `:fork$`), 422, `{"error":"fork_point_invalid","message":"no"}`)},
}

func TestBrokenSeamsAreCaught(t *testing.T) {
	t.Parallel()
	host := seamed(t)
	one := func(id string) func(*conformance.Config) {
		return func(c *conformance.Config) { c.Filter, c.Timeout = quoted(id), 10*time.Second }
	}
	url := serve(t, host)
	for _, m := range seamMutations {
		t.Run(m.check+"/"+m.name, func(t *testing.T) {
			t.Parallel()
			r := look(t, serve(t, m.damage(host)), one(m.check))
			if got, _ := r.Result(m.check); got.Status != conformance.Fail {
				t.Fatalf("not caught: %s %s %v", got.Status, got.Reason, got.Evidence)
			}
			sound := look(t, url, one(m.check))
			if x, _ := sound.Result(m.check); x.Status != conformance.Pass {
				t.Errorf("on the good host: %s %s %v", x.Status, x.Reason, x.Evidence)
			}
		})
	}
}
