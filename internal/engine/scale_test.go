package engine

import (
	"sync"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/run"
)

// many creates n runs, a few hundred at a time.
func (l *lab) many(w *flow.Workflow, n int) []ids.Run {
	l.t.Helper()
	out := make([]ids.Run, n)
	var wait sync.WaitGroup
	next := make(chan int)
	for range 256 {
		wait.Go(func() {
			for i := range next {
				out[i] = l.e.NewID("acme")
				if _, err := l.e.Create(l.t.Context(), out[i], w, start()); err != nil {
					l.t.Error(err)
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wait.Wait()
	return out
}

func TestParkedRunsCostNothing(t *testing.T) {
	l := newLab(t)
	l.engine()
	gate := l.register("gate", []any{step("ok", "core.approvalGate", map[string]any{"title": "?"})}, nil)
	nap := l.register("nap", []any{step("d", "core.delay", map[string]any{"delayMs": (60 * day).Milliseconds()})}, nil)
	n := size(2_000, 100_000)
	runs := l.many(gate, n/2)
	l.many(nap, n/2)
	empty := func() {
		t.Helper()
		eventually(t, "no run is held in memory", func() bool { return l.e.actors.size() == 0 })
		if timers := len(l.e.timers.byRun); timers != 0 {
			t.Errorf("%d timers in memory", timers)
		}
	}
	empty()

	l.restart()
	// The reconciler has been round several times when a run that was due at the
	// last moment has been woken.
	for range 3 {
		soon := l.create(l.register("soon", []any{step("d", "core.delay", map[string]any{"delayMs": 5})}, nil))
		l.until(soon, run.Completed)
	}
	empty()
	if claimed, loaded := l.db.claimed.Load(), l.db.loaded.Load(); claimed > 3 || loaded > 3 {
		t.Errorf("of %d parked runs, the start claimed %d and loaded %d", n, claimed, loaded)
	}
	l.must(runs[0], accept("ok"))
	l.until(runs[0], run.Completed)
	empty()
}

// TestLongRunsCostWhatShortOnesDo asks a gate many questions: each is a step of
// a parked run, which is read and written anew for it.
func TestLongRunsCostWhatShortOnesDo(t *testing.T) {
	l := newLab(t)
	l.engine().warm.most = 0
	id := l.create(l.register("gate", []any{step("ok", "core.approvalGate",
		map[string]any{"title": "?", "actions": []any{"accept", "ask"}})}, nil))
	ask := run.Resolve{NodeID: "ok", Value: []byte(`{"action":"ask","question":"` + string(make64('q')) + `"}`), Subject: owner.Subject}
	stretch := func(n int) (bytes, events, loads, tail int64) {
		b, e, d, g := l.db.appendBytes.Load(), l.db.appendEvents.Load(), l.db.loaded.Load(), l.db.loadedEvents.Load()
		next, wait := make(chan int), sync.WaitGroup{}
		for range 64 {
			wait.Go(func() {
				for range next {
					l.must(id, ask)
				}
			})
		}
		for i := range n {
			next <- i
		}
		close(next)
		wait.Wait()
		return l.db.appendBytes.Load() - b, l.db.appendEvents.Load() - e, l.db.loaded.Load() - d, l.db.loadedEvents.Load() - g
	}
	n := size(1_500, 50_000)
	bytes1, events1, loads1, tail1 := stretch(n)
	bytes2, events2, loads2, tail2 := stretch(n)
	if events1 != int64(n) || events2 != int64(n) {
		t.Fatalf("%d and %d events for %d questions each", events1, events2, n)
	}
	if bytes2 > bytes1*5/4 {
		t.Errorf("%d events took %d bytes, the same number behind them %d", n, bytes1, bytes2)
	}
	// What is read for a step is bounded by the checkpoints, not by the log.
	longest := int64(2 * checkpointFloor / 256)
	if tail1/loads1 > longest || tail2/loads2 > longest {
		t.Errorf("a step read %d events on average, later %d", tail1/loads1, tail2/loads2)
	}

	loads, tail, read := l.db.loaded.Load(), l.db.loadedEvents.Load(), l.db.read.Load()
	if s, err := l.e.Read(t.Context(), id); err != nil || s.Seq < int64(2*n) {
		t.Fatalf("read up to %d: %v", s.Seq, err)
	}
	if d, g, r := l.db.loaded.Load()-loads, l.db.loadedEvents.Load()-tail, l.db.read.Load()-read; d != 1 || g > longest || r != 0 {
		t.Errorf("a snapshot took %d loads of %d events, and %d events beside", d, g, r)
	}
	l.must(id, accept("ok"))
	l.until(id, run.Completed)
	l.sound(id)
}

func make64(c byte) []byte {
	b := make([]byte, 64)
	for i := range b {
		b[i] = c
	}
	return b
}

// TestStreamedOutputDoesNotReadTheLog is about a run that is being worked on:
// its state is at hand, whatever its length.
func TestStreamedOutputDoesNotReadTheLog(t *testing.T) {
	p := newProbe(t, "test.work")
	l := newLab(t, p.typ())
	l.engine()
	id := l.create(l.register("one", []any{step("a", p.id, nil)}, nil))
	in := await(t, "the call", p.entered)
	loaded := l.db.loaded.Load()
	for range size(300, 20_000) {
		if err := in.Services.Chunk("a piece of text", false); err != nil {
			t.Fatal(err)
		}
	}
	if n := l.db.loaded.Load() - loaded; n != 0 {
		t.Errorf("the run was read %d times", n)
	}
	p.free()
	l.until(id, run.Completed)
	l.sound(id)
}

// TestDueRunsAreTakenOnInBatches wakes more runs at one moment than one look
// into the store takes on.
func TestDueRunsAreTakenOnInBatches(t *testing.T) {
	l := newLab(t)
	m := byHand(l)
	l.engine()
	w := l.register("nap", []any{step("d", "core.delay", map[string]any{"delayMs": 1000})}, nil)
	runs := l.many(w, size(3*claimBatch, 100*claimBatch))
	m.Advance(time.Second)
	for _, id := range runs {
		l.pass(m, id, 0, run.Completed)
	}
	for _, id := range runs[:10] {
		l.sound(id)
	}
}
