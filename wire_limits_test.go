package fermata_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/fermata-run/fermata"
)

const otherKey = "other-key-other-key-other-key-other-key"

// full wants a refusal by the named bound that says honestly when to come again.
func (a answer) full(t testing.TB, bound string) {
	t.Helper()
	a.refused(t, 429, "rate_limited")
	details, _ := a.json["details"].(map[string]any)
	if details["limit"] != bound {
		t.Errorf("over %v, want %s", details["limit"], bound)
	}
	secs, err := strconv.Atoi(a.header.Get("Retry-After"))
	if err != nil || secs < 1 {
		t.Errorf("Retry-After is %q", a.header.Get("Retry-After"))
	}
}

// A tenant with as many active runs as it may have starts no more, another tenant
// does, and what ends makes room. A refused create has not happened, under its key
// neither.
func TestWireActiveRuns(t *testing.T) {
	t.Parallel()
	s := start(t, withLimits(fermata.Limits{TenantMaxActiveRuns: 3}))
	other := s.key(otherKey, "other", "*")
	s.register(gate("gate"))
	s.do("PUT", "/host/fermata/workflows/gate", gate("gate"), "Authorization", other).want(t, 201)
	var runs []string
	for range 3 {
		runs = append(runs, s.run("gate"))
	}
	create := map[string]any{"workflowId": "gate"}
	const key = "an-idempotency-key-of-this-test"
	for range 3 {
		s.do("POST", "/runs", create, "Idempotency-Key", key).full(t, "tenant-max-active-runs")
	}
	for range 3 {
		s.do("POST", "/runs", create, "Authorization", other).want(t, 201)
	}
	s.do("POST", "/runs", create, "Authorization", other).full(t, "tenant-max-active-runs")
	s.restart() // what counts is in the store
	s.do("POST", "/runs", create).full(t, "tenant-max-active-runs")
	s.do("POST", "/runs/"+seg(runs[0])+"/cancel", nil).want(t, 200)
	s.await(runs[0], "cancelled")
	id := s.do("POST", "/runs", create, "Idempotency-Key", key).want(t, 201).str("runId")
	if again := s.do("POST", "/runs", create, "Idempotency-Key", key).want(t, 201).str("runId"); again != id {
		t.Errorf("the key made %s and %s", id, again)
	}
	s.do("POST", "/runs", create).full(t, "tenant-max-active-runs")
	if n := len(s.do("GET", "/runs", nil).want(t, 200).json["runs"].([]any)); n != 4 {
		t.Errorf("%d runs are there", n)
	}
}

// However many creates come at once, no more runs are active than may be.
func TestWireActiveRunsAtOnce(t *testing.T) {
	t.Parallel()
	s := start(t, withLimits(fermata.Limits{TenantMaxActiveRuns: 10}))
	s.register(gate("gate"))
	var mu sync.Mutex
	var all sync.WaitGroup
	count := map[int]int{}
	for range 60 {
		all.Go(func() {
			req, _ := http.NewRequest("POST", s.http.URL+"/runs", strings.NewReader(`{"workflowId":"gate"}`))
			req.Header.Set("Authorization", "Bearer "+testKey)
			req.Header.Set("Content-Type", "application/json")
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Error(err)
				return
			}
			res.Body.Close()
			mu.Lock()
			count[res.StatusCode]++
			mu.Unlock()
		})
	}
	all.Wait()
	if count[201] > 10 || count[201] == 0 || count[201]+count[429] != 60 {
		t.Fatalf("%v", count)
	}
	for range 10 - count[201] { // those that were counted twice have room now
		s.run("gate")
	}
	s.do("POST", "/runs", map[string]any{"workflowId": "gate"}).full(t, "tenant-max-active-runs")
}

func TestWireRates(t *testing.T) {
	t.Parallel()
	s := start(t, withLimits(fermata.Limits{TenantRate: "1/h:8", KeyRate: "1/h:5"}))
	other := s.key(otherKey, "other", "*")
	second := s.key("second-key-second-key-second-key-x", fermata.DefaultTenant, "*")
	for range 5 {
		s.do("GET", "/runs", nil).want(t, 200)
	}
	s.do("GET", "/runs", nil).full(t, "key-rate")
	for range 3 {
		s.do("GET", "/runs", nil, "Authorization", second).want(t, 200)
	}
	s.do("GET", "/runs", nil, "Authorization", second).full(t, "tenant-rate")
	for range 5 {
		s.do("GET", "/runs", nil, "Authorization", other).want(t, 200)
	}
	// What nobody is asked for costs nothing: discovery is not counted.
	for range 20 {
		s.do("GET", "/.well-known/openwop", nil).want(t, 200)
	}
}

