package fermata_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/fermata-run/fermata"
)

// till is a service outside that counts what it is asked for, by key.
type till struct {
	*httptest.Server
	mu    sync.Mutex
	seen  []*http.Request
	does  func(w http.ResponseWriter, r *http.Request, n int) // n: the how manieth call this is
	count map[string]int
}

func newTill(t *testing.T, does func(w http.ResponseWriter, r *http.Request, n int)) *till {
	s := &till{does: does, count: map[string]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		s.mu.Lock()
		s.seen = append(s.seen, r.Clone(t.Context()))
		s.count[r.Header.Get(keyHeader)]++
		n := len(s.seen)
		s.mu.Unlock()
		if s.does != nil {
			s.does(w, r, n)
			return
		}
		fmt.Fprintf(w, "receipt %d", n)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *till) calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen)
}

// cut breaks a connection after the request has been read.
func cut(w http.ResponseWriter, _ *http.Request, _ int) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		conn.Close()
	}
}

func loopback(c *fermata.Config) {
	c.AllowEgress = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
}

// charging is a workflow with one call.
func charging(id, url string, config map[string]any, inputs map[string]any) map[string]any {
	config["url"] = url
	if config["method"] == nil {
		config["method"] = "POST"
	}
	if inputs == nil {
		inputs = map[string]any{}
	}
	return flow(id, []any{step("charge", "core.http.request", config, map[string]any{
		"inputs": inputs, "settings": map[string]any{"maxRetries": 2, "retryDelayMs": 1, "retryBackoff": 1},
	})}, nil, map[string]any{"edges": []any{}, "variables": []any{map[string]any{"name": "order", "type": "string"}}})
}

// effects are the attempts of a run.
func (s *server) effects(id string) []map[string]any {
	s.t.Helper()
	a := s.do("GET", "/runs/"+seg(id)+"/effects", nil).want(s.t, 200)
	if a.str("runId") != id {
		s.t.Fatalf("the ledger of %s: %s", id, a.body)
	}
	var out []map[string]any
	for _, e := range a.json["effects"].([]any) {
		out = append(out, e.(map[string]any))
	}
	return out
}

func states(list []map[string]any) string {
	var out []string
	for _, e := range list {
		out = append(out, e["state"].(string))
	}
	return strings.Join(out, " ")
}

// Ten runs of two workflows that charge one order charge it once; another order is
// another charge. The ledger shows it without what was sent and received.
func TestWireOneEffectForOneOrder(t *testing.T) {
	t.Parallel()
	out := newTill(t, nil)
	s := start(t, loopback)
	key := map[string]any{"idempotencyKey": map[string]any{"type": "expression", "expression": "'order-' + variables.order"}}
	s.register(charging("web", out.URL+"/charges", map[string]any{"body": map[string]any{"card": "s3cret"}}, key))
	s.register(charging("phone", out.URL+"/charges?from=phone", map[string]any{}, key))
	var runs []string
	for i := range 10 {
		runs = append(runs, s.run([]string{"web", "phone"}[i%2], map[string]any{"inputs": map[string]any{"order": "17"}}))
	}
	ids, keys := map[any]bool{}, map[any]bool{}
	for _, id := range runs {
		snap := s.await(id, "completed")
		if !strings.Contains(fmt.Sprint(snap), "receipt 1") {
			t.Errorf("run %s has another receipt: %v", id, snap)
		}
		list := s.effects(id)
		if states(list) != "completed" || list[0]["keying"] != "business-identity" || list[0]["nodeId"] != "charge" || list[0]["attempt"] != 1.0 {
			t.Errorf("%v", list)
		}
		ids[list[0]["effectId"]], keys[list[0]["providerKey"]] = true, true
		raw := fmt.Sprint(list)
		for _, secret := range []string{"s3cret", "receipt", "order-17", out.URL} {
			if strings.Contains(raw, secret) {
				t.Errorf("the ledger says %s: %s", secret, raw)
			}
		}
	}
	if out.calls() != 1 || len(ids) != 1 || len(keys) != 1 || !keys[out.seen[0].Header.Get(keyHeader)] {
		t.Errorf("%d calls, effects %v, keys %v", out.calls(), ids, keys)
	}
	s.restart()
	s.await(s.run("web", map[string]any{"inputs": map[string]any{"order": "17"}}), "completed")
	s.await(s.run("web", map[string]any{"inputs": map[string]any{"order": "18"}}), "completed")
	if out.calls() != 2 {
		t.Errorf("%d calls", out.calls())
	}
}

