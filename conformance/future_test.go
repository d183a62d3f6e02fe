package conformance_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
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

// hooked delivers the events of runs it has seen being created.
type hooked struct {
	next  http.Handler
	fault string
	mu    sync.Mutex
	hooks map[string]hook
	n     int
}

type hook struct {
	id, url, secret string
	events          []string
}

func (h *hooked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/webhooks") {
		h.manage(w, r)
		return
	}
	if r.Method != "POST" || r.URL.Path != "/runs" {
		h.next.ServeHTTP(w, r)
		return
	}
	rec := httptest.NewRecorder()
	h.next.ServeHTTP(rec, r)
	if rec.Code == 201 {
		var made struct{ RunID string }
		_ = json.Unmarshal(rec.Body.Bytes(), &made)
		go h.follow(made.RunID)
	}
	copyAnswer(w, rec)
}

func (h *hooked) manage(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.Method == "DELETE" {
		id := strings.ReplaceAll(strings.TrimPrefix(r.URL.Path, "/webhooks/"), "~2F", "/")
		switch _, ok := h.hooks[id]; {
		case !strings.HasPrefix(id, "default/"):
			refuse(w, 403, "id_tenant_mismatch")
		case !ok:
			refuse(w, 404, "not_found")
		default:
			delete(h.hooks, id)
			w.Header().Set("OpenWOP-Version", "2.0")
			w.WriteHeader(204)
		}
		return
	}
	var b struct {
		URL, Secret string
		Events      []string
	}
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	odd := func(t string) bool { return strings.Contains(t, " ") }
	if d.Decode(&b) != nil || len(b.Events) == 0 || slices.ContainsFunc(b.Events, odd) || b.URL == "" {
		refuse(w, 400, "validation_error")
		return
	}
	// It is started for a test: of all that is not public it calls loopback alone.
	if u, err := url.Parse(b.URL); err != nil || u.Hostname() != "127.0.0.1" && (u.Scheme != "https" || u.Hostname() != "conformance.example") {
		refuse(w, 400, "webhook_url_rejected")
		return
	}
	h.n++
	x := hook{id: fmt.Sprintf("default/0123456789abcdef%04d", h.n), url: b.URL, secret: b.Secret, events: b.Events}
	h.hooks[x.id] = x
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("OpenWOP-Version", "2.0")
	w.WriteHeader(201)
	fmt.Fprintf(w, `{"webhookId":%q}`, x.id)
}

func (h *hooked) follow(run string) {
	after := int64(-1)
	for range 50 {
		path := "/runs/" + strings.ReplaceAll(run, "/", "~2F") + "/events/poll?timeout=1"
		if after >= 0 {
			path += fmt.Sprint("&afterSequence=", after)
		}
		req := httptest.NewRequest("GET", path, nil)
		req.Header.Set("Authorization", "Bearer "+testKey)
		rec := httptest.NewRecorder()
		h.next.ServeHTTP(rec, req)
		var g struct {
			Events     []json.RawMessage
			IsTerminal bool
		}
		_ = json.Unmarshal(rec.Body.Bytes(), &g)
		for _, doc := range g.Events {
			var e struct {
				Type     string
				Sequence int64
			}
			_ = json.Unmarshal(doc, &e)
			after = e.Sequence
			h.mu.Lock()
			for _, x := range h.hooks {
				if slices.Contains(x.events, e.Type) && (h.fault != "loses" || e.Type != "node.completed") {
					go h.deliver(x, run, e.Type, doc)
				}
			}
			h.mu.Unlock()
		}
		if g.IsTerminal {
			return
		}
	}
}

func (h *hooked) deliver(x hook, run, typ string, doc []byte) {
	body := fmt.Appendf(nil, `{"runId":%q,"event":%s}`, run, doc)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for range 3 {
		stamp := fmt.Sprint(time.Now().Unix())
		m := hmac.New(sha256.New, []byte(x.secret))
		if h.fault != "unsigned time" {
			fmt.Fprintf(m, "%s.", stamp)
		}
		m.Write(body)
		req, _ := http.NewRequest("POST", x.url, bytes.NewReader(body))
		for n, v := range map[string]string{"Webhook-Id": x.id, "Event-Type": typ, "Timestamp": stamp, "Signature-Algorithm": "v1",
			"Signature": "sha256=" + hex.EncodeToString(m.Sum(nil))} {
			req.Header.Set("OpenWOP-"+n, v)
		}
		res, err := client.Do(req)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if res.StatusCode < 300 || h.fault == "gives up" || h.fault == "follows" && res.StatusCode < 400 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
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

func withHooks(next http.Handler, fault string) http.Handler {
	h := &hooked{next: next, fault: fault, hooks: map[string]hook{}}
	return answers(when("GET", wellKn), on(200, set("webhooks", record(map[string]any{"signatureAlgorithms": []string{"v1"}}))))(h)
}

// futureFaults are doubles with one thing wrong, each with the check that sees it.
var futureFaults = []struct {
	fault, check string
	with         func(http.Handler, string) http.Handler
}{
	{"grammar", "idempotency.key-refused", withKeys}, {"forgets", "idempotency.replay", withKeys}, {"marker", "idempotency.replay", withKeys},
	{"digest", "idempotency.mismatch", withKeys}, {"concurrency", "idempotency.concurrent", withKeys}, {"endpoint", "idempotency.endpoint", withKeys},
	{"forgets", "idempotency.final-refusal", withKeys}, {"forgets", "idempotency.resolve", withKeys},
	{"unsigned time", "webhooks.signed", withHooks}, {"loses", "webhooks.complete", withHooks},
	{"gives up", "webhooks.retried", withHooks}, {"follows", "webhooks.retried", withHooks},
}

func TestChecksOfCapabilitiesToCome(t *testing.T) {
	t.Parallel()
	host := good(t)
	for prefix, h := range map[string]http.Handler{"idempotency": withKeys(host, ""), "webhooks": withHooks(host, "")} {
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
