package engine

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/node"
)

// nth fails the appends that want says, n times.
func nth(n int64, f fault, want func(*store.Append) bool) func(*store.Append) fault {
	var left atomic.Int64
	left.Store(n)
	return func(a *store.Append) fault {
		if want(a) && left.Add(-1) >= 0 {
			return f
		}
		return fault{}
	}
}

func holds(typ event.Type) func(*store.Append) bool {
	return func(a *store.Append) bool {
		for i := range a.Events {
			if a.Events[i].Type == typ {
				return true
			}
		}
		return false
	}
}

// TestOutcomeOutlivesAFailingStore is about what must not happen twice: a call
// whose outcome could not be written at first is not made again.
func TestOutcomeOutlivesAFailingStore(t *testing.T) {
	for name, f := range map[string]fault{
		"nothing was written":          {before: errDisk},
		"it was written all the same":  {after: errDisk},
		"the context ended":            {before: context.DeadlineExceeded},
		"the context ended afterwards": {after: context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProbe(t, "test.work")
			l := newLab(t, p.typ())
			l.engine()
			id := l.create(l.register("two", []any{step("a", p.id, nil), step("b", p.id, nil)}, []any{edge("a", "b")}))
			await(t, "the call", p.entered)
			l.db.failing(nth(3, f, holds(event.NodeCompleted)))
			p.free()
			l.until(id, run.Completed)
			l.sound(id)
			if p.count("a") != 1 {
				t.Errorf("a was called %d times", p.count("a"))
			}
			if n := countOf(l.kinds(id), event.NodeCompleted); n != 2 {
				t.Errorf("%d outcomes recorded", n)
			}
			if p.atOnce() > 1 {
				t.Errorf("%d calls open at the same time", p.atOnce())
			}
		})
	}
}

func TestCommandOnAFailingStoreIsAnswered(t *testing.T) {
	l := newLab(t)
	l.engine()
	w := l.register("gate", []any{step("ok", "core.approvalGate", map[string]any{"title": "?"})}, nil)

	id := l.create(w)
	l.db.failing(nth(1, fault{before: errDisk}, holds(event.InterruptResolved)))
	refused(t, l.do(id, accept("ok")).Err, problem.InternalError)
	if r := l.row(id); r.Status != run.WaitingApproval {
		t.Errorf("a refused answer left the run %s", r.Status)
	}
	l.must(id, accept("ok"))
	l.until(id, run.Completed)
	l.sound(id)

	id = l.create(w)
	l.db.failing(nth(1, fault{after: errDisk}, holds(event.InterruptResolved)))
	refused(t, l.do(id, accept("ok")).Err, problem.InternalError)
	l.until(id, run.Completed)
	refused(t, l.do(id, accept("ok")).Err, problem.InterruptAlreadyResolved)
	if n := countOf(l.kinds(id), event.InterruptResolved); n != 1 {
		t.Errorf("resolved %d times", n)
	}
	l.sound(id)
}

func TestStepOfUnknownOutcomeGoesOn(t *testing.T) {
	p := newProbe(t, "test.work")
	p.free()
	l := newLab(t, p.typ())
	l.engine()
	l.register("child", []any{step("c", p.id, nil)}, nil)
	w := l.register("gate", []any{step("ok", "core.approvalGate", map[string]any{"title": "?"}), step("b", p.id, nil),
		step("s", "core.subWorkflow", map[string]any{"workflowId": "child"})}, []any{edge("ok", "b"), edge("ok", "s")})
	id := l.create(w)
	// The answer is written with the call and the child it leads to; whoever
	// gave it is told of a failure. Nobody but the engine knows better.
	l.db.failing(nth(1, fault{after: errDisk}, holds(event.InterruptResolved)))
	refused(t, l.do(id, accept("ok")).Err, problem.InternalError)
	l.until(id, run.Completed)
	l.sound(id)
	if p.count("b") != 1 || p.count("c") != 1 {
		t.Errorf("b was called %d times and the child's node %d times", p.count("b"), p.count("c"))
	}
}

// TestOutcomeAtHandIsNotBroughtAboutAgain has a call come to its end while a
// step of its run is of unknown outcome, so that the run must be recovered with
// that call's outcome in the mail.
func TestOutcomeAtHandIsNotBroughtAboutAgain(t *testing.T) {
	p := newProbe(t, "test.work")
	l := newLab(t, p.typ())
	l.engine()
	w := l.register("two", []any{step("a", p.id, nil), step("c", p.id, nil),
		step("ok", "core.approvalGate", map[string]any{"title": "?"}), step("b", p.id, nil)}, []any{edge("a", "c"), edge("ok", "b")})
	id := l.create(w)
	await(t, "the call", p.entered)
	resolved := holds(event.InterruptResolved)
	l.db.failing(nth(1, fault{after: errDisk}, func(a *store.Append) bool {
		if resolved(a) {
			l.e.actors.deliver(l.e, id, message{cmd: run.NodeResult{NodeID: "a", Visit: 1}, done: &callKey{"a", 1, 0, 0}})
		}
		return resolved(a)
	}))
	refused(t, l.do(id, accept("ok")).Err, problem.InternalError)
	await(t, "a call behind", p.entered)
	await(t, "the other call behind", p.entered)
	p.free()
	l.until(id, run.Completed)
	l.sound(id)
	for _, n := range []string{"a", "b", "c"} {
		if p.count(n) != 1 {
			t.Errorf("%s was called %d times", n, p.count(n))
		}
	}
}