// What a call that goes wrong leaves behind, and whether it is made again.
func TestWireEffectStates(t *testing.T) {
	t.Parallel()
	answer := func(codes ...int) func(http.ResponseWriter, *http.Request, int) {
		return func(w http.ResponseWriter, _ *http.Request, n int) { w.WriteHeader(codes[min(n, len(codes))-1]) }
	}
	cutThenOK := func(w http.ResponseWriter, r *http.Request, n int) {
		if n == 1 {
			cut(w, r, n)
		}
	}
	type object = map[string]any
	s := start(t, loopback)
	for i, c := range []struct {
		name   string
		does   func(http.ResponseWriter, *http.Request, int)
		config object
		calls  int
		states string
		status string
		reason any // of a failure
		key    bool
	}{
		{"a 503 is tried again under its key", answer(503, 200), object{}, 2, "escaped completed", "completed", nil, true},
		{"a 429 has had no effect", answer(429, 200), object{"onUnknownOutcome": "fail"}, 2, "released completed", "completed", nil, true},
		{"a refusal has had no effect", answer(422), object{}, 1, "released", "failed", nil, true},
		{"a conflict may be with oneself", answer(409), object{}, 1, "escaped", "failed", nil, true},
		{"a 503 without a key stops", answer(503), object{"idempotencyHeader": ""}, 1, "escaped", "failed", "outcome-unknown", false},
		{"a 503 stops if the author says so", answer(503), object{"onUnknownOutcome": "fail"}, 1, "escaped", "failed", "outcome-unknown", true},
		{"without a key, but it may be repeated", answer(503, 200), object{"idempotencyHeader": "", "onUnknownOutcome": "repeat"}, 2, "escaped completed", "completed", nil, false},
		{"PUT is repeatable by itself", answer(500, 200), object{"method": "PUT", "idempotencyHeader": ""}, 2, "escaped completed", "completed", nil, false},
		{"success of another kind has happened", answer(202), object{"expectStatus": 201}, 1, "completed", "failed", nil, true},
		{"an expected refusal is an outcome", answer(404), object{"method": "DELETE", "expectStatus": []any{204, 404}}, 1, "completed", "completed", nil, true},
		{"a read has no effect", answer(200), object{"method": "GET"}, 1, "", "completed", nil, false},
		{"a broken connection stops", cut, object{"onUnknownOutcome": "fail", "body": 1}, 1, "escaped", "failed", "outcome-unknown", true},
		{"so it does without a body", cut, object{"onUnknownOutcome": "fail"}, 1, "escaped", "failed", "outcome-unknown", true},
		{"a broken connection is tried again", cutThenOK, object{"body": 1}, 2, "escaped completed", "completed", nil, true},
		{"a key of one's own is not shown", answer(200), object{"headers": object{"idempotency-key": "s3cret"}}, 1, "completed", "completed", nil, false},
		{"a header of another name", answer(200), object{"idempotencyHeader": "x-request-id"}, 1, "completed", "completed", nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := s.as(t)
			out := newTill(t, c.does)
			name := fmt.Sprint("w", i)
			s.register(charging(name, out.URL, c.config, nil))
			id := s.run(name)
			snap := s.await(id, "completed", "failed")
			list := s.effects(id)
			if out.calls() != c.calls || states(list) != c.states || snap["status"] != c.status {
				t.Fatalf("%d calls, %s, %s; want %d, %s, %s", out.calls(), states(list), snap["status"], c.calls, c.states, c.status)
			}
			if c.status == "failed" {
				e := snap["error"].(map[string]any)
				details, _ := e["details"].(map[string]any)
				if e["code"] != "upstream_unavailable" || details["reason"] != c.reason {
					t.Errorf("%v", e)
				}
			}
			header := keyHeader
			if h, ok := c.config["idempotencyHeader"].(string); ok && h != "" {
				header = h
			}
			for j, e := range list {
				shown, _ := e["providerKey"].(string)
				if (shown != "") != c.key || c.key && out.seen[j].Header.Get(header) != shown || e["keying"] != "activity-recipe" {
					t.Errorf("attempt %d: %v, the server saw %q", j, e, out.seen[j].Header.Get(header))
				}
				if e["effectId"] != list[0]["effectId"] || e["attempt"] != float64(j+1) {
					t.Errorf("attempt %d: %v", j, e)
				}
			}
		})
	}
}

