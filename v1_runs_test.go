package fermata_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-run/fermata"
)

func errorOf(a answer) (code string, details map[string]any) {
	details, _ = a.json["details"].(map[string]any)
	return a.str("error"), details
}

func noop(id string) map[string]any { return flow(id, []any{step("a", "core.noop", nil)}, []any{}) }

func TestV1RunLife(t *testing.T) {
	t.Parallel()
	s := start(t, withV1)
	reg := s.do("POST", "/v1/workflows", flow("echo", []any{step("a", "core.noop", nil)}, []any{}, map[string]any{
		"variables": []any{map[string]any{"name": "n", "type": "number"}, map[string]any{"name": "pin", "type": "string", "sensitive": true}},
	})).want(t, 201)
	if reg.str("workflowId") != "echo" || reg.str("version") != "1.0" || reg.header.Get("Location") != "/v1/workflows/echo" {
		t.Errorf("registered: %s", reg.body)
	}
	s.do("POST", "/v1/workflows", noop("echo")).refused(t, 409, "version_conflict")
	s.do("POST", "/v1/workflows", "{}").refused(t, 400, "validation_error")
	def := s.do("GET", "/v1/workflows/echo", nil).want(t, 200)
	s.do("GET", "/v1/workflows/echo", nil, "If-None-Match", def.header.Get("ETag")).want(t, 304)
	for _, id := range []string{"none", "no%20id", "x~2Fy"} {
		s.do("GET", "/v1/workflows/"+id, nil).refused(t, 404, "not_found")
	}
	made := s.do("POST", "/v1/runs", map[string]any{
		"workflowId": "echo", "inputs": map[string]any{"n": 7, "pin": "0000"}, "tags": []string{"a", "b"}, "metadata": map[string]any{"k": map[string]any{"v": 1}},
		"tenantId": fermata.DefaultTenant, "scopeId": "sc", "callbackUrl": "",
		"configurable": map[string]any{
			"recursionLimit": 5, "model": "m", "temperature": 0.5, "maxTokens": 9, "reasoningVerbosity": "off", "own.key": []any{1}, "distillation.tokenBudget": 3,
		},
	}).want(t, 201)
	id := made.str("runId")
	if strings.Contains(id, "/") || len(id) < 16 || made.str("eventsUrl") != "/v1/runs/"+id+"/events" || made.str("statusUrl") != "/v1/runs/"+id {
		t.Fatalf("created: %s", made.body)
	}
	snap := s.await1(id, "completed")
	conf := snap["configurable"].(map[string]any)
	want := map[string]any{"recursionLimit": 5.0, "model": "m", "temperature": 0.5, "maxTokens": 9.0, "reasoningVerbosity": "off", "distillation.tokenBudget": 3.0}
	for k, v := range want {
		if conf[k] != v {
			t.Errorf("configurable.%s is %v, want %v", k, conf[k], v)
		}
	}
	if fmt.Sprint(conf["own.key"]) != "[1]" || len(conf) != len(want)+1 {
		t.Errorf("configurable: %v", conf)
	}
	in := snap["inputs"].(map[string]any)
	if in["n"] != 7.0 || in["pin"] != "[REDACTED]" || snap["variables"].(map[string]any)["n"] != 7.0 {
		t.Errorf("inputs %v, variables %v", in, snap["variables"])
	}
	owner := snap["owner"].(map[string]any)
	if snap["runId"] != id || snap["eventLogSchemaVersion"] != 2.0 || snap["engineVersion"] != "1" || owner["tenant"] != fermata.DefaultTenant || owner["principal"] == "" {
		t.Errorf("snapshot: %v", snap)
	}
	if fmt.Sprint(snap["tags"], snap["metadata"]) != "[a b] map[k:map[v:1]]" {
		t.Errorf("tags %v, metadata %v", snap["tags"], snap["metadata"])
	}
	etag := s.do("GET", "/v1/runs/"+id, nil).header.Get("ETag")
	s.do("GET", "/v1/runs/"+id, nil, "If-None-Match", etag).want(t, 304)
	// The same run, as the other major shows it, either way it is named there.
	for _, at := range []string{id, seg(fermata.DefaultTenant + "/" + id)} {
		v2 := s.do("GET", "/runs/"+at, nil).want(t, 200)
		if v2.str("runId") != fermata.DefaultTenant+"/"+id || v2.json["eventLogSchemaVersion"] != 3.0 || v2.json["inputs"] != nil || v2.header.Get("ETag") == etag {
			t.Errorf("under v2: %s", v2.body)
		}
	}
	// And one made there, here.
	there := s.run("echo")
	_, opaque, _ := cutID(there)
	s.await1(opaque, "completed")
	s.do("GET", "/v1/runs/"+seg(there), nil).want(t, 200)
	for _, odd := range []string{"x", "no-such-run", strings.Repeat("y", 128), "a%20b", "%E2%82%AC", strings.Repeat("z", 300), "other~2F" + opaque, "x:y"} {
		s.do("GET", "/v1/runs/"+odd, nil).refused(t, 404, "not_found")
	}
}

