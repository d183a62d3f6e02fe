package fermata_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// create posts a body for the workflow gate with one more member, as raw JSON.
func (s *server) create(member, value string) answer {
	s.t.Helper()
	return s.do("POST", "/runs", `{"workflowId":"gate","`+member+`":`+value+`}`)
}

func TestWireTagsAndMetadata(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("gate"))
	list := func(n int, tag string) string {
		b, _ := json.Marshal(strings.Split(strings.TrimSuffix(strings.Repeat(tag+"\n", n), "\n"), "\n"))
		return string(b)
	}
	object := func(n int) string { return `{"m":"` + strings.Repeat("x", n-8) + `"}` }
	for name, c := range map[string]struct {
		member, value string
		field         string // refused, naming this
	}{
		"no tags":             {"tags", `[]`, ""},
		"as many as there be": {"tags", list(100, "t"), ""},
		"one too many":        {"tags", list(101, "t"), "tags"},
		"long in characters":  {"tags", list(1, strings.Repeat("\U0001F3B5", 256)), ""},
		"too long":            {"tags", list(2, strings.Repeat("x", 257)), "tags[0]"},
		"any format":          {"tags", `[""," ","a:b/c","\u0000","<b>","` + "\u2028" + `"]`, ""},
		"a tag twice":         {"tags", `["t","t"]`, ""},
		"a number as tag":     {"tags", `["t",1]`, "tags[1]"},
		"null as tag":         {"tags", `["t","u",null]`, "tags[2]"},
		"metadata":            {"metadata", `{"a":{"b":[1,2,{"c":null}]}}`, ""},
		"empty metadata":      {"metadata", `{}`, ""},
		"much metadata":       {"metadata", object(64 << 10), ""},
		"too much metadata":   {"metadata", object(64<<10 + 1), "metadata"},
		"scope":               {"scopeId", `"` + strings.Repeat("\u00df", 256) + `"`, ""},
		"too long a scope":    {"scopeId", `"` + strings.Repeat("s", 257) + `"`, "scopeId"},
		"empty tenant":        {"tenantId", `""`, "tenantId"},
		"empty mode":          {"mode", `""`, "mode"},
		"another mode":        {"mode", `"dry"`, "mode"},
		"eval without suite":  {"mode", `"eval"`, "evalSuiteRef"},
		"suite without eval":  {"evalSuiteRef", `"s"`, "evalSuiteRef"},
		"agent without eval":  {"agentId", `"a"`, "agentId"},
		"callback":            {"callbackUrl", `"https://169.254.169.254/"`, "callbackUrl"},
		"own tenant":          {"tenantId", `"default"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := s.as(t).create(c.member, c.value)
			if c.field != "" {
				a.refused(t, 400, "validation_error")
				if got := a.json["details"].(map[string]any)["field"]; got != c.field {
					t.Errorf("details name %v, want %s", got, c.field)
				}
				return
			}
			var snap map[string]json.RawMessage
			if err := json.Unmarshal(s.as(t).do("GET", "/runs/"+seg(a.want(t, 201).str("runId")), nil).body, &snap); err != nil {
				t.Fatal(err)
			}
			if got := snap[c.member]; (c.member == "tags" || c.member == "metadata") && !equalJSON(t, got, []byte(c.value)) {
				t.Errorf("%s became %.200s", c.member, got)
			}
		})
	}
	s.create("tenantId", `"other"`).refused(t, 403, "id_tenant_mismatch")
	s.create("residency", `{"region":"eu"}`).refused(t, 422, "residency_unavailable")
	s.do("POST", "/runs", `{"workflowId":"gate","mode":"eval","evalSuiteRef":"s","agentId":"a"}`).refused(t, 422, "capability_not_provided")
	s.do("POST", "/runs", `{"workflowId":"a b"}`).refused(t, 400, "validation_error")
}

func equalJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal(a, &x); err != nil {
		t.Fatalf("%v: %.200s", err, a)
	}
	if err := json.Unmarshal(b, &y); err != nil {
		t.Fatalf("%v: %.200s", err, b)
	}
	p, _ := json.Marshal(x)
	q, _ := json.Marshal(y)
	return bytes.Equal(p, q)
}

// configurable is closed, nested and versioned, and what the host cannot honour
// is refused, not ignored.
func TestWireConfigurable(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("gate"))
	for value, want := range map[string]struct {
		code, field string
		status      int
	}{
		`{"version":1}`: {},
		`{"version":1,"run":{"recursionLimit":10,"runTimeoutMs":60000,"maxLoopIterations":5,"escalationThreshold":0.75}}`:                           {},
		`{"version":1,"ai":{"model":"m","temperature":2,"maxTokens":1,"promptOverrides":{"a":"b"},"reasoningVerbosity":"summary","maxRefusals":0}}`: {},
		`{"version":1,"distillation":{"tokenBudget":1},"extensions":{"an-org":{"any":[null]}}}`:                                                     {},
		`{}`:                                               {"validation_error", "configurable.version", 400},
		`{"version":2}`:                                    {"validation_error", "configurable.version", 400},
		`{"version":"1"}`:                                  {"validation_error", "configurable.version", 400},
		`{"version":1,"surprise":1}`:                       {"validation_error", "configurable.surprise", 400},
		`{"version":1,"ai.model":"m"}`:                     {"validation_error", "configurable.ai.model", 400},
		`{"version":1,"Run":{}}`:                           {"validation_error", "configurable.Run", 400},
		`{"version":1,"run":null}`:                         {"validation_error", "configurable.run", 400},
		`{"version":1,"run":[]}`:                           {"validation_error", "configurable.run", 400},
		`{"version":1,"run":{"surprise":1}}`:               {"validation_error", "configurable.run.surprise", 400},
		`{"version":1,"run":{"recursionLimit":0}}`:         {"validation_error", "configurable.run.recursionLimit", 400},
		`{"version":1,"run":{"recursionLimit":null}}`:      {"validation_error", "configurable.run.recursionLimit", 400},
		`{"version":1,"run":{"recursionLimit":1.5}}`:       {"validation_error", "configurable.run.recursionLimit", 400},
		`{"version":1,"run":{"runTimeoutMs":-1}}`:          {"validation_error", "configurable.run.runTimeoutMs", 400},
		`{"version":1,"run":{"runTimeoutMs":1e99}}`:        {"validation_error", "configurable.run.runTimeoutMs", 400},
		`{"version":1,"run":{"maxLoopIterations":0}}`:      {"validation_error", "configurable.run.maxLoopIterations", 400},
		`{"version":1,"run":{"escalationThreshold":-0.1}}`: {"validation_error", "configurable.run.escalationThreshold", 400},
		`{"version":1,"ai":{"temperature":2.1}}`:           {"validation_error", "configurable.ai.temperature", 400},
		`{"version":1,"ai":{"temperature":1e400}}`:         {"validation_error", "configurable.ai.temperature", 400},
		`{"version":1,"ai":{"maxTokens":0}}`:               {"validation_error", "configurable.ai.maxTokens", 400},
		`{"version":1,"ai":{"promptOverrides":{"a":1}}}`:   {"validation_error", "configurable.ai.promptOverrides.a", 400},
		`{"version":1,"ai":{"reasoningVerbosity":"loud"}}`: {"validation_error", "configurable.ai.reasoningVerbosity", 400},
		`{"version":1,"ai":{"provider":"p"}}`:              {"validation_error", "configurable.ai.provider", 400},
		`{"version":1,"ai":{"credentialRef":"c"}}`:         {"credential_forbidden", "configurable.ai.credentialRef", 403},
		`{"version":1,"ai":{"mockProvider":{}}}`:           {"mock_provider_forbidden", "configurable.ai.mockProvider", 403},
		`{"version":1,"distillation":{"tokenBudget":0}}`:   {"validation_error", "configurable.distillation.tokenBudget", 400},
		`{"version":1,"budget":{}}`:                        {"capability_not_provided", "configurable.budget", 422},
		`{"version":1,"extensions":{"Org":{}}}`:            {"validation_error", "configurable.extensions.Org", 400},
		`{"version":1,"extensions":{"org":1}}`:             {"validation_error", "configurable.extensions.org", 400},
		`{"version":1,"extensions":{"org":null}}`:          {"validation_error", "configurable.extensions.org", 400},
		`{"version":1,"version":1}`:                        {"validation_error", "configurable.version", 400},
	} {
		a := s.create("configurable", value)
		if want.code == "" {
			id := a.want(t, 201).str("runId")
			var snap struct{ Configurable json.RawMessage }
			if err := json.Unmarshal(s.do("GET", "/runs/"+seg(id), nil).body, &snap); err != nil || string(snap.Configurable) != value {
				t.Errorf("%s became %s (%v)", value, snap.Configurable, err)
			}
			continue
		}
		a.refused(t, want.status, want.code)
		if got := a.json["details"].(map[string]any)["field"]; got != want.field {
			t.Errorf("%s: details name %v, want %s", value, got, want.field)
		}
	}
}

// A workflow may narrow what its runs take.
func TestWireConfigurableSchemaOfAWorkflow(t *testing.T) {
	t.Parallel()
	s := start(t)
	def := gate("gate")
	def["configurableSchema"] = map[string]any{"properties": map[string]any{
		"run": map[string]any{"properties": map[string]any{"recursionLimit": map[string]any{"maximum": 5}}},
	}}
	s.register(def)
	s.create("configurable", `{"version":1,"run":{"recursionLimit":5}}`).want(t, 201)
	a := s.create("configurable", `{"version":1,"run":{"recursionLimit":6}}`).refused(t, 400, "validation_error")
	if got := a.json["details"].(map[string]any)["field"]; got != "configurable.run.recursionLimit" {
		t.Errorf("details name %v", got)
	}
	if shown := s.do("GET", "/workflows/gate", nil).json["configurableSchema"]; shown == nil {
		t.Error("getWorkflow hides the schema")
	}
}
