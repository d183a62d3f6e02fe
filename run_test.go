package fermata_test

import (
	"slices"
	"testing"
)

func TestOneNodeRunCompletes(t *testing.T) {
	s := start(t)
	s.register(flow("one", []any{step("a", "core.noop", nil)}, []any{}))
	id := s.run("one")
	snap := s.await(id, "completed")
	if snap["workflowId"] != "one" || snap["eventLogSchemaVersion"] != 3.0 {
		t.Fatalf("snapshot: %v", snap)
	}
	want := []string{"run.started", "node.started", "node.completed", "run.completed"}
	if got := s.types(id); !slices.Equal(got, want) {
		t.Fatalf("events %v, want %v", got, want)
	}
}

func TestApprovalSurvivesRestart(t *testing.T) {
	s := start(t)
	s.register(flow("gate", []any{
		step("before", "core.noop", nil),
		step("ok", "core.approvalGate", map[string]any{"title": "Ship it?"}),
		step("after", "core.noop", nil),
	}, []any{edge("before", "ok"), edge("ok", "after")}))
	id := s.run("gate")
	snap := s.await(id, "waiting-approval")
	if snap["currentNodeId"] != "ok" {
		t.Fatalf("currentNodeId %v", snap["currentNodeId"])
	}
	s.restart()
	if n := len(s.do("GET", "/host/fermata/interrupts", nil).want(t, 200).json["interrupts"].([]any)); n != 1 {
		t.Fatalf("%d open interrupts after the restart", n)
	}
	s.answer(id, "ok", map[string]any{"action": "accept"}).want(t, 200)
	s.await(id, "completed")
	s.answer(id, "ok", map[string]any{"action": "accept"}).refused(t, 409, "interrupt_already_resolved")
}

func TestDelay(t *testing.T) {
	s := start(t)
	s.register(flow("wait", []any{step("d", "core.delay", map[string]any{"delayMs": 50})}, []any{}))
	id := s.run("wait")
	s.await(id, "completed")
}

func TestSubWorkflow(t *testing.T) {
	s := start(t)
	s.register(flow("child", []any{step("c", "core.flow.set", map[string]any{"variables": map[string]any{"answer": "variables.q + 1"}})},
		[]any{}, map[string]any{"variables": []any{map[string]any{"name": "q", "type": "number"}}}))
	s.register(flow("parent", []any{step("p", "core.subWorkflow", map[string]any{
		"workflowId": "child", "inputMapping": map[string]any{"q": "n"}, "outputMapping": map[string]any{"got": "answer"},
	})}, []any{}, map[string]any{"variables": []any{map[string]any{"name": "n", "type": "number", "defaultValue": 41}}}))
	id := s.run("parent")
	snap := s.await(id, "completed", "failed")
	if v := snap["variables"].(map[string]any)["got"]; v != 42.0 {
		t.Fatalf("got %v\n%v\n%v", v, snap, s.types(id))
	}
}