func TestWireAuthFailures(t *testing.T) {
	t.Parallel()
	s := start(t, withLimits(fermata.Limits{AuthFailures: "1/h:4"}))
	s.do("GET", "/runs", nil).want(t, 200)
	for i := range 4 {
		switch i % 2 {
		case 0:
			s.do("GET", "/runs", nil, "Authorization", fmt.Sprintf("Bearer no-such-key-no-such-key-no-such-key-%d", i)).refused(t, 401, "unauthenticated")
		default:
			s.do("GET", "/interrupts/no.such.token"+strconv.Itoa(i), nil, "Authorization", "").refused(t, 401, "interrupt_token_invalid")
		}
	}
	s.do("GET", "/runs", nil, "Authorization", "Bearer no-such-key-no-such-key-no-such-key-9").full(t, "auth-failures")
	s.do("GET", "/interrupts/no.such.token", nil, "Authorization", "").full(t, "auth-failures")
	s.do("GET", "/runs", nil).want(t, 200)
	s.do("GET", "/runs", nil, "Authorization", "").refused(t, 401, "unauthenticated")
}

// A tenant with all its streams open has no more, and everything else goes on: its
// calls, and another tenant's streams.
func TestWireStreamsOfTenants(t *testing.T) {
	t.Parallel()
	s := start(t, withLimits(fermata.Limits{MaxStreams: 8, TenantMaxStreams: 4, RunMaxStreams: 3}))
	other := s.key(otherKey, "other", "*")
	s.register(gate("gate"))
	s.do("PUT", "/host/fermata/workflows/gate", gate("gate"), "Authorization", other).want(t, 201)
	one, two := s.run("gate"), s.run("gate")
	s.await(one, "waiting-approval")
	s.await(two, "waiting-approval")
	theirs := s.do("POST", "/runs", map[string]any{"workflowId": "gate"}, "Authorization", other).want(t, 201).str("runId")
	subs := []*subscription{s.subscribe(one, ""), s.subscribe(one, ""), s.subscribe(one, "")}
	s.do("GET", "/runs/"+seg(one)+"/events", nil).full(t, "run-max-streams")
	subs = append(subs, s.subscribe(two, ""))
	s.do("GET", "/runs/"+seg(two)+"/events/poll", nil).full(t, "tenant-max-streams")
	for range 3 {
		s.subscribe(theirs, "", "Authorization", other)
	}
	s.answer(one, "ok", map[string]any{"action": "accept"}).want(t, 200)
	s.answer(two, "ok", map[string]any{"action": "accept"}).want(t, 200)
	for _, sub := range subs {
		if frames := sub.frames(); frames[len(frames)-1].name != "run.completed" {
			t.Error("a stream ended early")
		}
	}
	for tries := 0; s.do("GET", "/runs/"+seg(two)+"/events/poll", nil).status != 200; tries++ {
		if tries == 2000 {
			t.Fatal("the streams were not given back")
		}
	}
}

// What discovery says is what is enforced, and a bound that is not set is not there.
func TestWireLimitsAreAdvertised(t *testing.T) {
	t.Parallel()
	s := start(t, withLimits(fermata.Limits{MaxCalls: 40, TenantMaxActiveRuns: 7, TenantRate: "600/m:50"}))
	facets := func(s *server) map[string]any {
		ext := s.do("GET", "/.well-known/openwop", nil).want(t, 200).json["extensions"].(map[string]any)
		return ext["fermata.limits"].(map[string]any)
	}
	got := facets(s)
	for name, want := range map[string]float64{"maxCalls": 40, "tenantMaxCalls": 30, "tenantMaxActiveRuns": 7, "tenantMaxStreams": 15000, "maxBodyDepth": 128} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	rate, _ := got["tenantRate"].(map[string]any)
	if rate["requests"] != 600.0 || rate["perSeconds"] != 60.0 || rate["burst"] != 50.0 || got["keyRate"] != nil {
		t.Errorf("rates: %v %v", rate, got["keyRate"])
	}
	if bare := facets(start(t)); bare["tenantRate"] != nil || bare["tenantMaxActiveRuns"] != nil || bare["authFailures"] == nil {
		t.Errorf("defaults: %v", bare)
	}
}