func TestV1CreateRefusals(t *testing.T) {
	t.Parallel()
	s := start(t, withV1)
	s.register(noop("one"))
	s.register(flow("schema", []any{step("a", "core.noop", nil)}, []any{}, map[string]any{"configurableSchema": map[string]any{
		"type": "object", "additionalProperties": false, "properties": map[string]any{"recursionLimit": map[string]any{"type": "integer", "maximum": 50}, "colour": map[string]any{"type": "string"}},
	}}))
	with := func(k string, v any) map[string]any { return map[string]any{"workflowId": "one", k: v} }
	conf := func(k string, v any) map[string]any { return with("configurable", map[string]any{k: v}) }
	for name, c := range map[string]struct {
		body   any
		header [2]string
		status int
		code   string
		field  string
	}{
		"no body":              {nil, [2]string{}, 400, "validation_error", "body"},
		"not JSON":             {"{", [2]string{}, 400, "validation_error", ""},
		"of another type":      {"x=1", [2]string{"Content-Type", "text/plain"}, 400, "validation_error", ""},
		"no workflow":          {map[string]any{}, [2]string{}, 400, "validation_error", "workflowId"},
		"an unknown one":       {map[string]any{"workflowId": "none"}, [2]string{}, 404, "not_found", ""},
		"an unknown key":       {with("variables", map[string]any{}), [2]string{}, 400, "validation_error", "variables"},
		"inputs":               {with("inputs", 1), [2]string{}, 400, "validation_error", "inputs"},
		"a limit":              {conf("recursionLimit", 0), [2]string{}, 400, "validation_error", "configurable.recursionLimit"},
		"a limit's type":       {conf("recursionLimit", "5"), [2]string{}, 400, "validation_error", "configurable.recursionLimit"},
		"temperature":          {conf("temperature", 3), [2]string{}, 400, "validation_error", "configurable.temperature"},
		"a provider":           {conf("ai.provider", "p"), [2]string{}, 400, "validation_error", "configurable.ai.provider"},
		"verbosity":            {conf("reasoningVerbosity", "loud"), [2]string{}, 400, "validation_error", "configurable.reasoningVerbosity"},
		"a budget":             {conf("budget", map[string]any{}), [2]string{}, 501, "capability_not_provided", "configurable.budget"},
		"mock provider":        {conf("mockProvider", map[string]any{"id": "stream-text"}), [2]string{}, 403, "mock_provider_forbidden", ""},
		"a credential":         {conf("ai.credentialRef", "c"), [2]string{}, 403, "credential_forbidden", "configurable.ai.credentialRef"},
		"the workflow's own":   {map[string]any{"workflowId": "schema", "configurable": map[string]any{"recursionLimit": 99}}, [2]string{}, 400, "validation_error", "configurable.recursionLimit"},
		"of an unknown key":    {map[string]any{"workflowId": "schema", "configurable": map[string]any{"size": 1}}, [2]string{}, 400, "validation_error", ""},
		"another tenant":       {with("tenantId", "other"), [2]string{}, 403, "run_forbidden", "tenantId"},
		"eval":                 {map[string]any{"mode": "eval", "evalSuiteRef": "s", "agentId": "a"}, [2]string{}, 501, "capability_not_provided", ""},
		"residency":            {with("residency", map[string]any{"region": "eu"}), [2]string{}, 422, "residency_unavailable", "residency"},
		"an engine version":    {with("tags", []any{}), [2]string{"X-Force-Engine-Version", "2"}, 403, "force_engine_version_forbidden", ""},
		"dedup":                {with("tags", []any{}), [2]string{"X-Dedup", "maybe"}, 400, "validation_error", "X-Dedup"},
		"a key too long":       {with("tags", []any{}), [2]string{"Idempotency-Key", strings.Repeat("k", 256)}, 400, "validation_error", ""},
		"metadata":             {with("metadata", []any{}), [2]string{}, 400, "validation_error", "metadata"},
		"too many tags":        {with("tags", make([]string, 101)), [2]string{}, 400, "validation_error", "tags"},
		"configurable is text": {with("configurable", "x"), [2]string{}, 400, "validation_error", "configurable"},
	} {
		header := []string{}
		if c.header[0] != "" {
			header = c.header[:]
		}
		a := s.do("POST", "/v1/runs", c.body, header...)
		code, details := errorOf(a)
		if a.status != c.status || code != c.code || c.field != "" && details["field"] != c.field {
			t.Errorf("%s: %d %s; want %d %s of %q", name, a.status, a.body, c.status, c.code, c.field)
		}
	}
	s.await1(s.run1("schema", map[string]any{"configurable": map[string]any{"recursionLimit": 5, "colour": "red"}}), "completed")
	if runs := s.do("GET", "/runs", nil).json["runs"].([]any); len(runs) != 1 {
		t.Errorf("%d runs", len(runs))
	}
	s.do("POST", "/v1/runs", with("tags", []any{}), "Authorization", "").refused(t, 401, "unauthenticated")
	a := s.do("POST", "/v1/runs", with("tags", []any{}), "Authorization", s.key("narrow-key-narrow-key-narrow-key-1", fermata.DefaultTenant, "runs:read")).refused(t, 403, "forbidden")
	if _, d := errorOf(a); d["scopeRequired"] != "runs:create" {
		t.Errorf("%s", a.body)
	}
	// What a host lacks that a workflow needs.
	a = s.do("POST", "/v1/workflows", flow("needy", []any{step("talk", "core.conversationGate", nil)}, []any{})).refused(t, 422, "capability_required")
	if _, d := errorOf(a); d["requiredCapability"] == "" || d["offendingTypeId"] != "core.conversationGate" || d["nodeId"] != "talk" {
		t.Errorf("%s", a.body)
	}
}

