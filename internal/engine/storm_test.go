package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/node"
)

// TestStorm has runs of every kind of node meet cancels, pauses, answers, failing
// writes and engines that stop in the middle, at random. Whatever happens, each run
// comes to its end, once, with a log that is sound.
func TestStorm(t *testing.T) {
	for seed := range uint64(size(3, 150)) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { storm(t, seed) })
	}
}

func storm(t *testing.T, seed uint64) {
	work := newProbe(t, "test.work")
	work.free()
	slow := newProbe(t, "test.slow") // until its context ends: a timeout, a cancel, a stop
	loud := node.Type{ID: "test.loud", Run: func(ctx context.Context, in *node.Input) (node.Result, error) {
		for i := range 5 {
			if err := in.Services.Chunk("text", i == 4); err != nil {
				return node.Result{}, err
			}
		}
		return node.Done(node.Outputs{"again": in.Visit < 3}), nil
	}}
	own := node.Type{ID: "test.own", Pure: true, Run: func(_ context.Context, in *node.Input) (node.Result, error) {
		_, err := in.Services.Eval("nodes", nil)
		return node.Done(node.Outputs{"x": in.Visit}), err
	}}
	l := newLab(t, work.typ(), slow.typ(), loud, own)
	quick := func(c *Config) {
		c.Workers = 8
		c.Quick = func(t *node.Type) bool { return t.ID != own.ID }
	}
	l.engine(quick)
	gate := map[string]any{"title": "?"}
	soon := map[string]any{"settings": map[string]any{"timeoutMs": 3, "maxRetries": 1, "retryDelayMs": 1}}
	l.register("leaf", []any{step("a", work.id, nil), step("b", own.ID, nil)}, []any{edge("a", "b")})
	l.register("child", []any{step("c", loud.ID, nil), step("g", "core.approvalGate", gate)}, []any{edge("c", "g")})
	absorbs, back := edge("s", "z"), edge("y", "x")
	absorbs["triggerRule"] = "all_complete"
	back["condition"] = map[string]any{"type": "expression", "expression": "outputs.again"}
	w := l.register("storm", []any{
		step("m", "core.flow.map", map[string]any{"items": make([]int, 40), "workflowId": "leaf", "onItemFailure": "collect"}),
		step("sub", "core.subWorkflow", map[string]any{"workflowId": "child", "onChildFailure": "absorb"}),
		step("s", slow.id, nil, soon), step("ok", "core.approvalGate", gate), step("x", own.ID, nil), step("y", loud.ID, nil),
		step("d", "core.delay", map[string]any{"delayMs": 2}), step("z", work.id, nil),
	}, []any{edge("m", "z"), edge("sub", "z"), absorbs, edge("ok", "z"), edge("x", "y"), back, edge("y", "z"), edge("d", "z")},
		map[string]any{"settings": map[string]any{"maxLoopbackIterations": 5}})

	var mu sync.Mutex
	rnd := rand.New(rand.NewPCG(seed, 1))
	pick := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return rnd.IntN(n)
	}
	l.db.failing(func(*store.Append) fault {
		switch pick(40) {
		case 0:
			return fault{before: errDisk}
		case 1:
			return fault{after: errDisk}
		}
		return fault{}
	})
	var runs []ids.Run
	for range size(2, 3) {
		for range 3 {
			id := l.e.NewID("acme")
			l.e.Create(t.Context(), id, w, start())
			runs = append(runs, id)
		}
		var wait sync.WaitGroup
		for range 4 {
			e := l.e
			wait.Go(func() {
				for range 15 {
					e.Do(t.Context(), runs[pick(len(runs))], anything())
					time.Sleep(time.Duration(pick(3)) * time.Millisecond)
				}
			})
		}
		if pick(2) == 0 { // an engine that stops under way, with some time to do so
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(pick(20))*time.Millisecond)
			if err := l.e.Stop(ctx); err != nil {
				t.Error(err)
			}
			cancel()
		}
		wait.Wait()
		l.engine(quick)
	}
	l.db.failing(nil)
	for _, id := range runs {
		settleDown(l, id)
	}
	await(t, "every call to end", l.e.calls.nothing())
	eventually(t, "no run is held in memory", func() bool { return l.e.actors.size() == 0 && l.e.Strays() == 0 })
}
