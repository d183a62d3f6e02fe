package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
)

func TestStaleOwnerCannotWriteAndStopsExecuting(t *testing.T) {
	p, q := newProbe(t, "test.work"), newProbe(t, "test.next")
	l := newLab(t, p.typ(), q.typ())
	// The first owner does not look into the store by itself: it only learns
	// from what it tries to write.
	stale := l.engine(func(c *Config) { c.ReconcileEvery = time.Hour; c.LeaseTTL = time.Hour })
	w := l.register("two", []any{step("a", p.id, nil), step("b", q.id, nil)}, []any{edge("a", "b")})
	id := l.create(w)
	await(t, "the call by the first owner", p.entered)
	before := l.row(id)

	l.engine()
	await(t, "the call by the second owner", p.entered)
	after := l.row(id)
	if after.Epoch <= before.Epoch || after.Instance != l.e.Instance() {
		t.Fatalf("the run did not change hands: %+v", after)
	}

	// The stale owner's call comes to an end first.
	chunk := run.NodeChunk{NodeID: "a", Visit: 1, Attempt: 0, Text: "late"}
	if o := stale.Do(context.Background(), id, chunk); o.Err == nil {
		t.Error("the stale owner wrote to a run that is not its own")
	} else {
		refused(t, o.Err, problem.ServiceUnavailable)
	}
	if r := l.row(id); r.Seq != after.Seq || r.Epoch != after.Epoch {
		t.Errorf("the stale owner moved the run from %d to %d", after.Seq, r.Seq)
	}
	p.free()
	q.free()
	l.until(id, run.Completed)
	l.sound(id)
	if q.count("b") != 1 {
		t.Errorf("the node behind was called %d times", q.count("b"))
	}
}

func TestStaleAppendIsRefused(t *testing.T) {
	p := newProbe(t, "test.work")
	l := newLab(t, p.typ())
	l.engine()
	w := l.register("one", []any{step("a", p.id, nil)}, nil)
	id := l.create(w)
	await(t, "the call", p.entered)
	row := l.row(id)
	l.engine()
	await(t, "the call by the next owner", p.entered)
	err := l.db.Runs().Append(context.Background(), &store.Append{Row: row, Epoch: row.Epoch, ExpectedSeq: row.Seq})
	if !errors.Is(err, store.ErrStale) {
		t.Fatalf("an append of a stale epoch: %v", err)
	}
}

func TestLostInstanceExecutesNothingFurther(t *testing.T) {
	p := newProbe(t, "test.work")
	l := newLab(t, p.typ())
	e := l.engine(func(c *Config) { c.LeaseTTL = 30 * time.Millisecond })
	w := l.register("two", []any{step("a", p.id, nil), step("b", p.id, nil)}, []any{edge("a", "b")})
	id := l.create(w)
	await(t, "the call", p.entered)
	l.db.lost()
	await(t, "the engine to cut its calls off", e.calls.nothing())
	p.free()
	_, err := e.Create(context.Background(), e.NewID("acme"), w, start())
	refused(t, err, problem.ServiceUnavailable)
	if n := countOf(l.kinds(id), "node.completed"); n != 0 || p.total() != 1 {
		t.Errorf("%d nodes completed and %d calls made by a lost instance", n, p.total())
	}
	if r := l.row(id); r.Status != run.Running {
		t.Errorf("the run is %s", r.Status)
	}
}

func TestDrainingEngineStopsClaiming(t *testing.T) {
	p := newProbe(t, "test.work")
	l := newLab(t, p.typ())
	e := l.engine()
	w := l.register("two", []any{step("a", p.id, nil), step("b", p.id, nil)}, []any{edge("a", "b")})
	id := l.create(w)
	await(t, "the call", p.entered)

	stopped := make(chan error, 1)
	go func() { stopped <- e.Stop(context.Background()) }()
	await(t, "the drain to begin", e.stop)
	before := l.db.claimed.Load()
	ghost := l.orphan("two")
	_, err := e.Create(context.Background(), e.NewID("acme"), w, start())
	refused(t, err, problem.ServiceUnavailable)

	// The call that is under way is let come to its end, and its outcome counts.
	p.pass(t)
	if err := await(t, "the engine to stop", stopped); err != nil {
		t.Fatal(err)
	}
	if n := l.db.claimed.Load(); n != before {
		t.Errorf("a draining engine claimed %d runs", n-before)
	}
	if n := countOf(l.kinds(id), "node.completed"); n != 1 {
		t.Errorf("%d outcomes recorded, want that of the call under way", n)
	}
	if p.count("b") != 0 {
		t.Error("a draining engine began another call")
	}
	if r := l.row(ghost); r.Instance != "i-gone" {
		t.Errorf("the orphan belongs to %q", r.Instance)
	}

	p.free()
	l.engine()
	l.until(id, run.Completed)
	l.until(ghost, run.Completed)
	l.sound(id)
	if p.count("a") != 2 { // one of each run
		t.Errorf("a was called %d times", p.count("a"))
	}
}

func TestStoppedEngineRefusesCommands(t *testing.T) {
	l := newLab(t)
	l.engine()
	w := l.register("gate", []any{step("ok", "core.approvalGate", map[string]any{"title": "?"})}, nil)
	id := l.create(w)
	l.halt(l.e)
	refused(t, l.do(id, accept("ok")).Err, problem.ServiceUnavailable)
	if r := l.row(id); r.Status != run.WaitingApproval {
		t.Errorf("the run is %s", r.Status)
	}
	l.engine()
	l.must(id, accept("ok"))
	l.until(id, run.Completed)
}
