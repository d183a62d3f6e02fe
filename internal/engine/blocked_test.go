package engine

import (
	"context"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/node"
)

func TestNodeThatBlocksForEverTimesOut(t *testing.T) {
	p := newProbe(t, "test.deaf")
	p.deaf = true
	q := newProbe(t, "test.work")
	q.free()
	l := newLab(t, p.typ(), q.typ())
	m := byHand(l)
	l.engine(func(c *Config) { c.Workers = 2 })
	w := l.register("deaf", []any{step("a", p.id, nil, map[string]any{"settings": map[string]any{"timeoutMs": 1000, "maxRetries": 0}})}, nil)
	for range 4 { // more than there are workers
		id := l.create(w)
		await(t, "the call", p.entered)
		l.pass(m, id, time.Second, run.Failed)
		if s := l.sound(id); s.Error.Code != string(problem.RunTimeout) {
			t.Errorf("failed with %+v", s.Error)
		}
	}
	// Calls nobody waits for any more do not keep others from being made.
	id := l.create(l.register("work", []any{step("a", q.id, nil)}, nil))
	l.until(id, run.Completed)
	l.halt(l.e)
	p.free()
	await(t, "the blocked calls to end", l.e.calls.nothing())
}

func TestStopReturnsWhateverNodesDo(t *testing.T) {
	p := newProbe(t, "test.deaf")
	p.deaf = true
	within := newProbe(t, "test.pure")
	within.deaf = true
	pure := within.typ()
	pure.Pure = true
	l := newLab(t, p.typ(), pure)
	e := l.engine()
	e.grace = 10 * time.Millisecond
	beside := l.create(l.register("beside", []any{step("a", p.id, nil)}, nil))
	await(t, "the call beside the run", p.entered)
	gated := l.create(l.register("inside", []any{step("ok", "core.approvalGate", map[string]any{"title": "?"}), step("a", pure.ID, nil)},
		[]any{edge("ok", "a")}))
	answered := make(chan Outcome, 1)
	go func() { answered <- e.Do(context.Background(), gated, accept("ok")) }()
	await(t, "the call within the turn", within.entered)

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- e.Stop(ctx) }()
	if err := await(t, "the engine to stop", stopped); err == nil {
		t.Error("the engine did not say that something was still at work")
	}
	within.free()
	p.free()
	await(t, "the answer", answered)
	await(t, "the blocked calls to end", e.calls.nothing())
	await(t, "the blocked turn to end", e.actors.busy.nothing())

	l.engine()
	l.until(beside, run.Completed)
	l.do(gated, accept("ok")) // it may have counted
	l.until(gated, run.Completed)
	l.sound(beside)
	l.sound(gated)
}

func TestWorkersBoundCalls(t *testing.T) {
	p := newProbe(t, "test.work")
	l := newLab(t, p.typ())
	l.engine(func(c *Config) { c.Workers = 3 })
	w := l.register("one", []any{step("a", p.id, nil)}, nil)
	runs := l.many(w, 20)
	for range 20 {
		await(t, "a call", p.entered)
		p.pass(t)
	}
	for _, id := range runs {
		l.until(id, run.Completed)
	}
	if p.atOnce() > 3 {
		t.Errorf("%d calls at once, want at most 3", p.atOnce())
	}
}

// TestParallelCallsOfANewRun makes calls that end before the run's creation has
// been dealt with to its end.
func TestParallelCallsOfANewRun(t *testing.T) {
	quick := node.Type{ID: "test.quick", Run: func(context.Context, *node.Input) (node.Result, error) { return node.Done(nil), nil }}
	l := newLab(t, quick)
	l.engine()
	var nodes []any
	for i := range 12 {
		nodes = append(nodes, step("n"+string(rune('a'+i)), quick.ID, nil))
	}
	for _, id := range l.many(l.register("wide", nodes, nil), size(200, 5000)) {
		l.until(id, run.Completed)
		s := l.sound(id)
		if s.Executions != 12 {
			t.Fatalf("%d executions of 12 nodes", s.Executions)
		}
	}
	eventually(t, "no run is held in memory", func() bool { return l.e.actors.size() == 0 })
}
