package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
)

func TestConcurrentAnswersHaveOneWinner(t *testing.T) {
	p := newProbe(t, "test.work")
	p.free()
	l := newLab(t, p.typ())
	l.engine()
	w := l.register("gate", []any{step("ok", "core.approvalGate", map[string]any{"title": "?"}), step("b", p.id, nil)}, []any{edge("ok", "b")})
	for round := range size(100, 5000) {
		id := l.create(w)
		var won, lost atomic.Int64
		var wait sync.WaitGroup
		for range 2 + round%7 {
			wait.Go(func() {
				switch err := l.do(id, accept("ok")).Err; {
				case err == nil:
					won.Add(1)
				case problem.Is(err, problem.InterruptAlreadyResolved):
					lost.Add(1)
				default:
					t.Errorf("refused with %v", err)
				}
			})
		}
		wait.Wait()
		if won.Load() != 1 || lost.Load() != int64(1+round%7) {
			t.Fatalf("%d answers won and %d lost", won.Load(), lost.Load())
		}
		l.until(id, run.Completed)
		l.sound(id)
		if n := countOf(l.kinds(id), event.InterruptResolved); n != 1 {
			t.Fatalf("resolved %d times", n)
		}
		if p.total() != round+1 {
			t.Fatalf("%d calls behind %d gates", p.total(), round+1)
		}
	}
}

// TestChaosLeavesLogsSound lets everybody do everything to the same runs at
// once, on engines that take over from each other, on a store that fails.
func TestChaosLeavesLogsSound(t *testing.T) {
	p := newProbe(t, "test.work")
	p.free()
	l := newLab(t, p.typ())
	l.engine()
	l.register("child", []any{step("c", p.id, nil), step("g", "core.approvalGate", map[string]any{"title": "?"})}, []any{edge("c", "g")})
	w := l.register("chaos", []any{
		step("a", p.id, nil), step("ok", "core.approvalGate", map[string]any{"title": "?"}),
		step("sub", "core.subWorkflow", map[string]any{"workflowId": "child"}), step("d", "core.delay", map[string]any{"delayMs": 2}), step("z", p.id, nil),
	}, []any{edge("a", "ok"), edge("a", "sub"), edge("a", "d"), edge("ok", "z"), edge("sub", "z"), edge("d", "z")})
	l.db.failing(func(*store.Append) fault {
		switch rand.IntN(20) {
		case 0:
			return fault{before: errDisk}
		case 1:
			return fault{after: errDisk}
		}
		return fault{}
	})
	var runs []ids.Run
	for range size(8, 200) {
		id := l.e.NewID("acme")
		l.e.Create(t.Context(), id, w, start()) // a failure may have made it all the same
		runs = append(runs, id)
	}
	for range size(2, 10) {
		var wait sync.WaitGroup
		for range 4 {
			e := l.e
			wait.Go(func() {
				for range size(40, 100) {
					e.Do(t.Context(), runs[rand.IntN(len(runs))], anything())
				}
			})
		}
		wait.Wait()
		l.engine() // takes over
	}
	l.db.failing(nil)
	for _, id := range runs {
		settleDown(l, id)
	}
}

// anything is some command a user or the engine itself may give.
func anything() run.Command {
	switch rand.IntN(10) {
	case 0:
		return run.Cancel{}
	case 1, 2:
		return run.Pause{DrainPolicy: "immediate"}
	case 3:
		return run.Pause{DrainPolicy: "drain-current-node"}
	case 4, 5, 6:
		return run.Resume{}
	case 7:
		return run.Tick{}
	}
	return accept("ok")
}

// settleDown brings a run to its end and looks at all of it.
func settleDown(l *lab, id ids.Run) {
	l.t.Helper()
	if _, err := l.db.Store.Runs().Get(context.Background(), id); err != nil {
		return // never came into being
	}
	eventually(l.t, fmt.Sprintf("run %s comes to an end", id), func() bool {
		l.do(id, run.Resume{})
		l.do(id, accept("ok"))
		kids, err := l.db.Store.Runs().Children(context.Background(), id)
		if err != nil {
			l.t.Fatal(err)
		}
		for _, k := range kids {
			l.do(k.ID, accept("g"))
		}
		return run.Terminal(l.row(id).Status)
	})
	l.sound(id)
	kids, _ := l.db.Store.Runs().Children(context.Background(), id)
	for _, k := range kids {
		if s := l.sound(k.ID); !run.Terminal(s.Status()) {
			l.t.Errorf("run %s has ended, its child %s is %s", id, k.ID, s.Status())
		}
	}
}