// A call that never left is no effect, and one to nowhere is tried anew.
func TestWireEffectNeverSent(t *testing.T) {
	t.Parallel()
	gone := newTill(t, nil)
	gone.Close()
	s := start(t, loopback)
	s.register(charging("gone", gone.URL, map[string]any{"onUnknownOutcome": "fail"}, nil))
	s.register(charging("denied", "http://169.254.169.254/", map[string]any{}, nil))
	for workflow, want := range map[string]string{"gone": "released released released", "denied": "released"} {
		id := s.run(workflow)
		s.await(id, "failed")
		if got := states(s.effects(id)); got != want {
			t.Errorf("%s: %s", workflow, got)
		}
	}
}

// The key goes along when a call is redirected to another origin, whatever its
// header is called; a credential does not.
func TestWireKeyFollowsRedirects(t *testing.T) {
	t.Parallel()
	end := newTill(t, nil)
	first := newTill(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		http.Redirect(w, r, end.URL, http.StatusTemporaryRedirect)
	})
	s := start(t, loopback)
	s.register(charging("r", first.URL, map[string]any{
		"followRedirects": true, "body": 1, "idempotencyHeader": "X-Request-Id", "onUnknownOutcome": "fail", "headers": map[string]any{"X-Api-Key": "s3cret"},
	}, nil))
	id := s.run("r")
	s.await(id, "completed")
	list := s.effects(id)
	if end.calls() != 1 || end.seen[0].Header.Get("X-Request-Id") != list[0]["providerKey"] || end.seen[0].Header.Get("X-Api-Key") != "" {
		t.Errorf("%v, the end saw %v", list, end.seen[0].Header)
	}
}

func TestWireEffectsRefusals(t *testing.T) {
	t.Parallel()
	s := start(t, loopback)
	s.register(flow("n", []any{step("a", "core.noop", nil)}, []any{}))
	id := s.run("n")
	s.await(id, "completed")
	if len(s.effects(id)) != 0 {
		t.Error("a node without effects has some")
	}
	at := "/runs/" + seg(id) + "/effects"
	other := s.key("other-key-other-key-other-key-other", "other", "runs:read")
	narrow := s.key("narrow-key-narrow-key-narrow-key-n", "default", "runs:create")
	s.do("GET", at, nil, "Authorization", other).refused(t, 403, "id_tenant_mismatch")
	s.do("GET", at, nil, "Authorization", narrow).refused(t, 403, "forbidden")
	s.do("GET", at, nil, "Authorization", "").refused(t, 401, "unauthenticated")
	s.do("GET", "/runs/default~2F0123456789abcdef/effects", nil).refused(t, 404, "not_found")
	for field, config := range map[string]map[string]any{
		"idempotencyHeader": {"idempotencyHeader": "Content-Length"}, "idempotencyKey": {"method": "GET", "idempotencyKey": "k"},
		"onUnknownOutcome": {"onUnknownOutcome": "perhaps"}, "operation": {"operation": strings.Repeat("x", 513), "idempotencyKey": "k"},
	} {
		a := s.do("PUT", "/host/fermata/workflows/bad", charging("bad", "https://a.example", config, nil))
		if a.status != 422 && a.status != 400 || !strings.Contains(string(a.body), field) {
			t.Errorf("%s: %d %s", field, a.status, a.body)
		}
	}
}
