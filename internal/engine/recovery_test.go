package engine

import (
	"slices"
	"testing"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/run"
)

// threeSteps registers a workflow of three probes in a row.
func threeSteps(l *lab, p *probe) func() *run.State {
	w := l.register("three", []any{step("a", p.id, nil), step("b", p.id, nil), step("c", p.id, nil)},
		[]any{edge("a", "b"), edge("b", "c")})
	id := l.create(w)
	return func() *run.State { l.until(id, run.Completed); return l.sound(id) }
}

func TestRunOfADeadInstanceIsClaimed(t *testing.T) {
	p := newProbe(t, "test.work")
	l := newLab(t, p.typ())
	first := l.engine()
	end := threeSteps(l, p)
	await(t, "the first call", p.entered)
	p.pass(t)
	in := await(t, "the second call", p.entered)
	if in.NodeID != "b" || in.Attempt != 0 {
		t.Fatalf("second call is %s attempt %d", in.NodeID, in.Attempt)
	}
	// The first engine is left as it is, as a process that has been killed
	// leaves the store. Nobody tells the second one about its run.
	second := l.engine()
	if first.Instance() == second.Instance() {
		t.Fatal("two starts share an instance id")
	}
	in = await(t, "the second call by the new owner", p.entered)
	if in.NodeID != "b" || in.Attempt != 1 {
		t.Fatalf("the new owner calls %s attempt %d", in.NodeID, in.Attempt)
	}
	p.free()
	end()
	if p.count("a") != 1 {
		t.Errorf("a node whose outcome was recorded has been called %d times", p.count("a"))
	}
	if p.count("c") != 1 {
		t.Errorf("a node behind the recovery has been called %d times", p.count("c"))
	}
}

func TestEveryStartHasAFreshInstance(t *testing.T) {
	l := newLab(t)
	seen := map[string]bool{}
	for range 5 {
		e := l.engine()
		if seen[e.Instance()] {
			t.Fatalf("instance %s again", e.Instance())
		}
		seen[e.Instance()] = true
		l.halt(e)
	}
}

func TestEffectKeyStaysTheSameForEveryAttempt(t *testing.T) {
	p := newProbe(t, "test.work")
	l := newLab(t, p.typ())
	l.engine()
	end := threeSteps(l, p)
	key := await(t, "the first call", p.entered).EffectKey
	l.engine()
	again := await(t, "the same call by the new owner", p.entered)
	if again.EffectKey != key || key == "" {
		t.Errorf("effect key %q, then %q", key, again.EffectKey)
	}
	p.free()
	end()
}

func TestOrphansAreFoundWithoutARestart(t *testing.T) {
	p := newProbe(t, "test.work")
	l := newLab(t, p.typ())
	l.engine()
	end := threeSteps(l, p)
	await(t, "the first call", p.entered)
	// A run of an owner the store does not know: as if another replica had
	// taken it on and been killed.
	ghost := l.orphan("three")
	p.free()
	l.until(ghost, run.Completed)
	l.sound(ghost)
	end()
}

func TestRecoveryAfterManyRestarts(t *testing.T) {
	p := newProbe(t, "test.work")
	l := newLab(t, p.typ())
	l.engine()
	w := l.register("fan", []any{step("a", p.id, nil), step("b", p.id, nil), step("c", "core.noop", nil)},
		[]any{edge("a", "c"), edge("b", "c")})
	id := l.create(w)
	for range size(5, 50) {
		await(t, "a call", p.entered)
		await(t, "the other call", p.entered)
		l.restart()
	}
	await(t, "a call", p.entered)
	p.free()
	l.until(id, run.Completed)
	l.sound(id)
	open := map[string]int{}
	for _, e := range l.log(id) {
		switch e.Type {
		case event.NodeStarted:
			open[e.NodeID]++
		case event.NodeCompleted:
			if open[e.NodeID] == 0 {
				t.Errorf("%s completed before it started", e.NodeID)
			}
		}
	}
	if n := countOf(l.kinds(id), event.NodeCompleted); n != 3 {
		t.Errorf("%d nodes completed", n)
	}
}

func countOf(kinds []event.Type, want event.Type) int {
	n := 0
	for _, k := range kinds {
		if k == want {
			n++
		}
	}
	return n
}

func TestResumeGoesOnAtTheNode(t *testing.T) {
	p := newProbe(t, "test.work")
	p.free()
	l := newLab(t, p.typ())
	l.engine()
	w := l.register("gated", []any{step("a", p.id, nil), step("ok", "core.approvalGate", map[string]any{"title": "?"}), step("b", p.id, nil)},
		[]any{edge("a", "ok"), edge("ok", "b")})
	id := l.create(w)
	l.until(id, run.WaitingApproval)
	l.restart()
	l.must(id, accept("ok"))
	l.until(id, run.Completed)
	l.sound(id)
	if p.count("a") != 1 || p.count("b") != 1 {
		t.Errorf("a was called %d times and b %d times", p.count("a"), p.count("b"))
	}
	if !slices.Contains(l.kinds(id), event.NodeResumed) {
		t.Errorf("no node.resumed in %v", l.kinds(id))
	}
}
