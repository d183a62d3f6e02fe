package fermata_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/fermata-run/fermata"
	"github.com/getkin/kin-openapi/openapi3"
)

func TestV1Families(t *testing.T) {
	t.Parallel()
	s := start(t, withV1)
	s.register(noop("one"))
	id := s.run1("one")
	s.await1(id, "completed")
	for _, c := range []struct {
		method, path string
		status       int
		code         string
	}{
		{"GET", "/v1/runs/" + id + "/annotations", 501, "capability_not_provided"}, {"POST", "/v1/runs/" + id + "/annotations", 501, "capability_not_provided"},
		{"POST", "/v1/prompts:render", 501, "capability_not_provided"}, {"GET", "/v1/prompts/p", 501, "capability_not_provided"},
		{"POST", "/v1/trigger-subscriptions", 501, "capability_not_provided"},
		{"GET", "/v1/runs/" + id + "/artifacts/a", 404, "not_found"}, {"GET", "/v1/runs/none/artifacts/a", 404, "not_found"},
		{"GET", "/v1/runs/" + id + "/eval-summary", 404, "not_found"}, {"GET", "/v1/runs/none/eval-summary", 404, "not_found"},
		{"GET", "/v1/agents/roster", 404, "not_found"}, {"GET", "/v1/agents/org-chart", 404, "not_found"}, {"GET", "/v1/tools", 404, "not_found"},
		{"GET", "/v1/runs", 405, "not_found"}, {"GET", "/v1/host/events", 404, "not_found"}, {"GET", "/v1/host/effect-seams", 404, "not_found"},
		{"GET", "/v1/runs/" + id + "/compensation", 404, "not_found"}, {"GET", "/v1/runs/" + id + "/effects", 404, "not_found"},
	} {
		s.do(c.method, c.path, nil).refused(t, c.status, c.code)
	}
	for _, path := range []string{"/v1/runs/" + id + "/annotations", "/v1/runs/none/artifacts/a", "/v1/audit/verify"} {
		s.do("GET", path, nil, "Authorization", "").refused(t, 401, "unauthenticated") // before anything is said of it
	}
	v := s.do("GET", "/v1/audit/verify", nil).want(t, 200)
	if v.json["chainValid"] != true {
		t.Errorf("%s", v.body)
	}
}

// No tenant, and nothing but what the credential is for, reaches over by way of v1.
func TestV1Tenancy(t *testing.T) {
	t.Parallel()
	s := start(t, withV1)
	s.register(gate("g"))
	id := s.run1("g")
	other := s.key("other-key-other-key-other-key-other", "other", "*")
	bodies := map[string]any{"forkRun": map[string]any{"mode": "replay"}, "resolveInterruptByRun": map[string]any{"resumeValue": yes}, "resolveApproval": yes, "createAnnotation": map[string]any{}}
	checked := 0
	for _, r := range s.host.Routes() {
		if r.Wire != "v1" || !strings.Contains(r.Pattern, "{runId}") {
			continue
		}
		for _, at := range []string{id, seg(fermata.DefaultTenant + "/" + id)} {
			path := strings.NewReplacer("{runId}", at, "{nodeId}", "ok", "{artifactId}", "a").Replace(r.Pattern)
			if r.ID == "diffRun" {
				path += "?against=" + id
			}
			a := s.do(r.Method, path, bodies[r.ID], "Authorization", other)
			if absent := a.status == 501; !absent {
				a.refused(t, 404, "not_found")
				checked++
			}
		}
	}
	if checked < 24 {
		t.Errorf("only %d requests", checked)
	}
	theirs := s.do("POST", "/v1/runs:bulk-cancel", map[string]any{"runIds": []string{id}}, "Authorization", other).want(t, 200)
	if r := theirs.json["results"].([]any)[0].(map[string]any); r["ok"] != false || r["error"].(map[string]any)["error"] != "not_found" {
		t.Errorf("a stranger's bulk: %s", theirs.body)
	}
	if s.await1(id, "waiting-approval")["status"] != "waiting-approval" {
		t.Error("a stranger moved it")
	}
}

func TestV1Discovery(t *testing.T) {
	t.Parallel()
	s := start(t, withV1)
	a := s.do("GET", "/.well-known/openwop", nil, "Authorization", "").want(t, 200)
	etag := a.header.Get("ETag")
	if etag == "" || a.header.Get("Capabilities-Etag") != etag || a.header.Get("Cache-Control") != "public, max-age=300" || !strings.Contains(a.header.Get("Vary"), "OpenWOP-Version") {
		t.Errorf("%v", a.header)
	}
	s.do("GET", "/.well-known/openwop", nil, "If-None-Match", etag).want(t, 304)
	v2 := s.do("GET", "/.well-known/openwop", nil, "OpenWOP-Version", "2").want(t, 200)
	if v2.header.Get("ETag") == etag {
		t.Error("two documents, one validator")
	}
	for _, family := range []string{"limits", "supportedEnvelopes", "schemaVersions", "runs", "idempotency", "auth", "authorization", "replay"} {
		if a.json[family] == nil {
			t.Errorf("no %s: %s", family, a.body)
		}
	}
	if a.json["eventLogSchemaVersion"] != 2.0 || a.json["fixtures"] != nil {
		t.Errorf("%s", a.body)
	}
	// A family that is advertised answers, and one that does not is not advertised.
	for family, path := range map[string]string{"feedback": "/v1/runs/x/annotations", "debugBundle": "/v1/runs/x/debug-bundle"} {
		says := a.json[family].(map[string]any)["supported"] == true
		table := s.do("GET", path, nil)
		if does := table.status != http.StatusNotImplemented && !strings.Contains(string(table.body), "no such operation"); says != does {
			t.Errorf("%s: says %v, does %v", family, says, does)
		}
	}
	doc := s.do("GET", "/v1/openapi.json", nil, "Authorization", "").want(t, 200)
	if parsed, err := openapi3.NewLoader().LoadFromData(doc.body); err != nil {
		t.Error(err)
	} else if err := parsed.Validate(t.Context(), openapi3.IsOpenAPI31OrLater()); err != nil {
		t.Error(err)
	}
	for path := range doc.json["paths"].(map[string]any) {
		if !strings.HasPrefix(path, "/v1/") && path != "/.well-known/openwop" {
			t.Errorf("%s in v1's document", path)
		}
	}
	suite := start(t, withV1, func(c *fermata.Config) { c.ConformanceSeams = true })
	suite.register(noop("conformance-noop"))
	suite.register(noop("other"))
	if f := suite.do("GET", "/.well-known/openwop", nil).json["fixtures"]; fmt.Sprint(f) != "[conformance-noop]" {
		t.Errorf("fixtures %v", f)
	}
}

