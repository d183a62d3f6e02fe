package engine

import (
	"context"
	"sync"
	"testing"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
)

// webhook is a run that makes a call and then waits for an external event.
func webhook(l *lab, p *probe) []any {
	return []any{step("a", p.id, nil), step("hook", "core.interrupt", map[string]any{
		"kind": "external-event", "data": map[string]any{"eventType": "paid", "correlation": map[string]any{"order": "o-1"}},
	})}
}

func signal(order string) run.Resolve {
	return run.Resolve{NodeID: "hook", Value: []byte(`{"order":"` + order + `","sum":12}`), Subject: owner.Subject}
}

func TestEventBeforeItsWaitIsNotLost(t *testing.T) {
	p := newProbe(t, "test.work")
	l := newLab(t, p.typ())
	l.engine()
	id := l.create(l.register("hooked", webhook(l, p), []any{edge("a", "hook")}))
	await(t, "the call", p.entered)
	if err := l.do(id, signal("another")).Err; !problem.Is(err, problem.ValidationError) {
		t.Errorf("an event that fits no wait: %v", err)
	}
	l.must(id, signal("o-1"))
	l.restart()
	await(t, "the call again", p.entered)
	p.free()
	l.until(id, run.Completed)
	if o := string(l.sound(id).Nodes[1].Outputs["event"]); o != `{"order":"o-1","sum":12}` {
		t.Errorf("the node was given %s", o)
	}
}

func TestEventAtTheMomentOfItsWaitCountsOnce(t *testing.T) {
	p := newProbe(t, "test.work")
	l := newLab(t, p.typ())
	l.engine()
	w := l.register("hooked", webhook(l, p), []any{edge("a", "hook")})
	for range size(50, 2000) {
		id := l.create(w)
		await(t, "the call", p.entered)
		var wait sync.WaitGroup
		wait.Go(func() { p.pass(t) })
		var err error
		wait.Go(func() { err = l.do(id, signal("o-1")).Err })
		wait.Wait()
		if err != nil {
			t.Fatalf("an event was refused: %v", err)
		}
		l.until(id, run.Completed)
		if n := countOf(l.kinds(id), event.InterruptResolved); n != 1 {
			t.Fatalf("resolved %d times: %v", n, l.kinds(id))
		}
		l.sound(id)
	}
}

func TestEventAfterItsWaitIsRefused(t *testing.T) {
	p := newProbe(t, "test.work")
	p.free()
	l := newLab(t, p.typ())
	l.engine()
	id := l.create(l.register("hooked", append(webhook(l, p), step("ok", "core.approvalGate", map[string]any{"title": "?"})),
		[]any{edge("a", "hook"), edge("hook", "ok")}))
	l.until(id, run.WaitingExternal)
	l.must(id, signal("o-1"))
	l.until(id, run.WaitingApproval)
	refused(t, l.do(id, signal("o-1")).Err, problem.InterruptAlreadyResolved)
	l.must(id, accept("ok"))
	refused(t, l.do(id, signal("o-1")).Err, problem.InterruptAlreadyResolved)
}

func TestOpenInterruptsAreReadFromTheStore(t *testing.T) {
	l := newLab(t)
	l.engine()
	w := l.register("gate", []any{step("ok", "core.approvalGate", map[string]any{"title": "?"})}, nil)
	open := map[string]bool{}
	for range 5 {
		open[l.create(w).String()] = true
	}
	l.restart()
	rows, err := l.db.Runs().OpenInterrupts(context.Background(), "acme", "", 100)
	if err != nil || len(rows) != 5 {
		t.Fatalf("%d open interrupts after a restart: %v", len(rows), err)
	}
	for _, i := range rows {
		if !open[i.Run.String()] {
			t.Errorf("interrupt of %s", i.Run)
		}
		l.must(i.Run, accept(i.NodeID))
		l.until(i.Run, run.Completed)
	}
	if rows, err := l.db.Runs().OpenInterrupts(context.Background(), "acme", "", 100); err != nil || len(rows) != 0 {
		t.Errorf("%d open interrupts after all were answered: %v", len(rows), err)
	}
}
