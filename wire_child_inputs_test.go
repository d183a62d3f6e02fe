package fermata_test

import (
	"strings"
	"testing"
)

// A child run gets no inputs that a caller from outside could not give it.
func TestWireChildInputsAreChecked(t *testing.T) {
	t.Parallel()
	s := start(t)
	child := flow("needs", []any{step("n", "core.noop", nil)}, []any{})
	child["variables"] = []any{map[string]any{"name": "x", "type": "number", "required": true}}
	s.register(child)
	for name, c := range map[string]struct {
		x    any
		want string
	}{
		"fits":  {1, "completed"},
		"wrong": {"one", "failed"},
		"none":  {nil, "failed"},
	} {
		sub := step("call", "core.subWorkflow", map[string]any{"workflowId": "needs"})
		if c.x != nil {
			sub["inputs"] = map[string]any{"x": map[string]any{"type": "static", "value": c.x}}
		}
		s.register(flow("parent-"+name, []any{sub}, []any{}))
		id := s.run("parent-" + name)
		end := s.await(id, "completed", "failed")
		if end["status"] != c.want {
			t.Errorf("%s: %v", name, end["status"])
		}
		if c.want != "failed" {
			continue
		}
		e, _ := end["error"].(map[string]any)
		if e["code"] != "node_config_invalid" || !strings.Contains(jsonOf(t, e), "inputs.x") {
			t.Errorf("%s: %v", name, e)
		}
		if all := s.do("GET", "/runs?workflowId=needs", nil).want(t, 200); strings.Contains(string(all.body), `"failed"`) {
			t.Errorf("%s: a child came into being: %s", name, all.body)
		}
	}
}
