package conformance_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/fermata-run/fermata/conformance"
)

// These doubles put capabilities in front of a host that may not have them yet:
// enough to show that the checks pass where the capability is right, and fail
// where one thing about it is wrong.

// keyed remembers answers by idempotency key.
type keyed struct {
	next  http.Handler
	fault string
	mu    sync.Mutex
	known map[string]*kept
}

type kept struct {
	mu     sync.Mutex
	digest string
	answer *httptest.ResponseRecorder
}

var keyForm = regexp.MustCompile(`^[A-Za-z0-9._~-]{22,128}$`)

func (k *keyed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Idempotency-Key")
	if r.Method != "POST" || key == "" {
		k.next.ServeHTTP(w, r)
		return
	}
	if !keyForm.MatchString(key) && k.fault != "grammar" {
		refuse(w, 400, "idempotency_key_invalid")
		return
	}
	b := readAll(r)
	putBody(r, b)
	k.mu.Lock()
	id := key + " " + r.URL.EscapedPath()
	if k.fault == "endpoint" {
		id = key
	}
	e := k.known[id]
	if e == nil {
		e = &kept{}
		k.known[id] = e
	}
	k.mu.Unlock()
	if k.fault != "concurrency" {
		e.mu.Lock()
		defer e.mu.Unlock()
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(b))
	switch {
	case e.answer != nil && e.digest != sum && k.fault != "digest":
		refuse(w, 409, "idempotency_key_mismatch")
	case e.answer != nil && k.fault != "forgets":
		if k.fault != "marker" {
			w.Header().Set("OpenWOP-Idempotent-Replay", "true")
		}
		copyAnswer(w, e.answer)
	default:
		rec := httptest.NewRecorder()
		k.next.ServeHTTP(rec, r)
		if final := rec.Code < 400 || rec.Code == 409; final && k.fault != "concurrency" {
			e.digest, e.answer = sum, rec
		}
		copyAnswer(w, rec)
	}
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("OpenWOP-Version", "2.0")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error":%q,"message":"no"}`, code)
}

func copyAnswer(w http.ResponseWriter, rec *httptest.ResponseRecorder) {
	for n, v := range rec.Header() {
		if n != "Content-Length" {
			w.Header()[n] = v
		}
	}
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes())
}

func record(facets map[string]any) map[string]any {
	r := map[string]any{"status": "stable", "since": "2.0", "witness": "witnessable-gated"}
	for k, v := range facets {
		r[k] = v
	}
	return r
}

func withKeys(next http.Handler, fault string) http.Handler {
	k := &keyed{next: requestsWithoutKey(next), fault: fault, known: map[string]*kept{}}
	return answers(when("GET", wellKn), on(200, set("idempotency", record(nil))))(k)
}

// requestsWithoutKey keeps the key from a host that may know what it is.
func requestsWithoutKey(next http.Handler) http.Handler {
	return requests(when("", all), func(r *http.Request) { r.Header.Del("Idempotency-Key") })(next)
}

// futureFaults are doubles with one thing wrong, each with the check that sees it.
var futureFaults = []struct {
	fault, check string
	with         func(http.Handler, string) http.Handler
}{
	{"grammar", "idempotency.key-refused", withKeys}, {"forgets", "idempotency.replay", withKeys}, {"marker", "idempotency.replay", withKeys},
	{"digest", "idempotency.mismatch", withKeys}, {"concurrency", "idempotency.concurrent", withKeys}, {"endpoint", "idempotency.endpoint", withKeys},
	{"forgets", "idempotency.final-refusal", withKeys}, {"forgets", "idempotency.resolve", withKeys},
}

func TestChecksOfCapabilitiesToCome(t *testing.T) {
	t.Parallel()
	host := good(t)
	for prefix, h := range map[string]http.Handler{"idempotency": withKeys(host, "")} {
		t.Run(prefix, func(t *testing.T) {
			t.Parallel()
			r := look(t, serve(t, h), func(c *conformance.Config) { c.Filter, c.Quick = `^(`+prefix+`|effects)\.`, false })
			passed := 0
			for _, x := range r.Results {
				switch x.Status {
				case conformance.Pass:
					passed++
				case conformance.Inapplicable:
				default:
					t.Errorf("%s: %s %s %v", x.ID, x.Status, x.Reason, x.Evidence)
				}
			}
			if passed < 8 {
				t.Errorf("only %d checks passed", passed)
			}
		})
	}
	for _, f := range futureFaults {
		t.Run(f.check+"/"+f.fault, func(t *testing.T) {
			t.Parallel()
			// The time of a check that waits for something that never comes.
			r := look(t, serve(t, f.with(host, f.fault)), func(c *conformance.Config) {
				c.Filter, c.Quick, c.Timeout = quoted(f.check), false, 4*time.Second
				c.Patience = time.Second
			})
			if x, _ := r.Result(f.check); x.Status != conformance.Fail {
				t.Errorf("not caught: %s %s", x.Status, x.Reason)
			}
		})
	}
}
