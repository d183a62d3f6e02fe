package cli

import (
	"strings"
	"testing"
)

// undo is a workflow of one effect that fails and is undone by a node type.
func undo(by, policy string) string {
	return `{"id":"undo","name":"U","version":"1","nodes":[
{"id":"charge","typeId":"core.noop","name":"C","position":{"x":0,"y":0},"config":{},"inputs":{},"compensation":{"nodeTypeId":"` + by + `"}},
{"id":"last","typeId":"core.fail","name":"L","position":{"x":0,"y":0},"config":{},"inputs":{}}],
"edges":[{"id":"e","sourceNodeId":"charge","targetNodeId":"last"}],
"triggers":[],"variables":[],"metadata":{},"settings":{"compensation":` + policy + `}}`
}

func TestRunsCompensation(t *testing.T) {
	w := newWorld(t)
	w.server()
	w.must("workflows", "apply", w.file("undo.json", undo("core.fail", `{"triggers":["node-failure"],"exhaustedDisposition":"manual-intervention"}`)),
		w.file("echo.json", echo("1")))
	if code := w.run("runs", "start", "undo", "--watch"); code != 1 {
		t.Errorf("exit %d", code)
	}
	id, _, _ := strings.Cut(strings.TrimSpace(strings.Split(w.must("runs", "list"), "\n")[1]), " ")
	contains(t, w.must("runs", "compensation", id), id+"  manual-intervention", "ORDER  NODE    EFFECT", "charge  1        failed")
	contains(t, w.must("runs", "show", id), "undone     manual")
	contains(t, w.must("runs", "compensation", id, "--json"), `"status": "manual-intervention"`)
	if code := w.run("runs", "compensation", "skip", id); code != 1 {
		t.Errorf("exit %d", code)
	}
	contains(t, w.err.String(), "reason: ")
	contains(t, w.must("runs", "compensation", "retry", id), "charge  2        failed")
	contains(t, w.must("runs", "compensation", "substitute", id, "--type", "core.noop", "--order", "1"), "completed", "charge  3        succeeded")
	if code := w.run("runs", "compensation", "terminate", id, "--reason", "enough"); code != 1 {
		t.Errorf("exit %d", code)
	}
	contains(t, w.err.String(), "(run_state_conflict)")
	contains(t, w.must("runs", "events", id), "compensation.completed")
	w.must("runs", "start", "echo", "--input", "n=1", "--watch")
	other, _, _ := strings.Cut(strings.TrimSpace(strings.Split(w.must("runs", "list", "--workflow", "echo"), "\n")[1]), " ")
	contains(t, w.must("runs", "compensation", other), other+"  none")
	if code := w.run("runs", "compensation", "start", other); code != 1 {
		t.Errorf("exit %d", code)
	}
}

// A local run is undone before its host goes.
func TestRunIsUndoneBeforeItsHostGoes(t *testing.T) {
	w := newWorld(t)
	if code := w.run("run", w.file("undo.json", undo("core.noop", `{"triggers":["node-failure"]}`))); code != 1 {
		t.Errorf("exit %d", code)
	}
	contains(t, w.err.String(), "undone: completed")
	if code := w.run("run", w.file("undo.json", undo("core.fail", `{"triggers":["node-failure"],"retry":{"maxAttempts":2}}`))); code != 1 {
		t.Errorf("exit %d", code)
	}
	contains(t, w.err.String(), "undone: failed", "charge: failed internal_error")
	if code := w.run("run", w.file("undo.json", undo("core.noop", `{"triggers":["node-failure"],"approvalScope":"all"}`))); code != 1 {
		t.Errorf("exit %d", code)
	}
	contains(t, w.err.String(), "waits for an approval", "undone: pending")
}
