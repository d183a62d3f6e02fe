package storetest

import (
	"errors"
	"fmt"
	"sync"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
)

const writers = 64

// concurrentRuns: many runs grow at once, and none disturbs another.
func concurrentRuns(e *env) {
	logs := make([]*log, writers)
	for i := range logs {
		logs[i] = &log{e: e, row: e.newRow(e.id(fmt.Sprintf("tenant-%d", i%5)))}
	}
	var wg sync.WaitGroup
	for _, l := range logs {
		wg.Go(func() {
			for i := range 12 {
				a := l.next(notes(i%3 + 1)...)
				a.Create = i == 0
				if err := l.write(a); err != nil {
					e.Errorf("run %s, step %d: %v", l.row.ID, i, err)
					return
				}
				if got, err := e.s.Runs().Get(e.ctx, l.row.ID); err != nil || got.Seq != l.row.Seq {
					e.Errorf("run %s is at %d after a write up to %d: %v", l.row.ID, got.Seq, l.row.Seq, err)
				}
			}
		})
	}
	wg.Wait()
	e.reopen()
	for _, l := range logs {
		l.check()
	}
}

// concurrentWriters fight over three runs: every step that was acknowledged is
// there once, every other not at all, and no sequence is missing.
func concurrentWriters(e *env) {
	const steps = 3
	var runs []ids.Run
	for range 3 {
		runs = append(runs, e.create(e.id("acme")).row.ID)
	}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for step := 0; step < steps; {
				err := e.contend(runs[w%3], fmt.Sprintf("writer %d step %d", w, step))
				if err == nil {
					step++
				} else if !errors.Is(err, store.ErrStale) {
					e.Errorf("append: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	seen := map[string]int{}
	for _, id := range runs {
		run, events := e.read(id, -1, 0, 0)
		same(e, "end of the log", int64(len(events)-1), run.Seq)
		for i := range events {
			same(e, "sequence", events[i].Seq, int64(i))
			seen[string(events[i].Payload)]++
		}
	}
	for w := range writers {
		for step := range steps {
			text := string(note(fmt.Sprintf("writer %d step %d", w, step)).Payload)
			same(e, text, seen[text], 1)
		}
	}
}

// contend reads a run and appends one event to what it read.
func (e *env) contend(id ids.Run, text string) error {
	row, err := e.s.Runs().Get(e.ctx, id)
	if err != nil {
		return err
	}
	l := &log{e: e, row: row}
	return e.s.Runs().Append(e.ctx, l.next(note(text)))
}

// readersBesideWriter: whoever reads while a run grows sees a row and a log of
// one and the same moment.
func readersBesideWriter(e *env) {
	l := e.create(e.id("acme"))
	id, done := l.row.ID, make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for after := int64(-1); ; {
				loaded, err := e.s.Runs().Load(e.ctx, id)
				if err != nil || int64(len(loaded.Tail)) != loaded.Run.Seq+1 {
					e.Errorf("row at %d with %d events: %v", loaded.Run.Seq, len(loaded.Tail), err)
					return
				}
				run, events, err := e.s.Runs().Events(e.ctx, id, after, 1000, 1<<20)
				if err != nil || !follows(events, after, run.Seq) {
					e.Errorf("row at %d, cursor %d, %d events: %v", run.Seq, after, len(events), err)
					return
				}
				after = run.Seq
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for i := range 40 {
		l.grow(notes(i%4 + 1)...)
	}
	close(done)
	wg.Wait()
}

// follows says whether events are exactly those above after up to last.
func follows(events []event.Event, after, last int64) bool {
	for i := range events {
		if after++; events[i].Seq != after {
			return false
		}
	}
	return after == last
}
