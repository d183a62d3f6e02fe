package engine

import (
	"context"
	"fmt"
	"testing"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/node"
)

// TestManyChildrenCostWhatFewDo maps over lists of children of either kind, narrow
// and wide. What a child costs the store does not depend on how many there are, and
// the parent is not read again for each of them.
func TestManyChildrenCostWhatFewDo(t *testing.T) {
	quick := node.Type{ID: "test.quick", Run: func(context.Context, *node.Input) (node.Result, error) {
		return node.Done(node.Outputs{"x": 1}), nil
	}}
	l := newLab(t, quick)
	l.limit.MaxNodeExecutions = 1 << 30
	l.engine(func(c *Config) { c.Quick = func(t *node.Type) bool { return t.ID != quick.ID } })
	few, many := size(200, 1000), size(1000, 10_000)
	for _, typ := range []string{"core.noop", quick.ID} {
		child := "child-" + typ[5:]
		l.register(child, []any{step("c", typ, nil)}, nil)
		for _, wide := range []int{4, 64} {
			cost := func(n int) (appends, bytes, loads float64) {
				a, b, d := l.db.appends.Load(), l.db.appendBytes.Load(), l.db.loaded.Load()
				w := l.register(fmt.Sprintf("map-%s-%d-%d", typ[5:], wide, n), []any{step("m", "core.flow.map",
					map[string]any{"items": make([]int, n), "workflowId": child, "concurrency": wide})}, nil)
				id := l.create(w)
				l.until(id, run.Completed)
				if s := l.sound(id); string(s.Nodes[0].Outputs["count"]) != fmt.Sprint(n) || s.Nodes[0].Outputs["errors"] != nil {
					t.Fatalf("the map has %s results, errors %s", s.Nodes[0].Outputs["count"], s.Nodes[0].Outputs["errors"])
				}
				per := func(now, before int64) float64 { return float64(now-before) / float64(n) }
				return per(l.db.appends.Load(), a), per(l.db.appendBytes.Load(), b), per(l.db.loaded.Load(), d)
			}
			appends1, bytes1, _ := cost(few)
			appends2, bytes2, loads := cost(many)
			if appends2 > 1.2*appends1 || appends2 > 3.2 {
				t.Errorf("%s, %d at once: a child of %d took %.2f appends, one of %d took %.2f", typ, wide, few, appends1, many, appends2)
			}
			if bytes2 > 1.6*bytes1 { // checkpoints come in only where the log is long
				t.Errorf("%s, %d at once: a child of %d took %.0f bytes, one of %d took %.0f", typ, wide, few, bytes1, many, bytes2)
			}
			if loads > 0.3 {
				t.Errorf("%s, %d at once: %.2f runs were read for each child", typ, wide, loads)
			}
		}
	}
}

// asked is a run whose state is worth keeping, and that rests at its gate.
func (l *lab) asked() (ids.Run, run.Resolve) {
	l.t.Helper()
	id := l.create(l.register("gate", []any{step("ok", "core.approvalGate",
		map[string]any{"title": "?", "actions": []any{"accept", "ask"}})}, nil))
	ask := run.Resolve{NodeID: "ok", Value: []byte(`{"action":"ask","question":"` + string(make64('q')) + `"}`), Subject: owner.Subject}
	for range 100 {
		l.must(id, ask)
	}
	eventually(l.t, "the run rests", func() bool { return l.e.actors.size() == 0 })
	return id, ask
}

func TestRestingStateIsNotReadAgain(t *testing.T) {
	l := newLab(t)
	l.engine()
	id, ask := l.asked()
	loaded := l.db.loaded.Load()
	for range 20 {
		l.must(id, ask)
	}
	if n := l.db.loaded.Load() - loaded; n != 0 {
		t.Errorf("the run was read %d times", n)
	}
	l.must(id, accept("ok"))
	l.until(id, run.Completed)
	l.sound(id)
	eventually(t, "nothing is kept of a run that has ended", func() bool { return l.e.warm.order.Len() == 0 && l.e.warm.bytes == 0 })
}

// TestRestingStateGivesWay has somebody else move a run on while its state rests
// here: what rests does not count, neither for what is decided nor for a refusal.
func TestRestingStateGivesWay(t *testing.T) {
	l := newLab(t)
	first := l.engine()
	id, ask := l.asked()
	second := l.engine()
	if o := second.Do(t.Context(), id, ask); o.Err != nil {
		t.Fatal(o.Err)
	}
	before := l.row(id).Seq
	if o := first.Do(t.Context(), id, ask); o.Err != nil || o.Seq != before+1 {
		t.Errorf("the first owner went on from %d, want from %d: %v", o.Seq, before, o.Err)
	}
	eventually(t, "the run rests", func() bool { return first.actors.size() == 0 && second.actors.size() == 0 })
	if o := second.Do(t.Context(), id, accept("ok")); o.Err != nil {
		t.Fatal(o.Err)
	}
	if o := first.Do(t.Context(), id, ask); o.Err == nil {
		t.Error("a gate that is gone was asked")
	}
	l.until(id, run.Completed)
	l.sound(id)
}

func TestRestingStatesAreBounded(t *testing.T) {
	l := newLab(t)
	wf := l.register("one", []any{step("a", "core.noop", nil)}, nil)
	w := newWarm()
	keep := func(n, bytes int) ids.Run {
		id := ids.Run{Tenant: "acme", Opaque: fmt.Sprintf("run-%017d", n)}
		w.keep(&actor{id: id, s: run.New(id, wf), row: store.Run{ID: id}, sinceCheck: bytes})
		return id
	}
	if keep(0, warmFloor-1); len(w.byID) != 0 {
		t.Error("a small state is kept")
	}
	for n := range 3 * warmRuns {
		keep(n, warmFloor)
	}
	if len(w.byID) != warmRuns || w.order.Len() != warmRuns || w.bytes != warmRuns*warmFloor {
		t.Errorf("%d states of %d bytes are kept", len(w.byID), w.bytes)
	}
	large := keep(1000, warmBytes)
	if len(w.byID) != 1 || w.bytes != warmBytes {
		t.Errorf("beside a large state %d are kept", len(w.byID)-1)
	}
	if w.take(large) == nil || w.take(large) != nil || w.bytes != 0 {
		t.Error("a state is not handed over once")
	}
	if keep(1, warmBytes+1); len(w.byID) != 0 || w.bytes != 0 {
		t.Error("a state beyond all bounds is kept")
	}
}
