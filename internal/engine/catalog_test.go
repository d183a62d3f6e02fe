package engine

import (
	"testing"

	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
)

// TestChildOfAWorkflowThatCannotBeUsed starts a child whose node type the host
// does not have any more.
func TestChildOfAWorkflowThatCannotBeUsed(t *testing.T) {
	p := newProbe(t, "test.gone")
	l := newLab(t, p.typ())
	l.engine()
	l.register("child", []any{step("c", p.id, nil)}, nil)
	w := l.register("parent", []any{step("s", "core.subWorkflow", map[string]any{"workflowId": "child"})}, nil)
	delete(l.types, p.id)
	id := l.create(w)
	l.until(id, run.Failed)
	if s := l.sound(id); s.Error.Code != string(problem.NodeConfigInvalid) {
		t.Errorf("failed with %+v", s.Error)
	}
}

// TestRunOfAnUnknownTypeHarmsNobodyElse restarts a host without a node type
// that a run needs.
func TestRunOfAnUnknownTypeHarmsNobodyElse(t *testing.T) {
	p := newProbe(t, "test.gone")
	l := newLab(t, p.typ())
	l.engine()
	gate := map[string]any{"title": "?"}
	parked := l.create(l.register("parked", []any{step("ok", "core.approvalGate", gate), step("b", p.id, nil)}, []any{edge("ok", "b")}))
	busy := l.create(l.register("busy", []any{step("a", p.id, nil)}, nil))
	other := l.create(l.register("other", []any{step("ok", "core.approvalGate", gate)}, nil))
	await(t, "the call", p.entered)
	gone := l.types[p.id]
	l.halt(l.e)
	delete(l.types, p.id)
	l.restart()
	refused(t, l.do(parked, accept("ok")).Err, problem.NodeConfigInvalid)
	refused(t, l.do(busy, run.Tick{}).Err, problem.NodeConfigInvalid)
	l.must(other, accept("ok"))
	l.until(other, run.Completed)

	l.halt(l.e)
	l.types[p.id] = gone
	l.restart()
	p.free()
	l.must(parked, accept("ok"))
	l.until(parked, run.Completed)
	l.until(busy, run.Completed)
	l.sound(parked)
	l.sound(busy)
}