func TestV1Dedup(t *testing.T) {
	t.Parallel()
	s := start(t, withV1)
	s.register(gate("g"))
	body := map[string]any{"workflowId": "g", "scopeId": "doc-1"}
	first := s.do("POST", "/v1/runs", body, "X-Dedup", "enforce").want(t, 201).str("runId")
	a := s.do("POST", "/v1/runs", body, "X-Dedup", "enforce").refused(t, 409, "run_already_active")
	_, d := errorOf(a)
	if d["activeRunId"] != first || d["activeHost"] != "cloud" || d["retryAfter"] == nil || a.header.Get("Retry-After") != fmt.Sprint(d["retryAfter"]) {
		t.Errorf("%s, Retry-After %q", a.body, a.header.Get("Retry-After"))
	}
	s.do("POST", "/v1/runs", body).want(t, 201)
}

func TestV1Control(t *testing.T) {
	t.Parallel()
	s := start(t, withV1)
	s.register(gate("g"))
	s.register(noop("one"))
	id := s.run1("g")
	snap := s.await1(id, "waiting-approval")
	x := snap["interrupt"].(map[string]any)
	if snap["currentNodeId"] != "ok" || x["kind"] != "approval" || x["nodeId"] != "ok" || strings.Contains(x["interruptId"].(string), "/") || x["data"].(map[string]any)["title"] != "Go on?" {
		t.Errorf("interrupt: %v", x)
	}
	a := s.do("POST", "/v1/runs/"+id+":pause", map[string]any{"reason": "lunch", "drainPolicy": "immediate"}).want(t, 202)
	if a.str("runId") != id || a.str("status") != "paused" || a.str("pausedAt") == "" {
		t.Errorf("paused: %s", a.body)
	}
	_, d := errorOf(s.do("POST", "/v1/runs/"+id+":pause", nil).refused(t, 409, "run_state_conflict"))
	if d["runStatus"] != "paused" {
		t.Errorf("details %v", d)
	}
	s.do("POST", "/v1/runs/"+id+":pause", map[string]any{"drainPolicy": "later"}).refused(t, 400, "validation_error")
	a = s.do("POST", "/v1/runs/"+id+":resume", map[string]any{}).want(t, 202)
	if a.str("status") != "running" || a.str("resumedAt") == "" {
		t.Errorf("resumed: %s", a.body)
	}
	s.do("POST", "/v1/runs/"+id+":resume", nil).refused(t, 409, "run_state_conflict")
	// More than v1 names is no fault in a cancellation.
	a = s.do("POST", "/v1/runs/"+id+"/cancel", map[string]any{"reason": "enough", "by": "me"}).want(t, 200)
	if a.str("runId") != id || a.str("status") != "cancelled" && a.str("status") != "cancelling" {
		t.Errorf("cancelled: %s", a.body)
	}
	s.do("POST", "/v1/runs/"+id+"/cancel", map[string]any{"reason": 1}).refused(t, 400, "validation_error")
	if snap := s.await1(id, "cancelled"); snap["interrupt"] != nil {
		t.Errorf("an ended run waits: %v", snap["interrupt"])
	}
	// A run that is over is cancelled again without a conflict, and stays as it is.
	done := s.run1("one")
	s.await1(done, "completed")
	for id, want := range map[string]string{id: "cancelled", done: "completed"} {
		if a := s.do("POST", "/v1/runs/"+id+"/cancel", nil).want(t, 200); a.str("status") != want {
			t.Errorf("%s", a.body)
		}
	}
	s.do("POST", "/v1/runs/"+done+":pause", nil).refused(t, 409, "run_terminal")
	for _, op := range []string{"/cancel", ":pause", ":resume"} {
		s.do("POST", "/v1/runs/none"+op, nil).refused(t, 404, "not_found")
	}
	s.do("POST", "/runs/"+done+"/cancel", nil).refused(t, 409, "run_terminal") // under v2 it is one
}

