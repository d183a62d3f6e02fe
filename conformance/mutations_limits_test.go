package conformance_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/conformance"
)

var named = regexp.MustCompile(`"workflowId":"([^"]+)"`)

// behind refuses a create as the host does, and has told it of a run before, with a
// body that it takes.
func behind(refused func(b []byte) bool) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !when("POST", create)(r) {
				next.ServeHTTP(w, r)
				return
			}
			b := readAll(r)
			if m := named.FindSubmatch(b); refused(b) && m != nil {
				again := r.Clone(r.Context())
				putBody(again, fmt.Appendf(nil, `{"workflowId":%q}`, m[1]))
				next.ServeHTTP(httptest.NewRecorder(), again)
			}
			putBody(r, b)
			next.ServeHTTP(w, r)
		})
	}
}

// shallow lets a host see less of a body than was sent.
func shallow(b []byte) []byte {
	m := named.FindSubmatch(b)
	if m == nil || !bytes.Contains(b, []byte("[[[[")) {
		return b
	}
	return fmt.Appendf(nil, `{"workflowId":%q}`, m[1])
}

// ownLimit changes one of the host's own bounds in discovery.
func ownLimit(name string, value int) func(http.Handler) http.Handler {
	return answers(when("GET", wellKn), on(200, object(func(m map[string]any) {
		m["extensions"].(map[string]any)["fermata.limits"].(map[string]any)[name] = value
	})))
}

var limitMutations = []mutation{
	{"a body that is too large makes a run", "limits.body-whole", behind(func(b []byte) bool { return len(b) > 1<<20 })},
	{"what does not say its size is as large as it likes", "limits.body-whole", requests(func(r *http.Request) bool {
		return when("POST", create)(r) && r.ContentLength < 0
	}, func(r *http.Request) {
		if m := named.FindSubmatch(readAll(r)); m != nil {
			putBody(r, fmt.Appendf(nil, `{"workflowId":%q}`, m[1]))
		}
	})},
	{"a body as deep as you like", "limits.body-depth", requests(when("POST", create), func(r *http.Request) { putBody(r, shallow(readAll(r))) })},
	{"a body that is too deep makes a run", "limits.body-depth", behind(func(b []byte) bool { return bytes.Contains(b, bytes.Repeat([]byte("["), 100)) })},
	{"claims more depth than it reads", "limits.body-depth", ownLimit("maxBodyDepth", 1000)},
	{"claims more ids than it takes", "limits.bulk", ownLimit("maxBulkRuns", 200)},
	{"claims fewer ids than it takes", "limits.bulk", ownLimit("maxBulkRuns", 5)},
	{"claims another page", "limits.page", ownLimit("maxPageSize", 7)},
	{"claims a bound of streams", "limits.streams", ownLimit("runMaxStreams", 2)},
	{"claims to be full, and does not say for how long", "limits.retry-after", instead(when("GET", create), 429, `{"error":"rate_limited","message":"no"}`)},
	{"browsers may guess", "limits.sniffing", answers(when("GET", aRun), header("X-Content-Type-Options", ""))},
	{"a version for whoever looks for one", "limits.software", answers(when("GET", wellKn), header("Server", "fermata/1.2.3"))},
}

// refusing changes the refusals of streams and leaves those that are open alone.
type refusing struct {
	http.ResponseWriter
	change func(http.Header)
}

func (w refusing) WriteHeader(status int) {
	if status == 429 {
		w.change(w.Header())
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w refusing) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w refusing) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// A host with a bound that can be met without shutting anybody out: one that keeps it
// passes, and one that does not say when to come again fails.
func TestFullHostsAreLookedAt(t *testing.T) {
	t.Parallel()
	host := start(t, fermata.Config{DataDir: t.TempDir(), BootstrapKey: testKey, Limits: fermata.Limits{RunMaxStreams: 3}})
	ids := []string{"limits.streams", "limits.retry-after"}
	for name, change := range map[string]func(http.Header){
		"": func(http.Header) {}, "no time": func(h http.Header) { h.Del("Retry-After") },
		"a date":     func(h http.Header) { h.Set("Retry-After", "Mon, 30 Nov 2026 12:00:00 GMT") },
		"a fraction": func(h http.Header) { h.Set("Retry-After", "0.5") },
	} {
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { host.ServeHTTP(refusing{w, change}, r) })
		r := look(t, serve(t, h), func(c *conformance.Config) { c.OtherAPIKey, c.Filter = "", `^limits\.(streams|retry-after)$` })
		want := conformance.Fail
		if name == "" {
			want = conformance.Pass
		}
		for _, x := range r.Results {
			if !slices.Contains(ids, x.ID) || x.Status != want {
				t.Errorf("%q: %s is %s: %s\n%s", name, x.ID, x.Status, x.Reason, strings.Join(x.Evidence, "\n"))
			}
		}
	}
}
