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
	"sync"
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

// seamed is a host that was started for a suite. Forking is put in front of it
// where it has none of its own: a source that was seeded is seeded once more, any
// other one becomes a run without effects.
func seamed(t *testing.T) http.Handler {
	t.Helper()
	return start(t, fermata.Config{DataDir: t.TempDir(), BootstrapKey: testKey, ConformanceSeams: true, EgressCAFile: trusted(t),
		AllowEgress: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
}

// forking forks by seeding and firing.
type forking struct {
	next  http.Handler
	again bool // a replay fires what its source has fired
	lost  bool // a fork's log is another one

	mu     sync.Mutex
	seeded map[string][]byte // the seed of a run
}

func withForks(again, lost bool) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return &forking{next: next, again: again, lost: lost, seeded: map[string][]byte{}}
	}
}

const bareLog = `{"eventLogSchemaVersion":2,"status":"completed","events":[{"type":"run.started","sequence":0,"payload":{"workflowId":"conformance-noop"}},` +
	`{"type":"run.completed","sequence":1,"payload":{"outputs":{}}}]}`

func (f *forking) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/host/effect-seams":
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"manifestVersion":"1","seams":[{"seam":"core.http.request","kind":"http","guarded":true,"guardedBy":"a double"}]}`)
	case when("POST", seed)(r):
		body := readAll(r)
		f.send(w, r, r.URL.Path, body)
	case strings.HasSuffix(r.URL.Path, ":fork"):
		f.fork(w, r)
	default:
		f.next.ServeHTTP(w, r)
	}
}

func (f *forking) fork(w http.ResponseWriter, r *http.Request) {
	const root = "/conformance/seams/sample/"
	f.mu.Lock()
	body := f.seeded[strings.TrimSuffix(strings.TrimPrefix(r.URL.EscapedPath(), "/runs/"), ":fork")]
	f.mu.Unlock()
	switch {
	case body != nil && f.lost:
		f.send(w, r, root+"event-log/seed", bytes.ReplaceAll(body, []byte("run.resuming"), []byte("run.resumed")))
	case body != nil:
		f.send(w, r, root+"event-log/seed", body)
	case f.again:
		f.send(w, r, root+"effect-seams/fire", []byte(`{"seam":"core.http.request"}`))
	default:
		f.send(w, r, root+"event-log/seed", []byte(bareLog))
	}
}

// send asks the host in the caller's name, and remembers what a run was seeded with.
func (f *forking) send(w http.ResponseWriter, r *http.Request, path string, body []byte) {
	q := httptest.NewRequest("POST", path, bytes.NewReader(body))
	q.Header.Set("Authorization", r.Header.Get("Authorization"))
	q.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	f.next.ServeHTTP(rec, q)
	var made struct{ RunID string }
	_ = json.Unmarshal(rec.Body.Bytes(), &made)
	f.mu.Lock()
	f.seeded[strings.ReplaceAll(made.RunID, "/", "~2F")] = map[bool][]byte{true: body}[strings.HasSuffix(path, "/seed")]
	f.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes())
}

// advertising claims all the families the seam checks are about.
func advertising(next http.Handler) http.Handler {
	return answers(when("GET", wellKn), on(200, object(func(m map[string]any) {
		for family, facets := range map[string]map[string]any{
			"idempotency": nil, "webhooks": {"signatureAlgorithms": []string{"v1"}},
			"replay": {"modes": []string{"replay"}, "effectSeamsManifest": "/host/effect-seams"},
		} {
			if m[family] == nil {
				m[family] = record(facets)
			}
		}
	})))(next)
}

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

var forks = withForks(false, false)

// seamMutations are hosts whose inside is broken: what only a seam can show.
var seamMutations = []mutation{
	{"the provider is called twice", "seams.effect-retry", both(forks, through(relayed(2, asIs)))},
	{"a key for each attempt", "seams.effect-retry", both(forks, through(relayed(1, func(n int, h http.Header) { h.Set("Idempotency-Key", fmt.Sprint("key-", n)) })))},
	{"no key reaches the provider", "seams.effect-retry", both(forks, through(relayed(1, func(_ int, h http.Header) { h.Del("Idempotency-Key") })))},
	{"the ledger has another key", "seams.effect-retry", both(answers(when("GET", ledger), object(func(m map[string]any) {
		for _, e := range m["effects"].([]any) {
			e.(map[string]any)["providerKey"] = "constant"
		}
	})), forks)},
	{"the ledger has no key", "seams.effect-retry", both(answers(when("GET", ledger), object(func(m map[string]any) {
		for _, e := range m["effects"].([]any) {
			delete(e.(map[string]any), "providerKey")
		}
	})), forks)},
	{"a replay fires again", "seams.no-refire", withForks(true, false)},
	{"any delivery is taken", "seams.v1-webhook", both(answers(when("POST", receive), set("accepted", true)), forks)},
	{"no delivery of v1 is taken", "seams.v1-webhook", both(answers(when("POST", receive), set("accepted", false)), forks)},
	{"a fork has another prefix", "seams.fork-v1", withForks(false, true)},
	{"names of v1 are not translated", "seams.fork-v1", both(answers(when("GET", aPoll), ofType("run.resume-started", func(e map[string]any) { e["type"] = "run.resuming" })), forks)},
	{"a real issuer for a subject of v1", "seams.fork-v1", both(answers(when("GET", aPoll), ofType("run.started", func(e map[string]any) {
		e["payload"].(map[string]any)["owner"].(map[string]any)["subject"].(map[string]any)["issuer"] = "urn:fermata:api-key"
	})), forks)},
	{"an event of v1 is left out", "seams.fork-v1", both(answers(when("GET", aPoll), events(func(l []any) []any { return append(l[:2:2], l[3:]...) })), forks)},
	{"runs of v1 cannot be forked", "seams.fork-v1", both(instead(when("POST", `:fork$`), 422, `{"error":"fork_point_invalid","message":"no"}`), forks)},
}

func TestBrokenSeamsAreCaught(t *testing.T) {
	t.Parallel()
	host := seamed(t)
	one := func(id string) func(*conformance.Config) {
		return func(c *conformance.Config) { c.Filter, c.Timeout = quoted(id), 10*time.Second }
	}
	url := serve(t, advertising(forks(host)))
	for _, m := range seamMutations {
		t.Run(m.check+"/"+m.name, func(t *testing.T) {
			t.Parallel()
			r := look(t, serve(t, advertising(m.damage(host))), one(m.check))
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