// What is over a bound is told so in v1's words, and it is one bound for both majors.
func TestV1Bounds(t *testing.T) {
	t.Parallel()
	s := start(t, withV1, withLimits(fermata.Limits{TenantMaxActiveRuns: 2}))
	s.register(gate("g"))
	s.run("g")
	s.run1("g")
	s.do("POST", "/runs", map[string]any{"workflowId": "g"}).full(t, "tenant-max-active-runs")
	a := s.do("POST", "/v1/runs", map[string]any{"workflowId": "g"}).refused(t, 429, "rate_limited")
	_, d := errorOf(a)
	if ms, _ := d["retryAfterMs"].(float64); ms < 1000 || d["scope"] != "tenant" || fmt.Sprint(ms/1000) != a.header.Get("Retry-After") {
		t.Errorf("%s, Retry-After %q", a.body, a.header.Get("Retry-After"))
	}
	// A run has no second set of subscribers, nor a tenant a second set of streams, because
	// there is a second way to ask for one.
	for scope, l := range map[string]fermata.Limits{"route": {RunMaxStreams: 1}, "tenant": {TenantMaxStreams: 1}} {
		for _, older := range []bool{false, true} {
			few := start(t, withV1, withLimits(l))
			few.register(gate("g"))
			id := few.run("g")
			few.await(id, "waiting-approval")
			path := "/runs/" + seg(id) + "/events"
			if older {
				path = "/v1/runs/" + bareID(id) + "/events"
			}
			few.subscribeAt(path).next()
			a := few.do("GET", "/v1/runs/"+bareID(id)+"/events", nil).refused(t, 429, "rate_limited")
			if _, d := errorOf(a); d["scope"] != scope || d["retryAfterMs"] == nil {
				t.Errorf("beside %s: %s, want the scope %s", path, a.body, scope)
			}
			few.do("GET", "/runs/"+seg(id)+"/events", nil).refused(t, 429, "rate_limited")
		}
	}
	shared := start(t, withV1, withLimits(fermata.Limits{TenantRate: "1/h:5"}))
	for range 5 {
		shared.do("GET", "/v1/runs/none", nil).refused(t, 404, "not_found")
	}
	shared.do("GET", "/runs", nil).full(t, "tenant-rate")
	_, d = errorOf(shared.do("GET", "/v1/runs/none", nil).refused(t, 429, "rate_limited"))
	if d["scope"] != "tenant" {
		t.Errorf("details %v", d)
	}
}

// Every operation of v1 that wants a scope refuses who lacks it, and without a
// credential nothing is said at all.
func TestV1Scopes(t *testing.T) {
	t.Parallel()
	s := start(t, withV1)
	s.register(gate("g"))
	id := s.run1("g")
	bodies := map[string]any{
		"createRun": map[string]any{"workflowId": "g"}, "forkRun": map[string]any{"mode": "replay"}, "bulkCancelRuns": map[string]any{"runIds": []string{id}}, "registerWorkflow": noop("x"),
		"resolveInterruptByRun": map[string]any{"resumeValue": yes}, "resolveApproval": yes,
		"registerWebhook": map[string]any{"url": "https://hooks.example.com/", "events": []string{"run.completed"}},
	}
	checked := 0
	for i, r := range s.host.Routes() {
		if r.Wire != "v1" || r.Scope == "" || r.Stream {
			continue
		}
		checked++
		path := strings.NewReplacer("{runId}", id, "{workflowId}", "g", "{nodeId}", "ok", "{artifactId}", "a", "{templateId}", "p", "{webhookId}", "0123456789abcdef").Replace(r.Pattern)
		if r.ID == "diffRun" {
			path += "?against=" + id
		}
		s.do(r.Method, path, bodies[r.ID], "Authorization", "").refused(t, 401, "unauthenticated")
		key := s.key(fmt.Sprintf("scope-%02d-scope-key-scope-key-scope-key", i), fermata.DefaultTenant, "fermata:nothing")
		a := s.do(r.Method, path, bodies[r.ID], "Authorization", key)
		if code, d := errorOf(a); a.status != 403 || code != "forbidden" || d["scopeRequired"] == nil {
			t.Errorf("%s %s without %s: %d %s", r.Method, path, r.Scope, a.status, a.body)
		}
	}
	if checked < 15 {
		t.Errorf("only %d operations", checked)
	}
	if st := s.await1(id, "waiting-approval")["status"]; st != "waiting-approval" {
		t.Errorf("the run is %v", st)
	}
}