func TestV1BulkCancel(t *testing.T) {
	t.Parallel()
	s := start(t, withV1)
	s.register(gate("g"))
	s.register(noop("one"))
	open, gone, done := s.run1("g"), s.run1("g"), s.run1("one")
	s.await1(done, "completed")
	s.do("POST", "/v1/runs/"+gone+"/cancel", nil).want(t, 200)
	s.await1(gone, "cancelled")
	a := s.do("POST", "/v1/runs:bulk-cancel", map[string]any{"runIds": []string{"none", open, gone, "", done, open, "other/0123456789abcdef"}, "reason": "r"}).want(t, 200)
	var got []string
	for _, r := range a.json["results"].([]any) {
		m := r.(map[string]any)
		code := ""
		if e, ok := m["error"].(map[string]any); ok {
			code = e["error"].(string)
		}
		got = append(got, fmt.Sprint(m["runId"], " ", m["ok"], " ", code))
	}
	want := []string{"none false not_found", open + " true ", gone + " true ", " false validation_error", done + " false run_terminal", open + " true ", "other/0123456789abcdef false not_found"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q\n%s", got, want, a.body)
	}
	many := make([]string, 101)
	_, d := errorOf(s.do("POST", "/v1/runs:bulk-cancel", map[string]any{"runIds": many}).refused(t, 400, "validation_error"))
	if d["maxRunIds"] != 100.0 {
		t.Errorf("details %v", d)
	}
	s.do("POST", "/v1/runs:bulk-cancel", map[string]any{"runIds": []string{}}).refused(t, 400, "validation_error")
	s.do("POST", "/v1/runs:bulk-cancel", map[string]any{"runIds": []string{"none"}}, "Authorization",
		s.key("narrow-key-narrow-key-narrow-key-2", fermata.DefaultTenant, "runs:read")).refused(t, 403, "forbidden")
}

