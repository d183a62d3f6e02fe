package engine

import (
	"context"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/ids"
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
	if n := l.e.Strays(); n != 4 {
		t.Errorf("%d calls are over and go on, want 4", n)
	}
	l.halt(l.e)
	p.free()
	eventually(t, "the blocked calls end", func() bool { return l.e.Strays() == 0 && l.e.slots.Held() == 0 })
}

// TestStraysAreBounded has more calls go on after their end than may. Those beyond
// keep the room of a worker until they return, and their runs are told all the same.
func TestStraysAreBounded(t *testing.T) {
	p := newProbe(t, "test.deaf")
	p.deaf = true
	l := newLab(t, p.typ())
	e := l.engine(func(c *Config) { c.Workers = 2 })
	e.strays.most = 3
	w := l.register("deaf", []any{step("a", p.id, nil)}, nil)
	var runs []ids.Run
	for i := range 8 {
		id := l.create(w)
		runs = append(runs, id)
		if i < 5 {
			await(t, "the call", p.entered)
		}
		l.do(id, run.Cancel{})
		l.until(id, run.Cancelled)
	}
	if n := p.atOnce(); n != 5 {
		t.Errorf("%d calls go on, want 3 strays and 2 workers'", n)
	}
	if n := e.Strays(); n != 3 {
		t.Errorf("%d strays, want 3", n)
	}
	await(t, "the engine to know that nobody waits for a call", e.calls.nothing())
	p.free()
	eventually(t, "the blocked calls end", func() bool { return e.Strays() == 0 && e.slots.Held() == 0 })
	for _, id := range runs {
		l.sound(id)
	}
	if n := p.total(); n != 5 {
		t.Errorf("%d calls were made, want 5: those that found no room were not wanted any more", n)
	}
}

// TestDrainDoesNotWaitForStrays stops an engine that has been given all the time it
// wants, while a call goes on that is over.
func TestDrainDoesNotWaitForStrays(t *testing.T) {
	p := newProbe(t, "test.deaf")
	p.deaf = true
	l := newLab(t, p.typ())
	e := l.engine()
	id := l.create(l.register("deaf", []any{step("a", p.id, nil)}, nil))
	await(t, "the call", p.entered)
	l.do(id, run.Cancel{})
	stopped := make(chan error, 1)
	go func() { stopped <- e.Stop(context.Background()) }()
	if err := await(t, "the engine to stop", stopped); err != nil {
		t.Error(err)
	}
	p.free()
	eventually(t, "the blocked call ends", func() bool { return e.Strays() == 0 })
	l.engine()
	l.until(id, run.Cancelled)
	l.sound(id)
}

// TestPureNodeThatBlocks has a pure node keep its run's turn: the node fails, its
// run goes on without it, and what it says later is ignored.
func TestPureNodeThatBlocks(t *testing.T) {
	let := make(chan struct{})
	late := make(chan error, 8)
	pure := node.Type{ID: "test.pure", Pure: true, Run: func(_ context.Context, in *node.Input) (node.Result, error) {
		<-let
		_, err := in.Services.Eval("variables.secret", nil)
		late <- err
		return node.Done(node.Outputs{"late": true}), in.SetVariable("late", true)
	}}
	l := newLab(t, pure)
	// Only this type can run into the limit: on a machine that is busy, any call may.
	e := l.engine(func(c *Config) { c.Quick = func(t *node.Type) bool { return t.ID != pure.ID } })
	e.quickLimit = 10 * time.Millisecond
	extra := map[string]any{"variables": []any{map[string]any{"name": "secret", "type": "string", "defaultValue": "s"}}}
	beside := edge("a", "b")
	beside["triggerRule"] = "all_complete"
	begun := l.create(l.register("first", []any{step("a", pure.ID, nil), step("b", "core.approvalGate", map[string]any{"title": "?"})}, []any{beside}, extra))
	l.until(begun, run.WaitingApproval) // its creation came back
	gated := l.create(l.register("later", []any{step("ok", "core.approvalGate", map[string]any{"title": "?"}), step("a", pure.ID, nil)},
		[]any{edge("ok", "a")}, extra))
	l.do(gated, accept("ok"))
	l.until(gated, run.Failed)
	if s := l.sound(gated); s.Error.Code != string(problem.RunTimeout) || s.Error.Details["scope"] != "node" || s.FailedNode != "a" {
		t.Errorf("failed with %+v", s.Error)
	}
	if n := e.Strays(); n != 2 {
		t.Errorf("%d strays, want 2", n)
	}
	close(let)
	eventually(t, "the calls end", func() bool { return e.Strays() == 0 })
	for range 2 {
		if err := await(t, "the late call", late); err == nil {
			t.Error("a call that is over still sees the run")
		}
	}
	l.do(begun, accept("b"))
	l.until(begun, run.Completed)
	if s := l.sound(begun); len(s.Variables) != 1 {
		t.Errorf("variables %v", s.Variables)
	}
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
	if err := await(t, "the engine to stop", stopped); err != nil {
		t.Error(err)
	}
	await(t, "the blocked turn to be given up", e.actors.busy.nothing())
	if o := await(t, "the answer", answered); o.Err == nil {
		t.Error("an answer counts though its step was given up")
	}
	eventually(t, "both calls are strays", func() bool { return e.Strays() == 2 })
	within.free()
	p.free()
	eventually(t, "the blocked calls end", func() bool { return e.Strays() == 0 })

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