func TestRunOfUnknownCreationIsNotLost(t *testing.T) {
	p := newProbe(t, "test.work")
	p.free()
	l := newLab(t, p.typ())
	l.engine()
	w := l.register("one", []any{step("a", p.id, nil)}, nil)
	l.db.failing(nth(1, fault{after: errDisk}, func(a *store.Append) bool { return a.Create }))
	id := l.e.NewID("acme")
	_, err := l.e.Create(t.Context(), id, w, start())
	refused(t, err, problem.InternalError)
	l.until(id, run.Completed)
	l.sound(id)

	l.db.failing(nth(1, fault{before: errDisk}, func(a *store.Append) bool { return a.Create }))
	id = l.e.NewID("acme")
	_, err = l.e.Create(t.Context(), id, w, start())
	refused(t, err, problem.InternalError)
	if _, err := l.db.Runs().Get(t.Context(), id); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a run that was not written is there: %v", err)
	}
	eventually(t, "nothing is left of it", func() bool { return l.e.actors.size() == 0 })
}

func TestTimerOutlivesAFailingStore(t *testing.T) {
	l := newLab(t)
	m := byHand(l)
	l.engine()
	id := l.create(l.register("later", []any{step("d", "core.delay", map[string]any{"delayMs": 1000})}, nil))
	l.db.failing(nth(3, fault{before: errDisk}, func(*store.Append) bool { return true }))
	l.pass(m, id, 0, run.Completed)
	l.sound(id)
}

// TestChildrenCanBeReadLate is about a parent that is woken while the store
// does not answer.
func TestChildrenCanBeReadLate(t *testing.T) {
	late := node.Type{ID: "test.parent", Run: func(_ context.Context, in *node.Input) (node.Result, error) {
		if in.Wake == nil {
			return node.Await(nil, node.Child{WorkflowID: "child"}), nil
		}
		return node.DoneRaw(map[string]json.RawMessage{"child": in.Wake.Children[0].Outputs}), nil
	}}
	for _, parent := range []string{"test.parent", "core.subWorkflow"} {
		t.Run(parent, func(t *testing.T) {
			p := newProbe(t, "test.work")
			l := newLab(t, late, p.typ())
			l.engine()
			l.register("child", []any{step("c", p.id, nil)}, nil)
			config := map[string]any{"workflowId": "child"}
			if parent == "test.parent" {
				config = nil
			}
			id := l.create(l.register("parent", []any{step("s", parent, config)}, nil))
			await(t, "the child's call", p.entered)
			var left atomic.Int64
			left.Store(3)
			l.db.failingLoads(func(which ids.Run) error {
				if which != id && left.Add(-1) >= 0 {
					return errDisk
				}
				return nil
			})
			p.free()
			l.until(id, run.Completed)
			l.sound(id)
		})
	}
}

func TestEngineStopsWhileTheStoreFails(t *testing.T) {
	p := newProbe(t, "test.work")
	l := newLab(t, p.typ())
	l.engine()
	id := l.create(l.register("one", []any{step("a", p.id, nil)}, nil))
	await(t, "the call", p.entered)
	tried := make(chan struct{}, 1<<10)
	l.db.failing(func(*store.Append) fault {
		select {
		case tried <- struct{}{}:
		default:
		}
		return fault{before: errDisk}
	})
	p.free()
	await(t, "a try to write the outcome", tried)
	l.halt(l.e)
	l.db.failing(nil)
	l.engine()
	l.until(id, run.Completed)
	l.sound(id)
}

func TestOutcomeDuringADrainOutlivesAFailure(t *testing.T) {
	p := newProbe(t, "test.work")
	l := newLab(t, p.typ())
	e := l.engine()
	id := l.create(l.register("one", []any{step("a", p.id, nil)}, nil))
	await(t, "the call", p.entered)
	l.db.failing(nth(2, fault{before: errDisk}, holds(event.NodeCompleted)))
	stopped := make(chan error, 1)
	go func() { stopped <- e.Stop(context.Background()) }()
	await(t, "the drain to begin", e.stop)
	p.free()
	if err := await(t, "the engine to stop", stopped); err != nil {
		t.Fatal(err)
	}
	if r := l.row(id); r.Status != run.Completed {
		t.Errorf("the run is %s: %v", r.Status, l.kinds(id))
	}
	l.sound(id)
}