func TestV1ForkDiffAncestry(t *testing.T) {
	t.Parallel()
	s := start(t, withV1)
	s.register(flow("two", []any{step("a", "core.noop", nil), step("b", "core.noop", nil)}, []any{edge("a", "b")}))
	s.register(noop("child"))
	s.register(flow("parent", []any{step("p", "core.subWorkflow", map[string]any{"workflowId": "child"})}, []any{}))
	id := s.run1("two")
	s.await1(id, "completed")
	for name, c := range map[string]struct {
		body   map[string]any
		status int
	}{
		"negative":              {map[string]any{"mode": "replay", "fromSeq": -1}, 400},
		"an overlay on replay":  {map[string]any{"mode": "replay", "runOptionsOverlay": map[string]any{"tags": []string{"x"}}}, 400},
		"branch without a seq":  {map[string]any{"mode": "branch"}, 400},
		"no mode":               {map[string]any{"fromSeq": 0}, 400},
		"past the end":          {map[string]any{"mode": "replay", "fromSeq": 1000}, 422},
		"an overlay it has not": {map[string]any{"mode": "branch", "fromSeq": 1, "runOptionsOverlay": map[string]any{"configurable": map[string]any{"recursionLimit": 0}}}, 400},
	} {
		a := s.do("POST", "/v1/runs/"+id+":fork", c.body)
		if code, _ := errorOf(a); a.status != c.status || code != "validation_error" {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	s.do("POST", "/v1/runs/none:fork", map[string]any{"mode": "replay"}).refused(t, 404, "not_found")
	a := s.do("POST", "/v1/runs/"+id+":fork", map[string]any{"mode": "replay"}).want(t, 201)
	replay := a.str("runId")
	if a.str("sourceRunId") != id || a.json["fromSeq"] != 0.0 || a.str("mode") != "replay" || a.str("eventsUrl") != "/v1/runs/"+replay+"/events" {
		t.Errorf("%s", a.body)
	}
	s.await1(replay, "completed")
	branch := s.do("POST", "/v1/runs/"+id+":fork", map[string]any{"mode": "branch", "fromSeq": 1,
		"runOptionsOverlay": map[string]any{"configurable": map[string]any{"recursionLimit": 7}}}).want(t, 201).str("runId")
	if snap := s.await1(branch, "completed"); snap["configurable"].(map[string]any)["recursionLimit"] != 7.0 {
		t.Errorf("configurable %v", snap["configurable"])
	}
	s.register(gate("g"))
	waits := s.run1("g")
	s.await1(waits, "waiting-approval")
	d := s.do("GET", "/v1/runs/"+id+":diff?against="+waits, nil).want(t, 200)
	if d.str("a") != id || d.str("b") != waits || len(d.json["eventDiffs"].([]any)) == 0 {
		t.Errorf("%s", d.body)
	}
	same := s.do("GET", "/v1/runs/"+id+":diff?against="+id, nil).want(t, 200)
	if same.json["divergedAtSeq"] != nil || len(same.json["eventDiffs"].([]any)) != 0 {
		t.Errorf("%s", same.body)
	}
	s.do("GET", "/v1/runs/"+id+":diff", nil).refused(t, 400, "validation_error")
	s.do("GET", "/v1/runs/"+id+":diff?against=none", nil).refused(t, 404, "not_found")
	s.do("GET", "/v1/runs/none:diff?against="+id, nil).refused(t, 404, "not_found")

	parent := s.run1("parent")
	snap := s.await1(parent, "completed")
	kids := snap["childRuns"].([]any)
	kid := kids[0].(map[string]any)
	child := kid["runId"].(string)
	if len(kids) != 1 || strings.Contains(child, "/") || kid["status"] != "completed" || kid["workflowId"] != "child" {
		t.Fatalf("childRuns %v", kids)
	}
	if c := s.snapshot1(child); c["parentRunId"] != parent || c["parentNodeId"] != "p" {
		t.Errorf("parent %v of node %v", c["parentRunId"], c["parentNodeId"])
	}
	anc := s.do("GET", "/v1/runs/"+child+"/ancestry", nil).want(t, 200)
	if p := anc.json["parent"].(map[string]any); anc.str("runId") != child || p["runId"] != parent || p["cause"] != "core.subWorkflow" {
		t.Errorf("%s", anc.body)
	}
	if top := s.do("GET", "/v1/runs/"+parent+"/ancestry", nil).want(t, 200); top.json["parent"] != nil {
		t.Errorf("%s", top.body)
	}
}

// A keyed request is one operation of its wire on its run (docs/adr/0024).
// A key names one request, on whichever of the two paths of v1 it comes; under v2 it is
// another request's.
func TestV1IdempotencyOnBothPaths(t *testing.T) {
	t.Parallel()
	s := start(t, withV1)
	s.register(noop("one"))
	body, key := map[string]any{"workflowId": "one"}, []string{"Idempotency-Key", "0123456789012345678901"}
	first := s.do("POST", "/v1/runs", body, key...).want(t, 201)
	again := s.do("POST", "/runs", body, append(key, "OpenWOP-Version", "1.0")...).want(t, 201)
	if again.str("runId") != first.str("runId") || again.header.Get("OpenWOP-Idempotent-Replay") != "true" || again.header.Get("OpenWOP-Version") != "1.0" {
		t.Errorf("by way of the bare path: %v %s", again.header, again.body)
	}
	newer := s.do("POST", "/runs", body, key...).want(t, 201)
	if bareID(newer.str("runId")) == first.str("runId") || newer.header.Get("OpenWOP-Idempotent-Replay") == "true" {
		t.Errorf("under v2: %s", newer.body)
	}
	s.do("POST", "/runs", map[string]any{"workflowId": "two"}, append(key, "OpenWOP-Version", "1.0")...).want(t, 409)
}

func TestV1Idempotency(t *testing.T) {
	t.Parallel()
	s := start(t, withV1)
	s.register(gate("g"))
	key := []string{"Idempotency-Key", "k 1"}
	body := map[string]any{"workflowId": "g"}
	first := s.do("POST", "/v1/runs", body, key...).want(t, 201)
	again := s.do("POST", "/v1/runs", body, key...).want(t, 201)
	if string(first.body) != string(again.body) || again.header.Get("openwop-Idempotent-Replay") != "true" || first.header.Get("openwop-Idempotent-Replay") != "" {
		t.Errorf("%s and %s", first.body, again.body)
	}
	s.do("POST", "/v1/runs", map[string]any{"workflowId": "g", "tags": []string{"x"}}, key...).refused(t, 409, "idempotency_key_mismatch")
	s.do("POST", "/v1/runs", map[string]any{}, "Idempotency-Key", "k2").refused(t, 400, "validation_error")
	s.do("POST", "/v1/runs", body, "Idempotency-Key", "k2").want(t, 201) // what was not valid is not kept
	// The same key on the other wire is another operation.
	long := []string{"Idempotency-Key", strings.Repeat("k", 22)}
	a := s.do("POST", "/v1/runs", body, long...).want(t, 201).str("runId")
	b := s.do("POST", "/runs", body, long...).want(t, 201).str("runId")
	if _, opaque, _ := cutID(b); opaque == a {
		t.Error("one answer for two operations")
	}
	// Of two runs, each is cancelled by its own request, whatever the key.
	other := s.run1("g")
	for _, id := range []string{a, other, a, other} {
		if c := s.do("POST", "/v1/runs/"+id+"/cancel", nil, long...).want(t, 200); c.str("runId") != id {
			t.Errorf("cancelled %s in place of %s", c.str("runId"), id)
		}
	}
	p := s.run1("g")
	s.await1(p, "waiting-approval")
	for _, want := range []string{"", "true"} {
		if c := s.do("POST", "/v1/runs/"+p+":pause", nil, "Idempotency-Key", "pause-once").want(t, 202); c.header.Get("openwop-Idempotent-Replay") != want {
			t.Errorf("replayed: %q", c.header.Get("openwop-Idempotent-Replay"))
		}
	}
}