func TestLimitsThatMakeNoSenseStopTheStart(t *testing.T) {
	for name, c := range map[string]fermata.Config{
		"TenantRate":    {Limits: fermata.Limits{TenantRate: "fast"}},
		"AuthFailures":  {Limits: fermata.Limits{AuthFailures: "1/d"}},
		"MaxBodyMemory": {Limits: fermata.Limits{MaxBodyMemory: 1 << 20}},
		"CORSOrigins":   {CORSOrigins: []string{"*"}},
		"AllowedHosts":  {AllowedHosts: []string{"*.example.com"}},
	} {
		c.DataDir = t.TempDir()
		h, err := fermata.Open(context.Background(), c)
		if err == nil {
			_ = h.Stop(context.Background())
		}
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Every answer of every operation carries what keeps a browser from making anything
// of it, whatever the answer is.
func TestWireSecurityHeaders(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *fermata.Config) { c.CORSOrigins = []string{"https://app.example.com"} })
	s.register(gate("gate"))
	id := s.run("gate")
	s.await(id, "waiting-approval")
	check := func(what string, h http.Header) {
		t.Helper()
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := h.Values(name); len(got) != 1 || got[0] != want {
				t.Errorf("%s: %s is %q", what, name, got)
			}
		}
		if csp := h.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'") {
			t.Errorf("%s: Content-Security-Policy is %q", what, csp)
		}
		if h.Get("Server") != "" || h.Get("X-Powered-By") != "" || h.Get("Cache-Control") == "" || !strings.Contains(strings.Join(h.Values("Vary"), ","), "Origin") {
			t.Errorf("%s: %v", what, h)
		}
	}
	for _, route := range s.host.Routes() {
		path := strings.NewReplacer("{runId}", seg(id), "{workflowId}", "gate", "{nodeId}", "ok").Replace(route.Pattern)
		for _, auth := range []string{"Bearer " + testKey, ""} {
			if route.Stream {
				path += "?timeout=1&streamMode=x"
			}
			a := s.do(route.Method, path, nil, "Authorization", auth)
			check(fmt.Sprint(route.Method, " ", path, " ", a.status), a.header)
			secret := route.Scope != "" && a.status < 400
			if cc := a.header.Get("Cache-Control"); secret && cc != "no-store" {
				t.Errorf("%s %s: Cache-Control is %q", route.Method, path, cc)
			}
		}
	}
	tag := s.do("GET", "/runs/"+seg(id), nil).header.Get("ETag")
	for what, a := range map[string]answer{
		"304": s.do("GET", "/runs/"+seg(id), nil, "If-None-Match", tag).want(t, 304), "404": s.do("GET", "/nowhere", nil).want(t, 404),
		"405": s.do("DELETE", "/runs", nil).want(t, 405), "400": s.do("GET", "/runs/%2e%2e/x", nil).want(t, 400), "OPTIONS": s.do("OPTIONS", "/runs", nil).want(t, 204),
	} {
		check(what, a.header)
	}
	check("stream", s.subscribe(id, "").header)
}

func TestWireMethods(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("gate"))
	id := s.run("gate")
	s.await(id, "waiting-approval")
	get, head := s.do("GET", "/runs/"+seg(id), nil).want(t, 200), s.do("HEAD", "/runs/"+seg(id), nil).want(t, 200)
	if head.header.Get("ETag") != get.header.Get("ETag") || head.header.Get("Content-Length") != strconv.Itoa(len(get.body)) {
		t.Errorf("HEAD and GET differ: %v, %v", head.header, get.header)
	}
	if allow := s.do("OPTIONS", "/runs/"+seg(id), nil).want(t, 204).header.Get("Allow"); allow != "GET, HEAD, OPTIONS" {
		t.Errorf("Allow: %q", allow)
	}
	s.do("OPTIONS", "/nowhere", nil).refused(t, 404, "not_found")
	for _, method := range []string{"TRACE", "get", "PROPFIND", "CONNECTX"} {
		a := s.do(method, "/runs", nil)
		if a.status != 405 || bytes.Contains(a.body, []byte(testKey)) {
			t.Errorf("%s: %d %s", method, a.status, a.body)
		}
	}
	// No header makes another method of one.
	for _, name := range []string{"X-HTTP-Method-Override", "X-Method-Override", "X-HTTP-Method"} {
		s.do("GET", "/runs/"+seg(id), nil, name, "DELETE").want(t, 200)
		s.do("POST", "/runs/"+seg(id), nil, name, "GET").want(t, 405)
	}
	for _, ct := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonx", "application/json; charset=utf-16", "text/json", ""} {
		s.do("POST", "/runs", `{"workflowId":"gate"}`, "Content-Type", ct).refused(t, 415, "unsupported_media_type")
	}
}
