package engine

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/go-json-experiment/json/jsontext"
)

var watched = ids.Run{Tenant: "acme", Opaque: "w"}

func events(from, to int64) []event.Event {
	var out []event.Event
	for s := from; s <= to; s++ {
		out = append(out, event.Event{Run: watched, Seq: s, Type: event.LogAppended, Causation: -1, Payload: jsontext.Value(`{}`)})
	}
	return out
}

// follows checks what a watch gives behind a sequence: these events, or word
// that the store must be read.
func follows(t *testing.T, w *Watch, after, from, to int64, ok bool) {
	t.Helper()
	got, _, known := w.After(after)
	if known != ok {
		t.Fatalf("after %d: at hand %v, want %v", after, known, ok)
	}
	if !ok || from > to {
		if len(got) != 0 {
			t.Fatalf("after %d: %d events, want none", after, len(got))
		}
		return
	}
	if int64(len(got)) != to-from+1 || got[0].Seq != from || got[len(got)-1].Seq != to {
		t.Fatalf("after %d: %d events from %d, want %d to %d", after, len(got), got[0].Seq, from, to)
	}
}

func TestWatchGivesWhatFollows(t *testing.T) {
	f := newFeed()
	w := f.Watch(watched)
	defer w.Close()
	follows(t, w, -1, 0, -1, true)
	f.publish(watched, events(0, 4))
	follows(t, w, -1, 0, 4, true)
	follows(t, w, 2, 3, 4, true)
	follows(t, w, 4, 0, -1, true)
	f.publish(watched, events(5, 5))
	follows(t, w, 2, 3, 5, true)
}

func TestWatchAfterAGapSendsToTheStore(t *testing.T) {
	for name, publish := range map[string]func(f *Feed){
		"begun in the middle of the log": func(f *Feed) { f.publish(watched, events(7, 9)) },
		"one write was not announced": func(f *Feed) {
			f.publish(watched, events(0, 4))
			f.publish(watched, events(7, 9))
		},
		"announced in the wrong order": func(f *Feed) {
			f.publish(watched, events(7, 9))
			f.publish(watched, events(5, 6))
		},
		"known to be there only": func(f *Feed) {
			f.publish(watched, events(0, 4))
			f.reached(watched, 6)
			f.publish(watched, events(7, 9))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFeed()
			w := f.Watch(watched)
			defer w.Close()
			publish(f)
			follows(t, w, 4, 0, -1, false)
			follows(t, w, 6, 7, 9, true)
			follows(t, w, 9, 0, -1, true)
		})
	}
}

func TestUnannouncedEndWakesWatchers(t *testing.T) {
	f := newFeed()
	w := f.Watch(watched)
	defer w.Close()
	f.publish(watched, events(0, 4))
	_, more, _ := w.After(4)
	f.reached(watched, 4) // known already
	select {
	case <-more:
		t.Fatal("woken for nothing")
	default:
	}
	f.reached(watched, 5)
	await(t, "the watcher to be woken", more)
	follows(t, w, 4, 0, -1, false)
	follows(t, w, 5, 0, -1, true)
}

func TestFeedKeepsNothingOfUnwatchedRuns(t *testing.T) {
	f := newFeed()
	f.publish(watched, events(0, 10))
	a, b := f.Watch(watched), f.Watch(watched)
	f.publish(watched, events(11, 11+2*tailEvents))
	if n := len(a.t.tail); n > tailEvents {
		t.Errorf("%d events kept, want at most %d", n, tailEvents)
	}
	a.Close()
	if len(f.shard(watched).topics) != 1 {
		t.Error("a watched run was forgotten")
	}
	b.Close()
	if n := len(f.shard(watched).topics); n != 0 {
		t.Errorf("%d runs kept that nobody watches", n)
	}
}

// TestWatchersOfALiveRun follows a run while it is written, on a store that
// sometimes fails, and wants every event once and in order, the end included.
func TestWatchersOfALiveRun(t *testing.T) {
	p := newProbe(t, "test.work")
	l := newLab(t, p.typ())
	l.engine()
	w := l.register("one", []any{step("a", p.id, nil)}, nil)
	last := holds(event.RunCompleted)
	l.db.failing(func(a *store.Append) fault {
		if last(a) || rand.IntN(5) == 0 && !a.Create {
			return fault{after: errDisk} // nobody will announce these events
		}
		return fault{}
	})
	for range size(5, 200) {
		id := l.create(w)
		in := await(t, "the call", p.entered)
		var wait sync.WaitGroup
		for range 8 {
			wait.Go(func() { l.follow(id) })
		}
		for range 20 {
			in.Services.Chunk("x", false) // a failure may have counted
		}
		p.pass(t)
		l.until(id, run.Completed)
		wait.Wait()
		l.sound(id)
	}
}

// follow reads a run's log to its end as a stream does.
func (l *lab) follow(id ids.Run) {
	w := l.e.Feed().Watch(id)
	defer w.Close()
	next, live := int64(0), false
	for {
		var got []event.Event
		var more <-chan struct{}
		if live {
			got, more, live = w.After(next - 1)
		} else {
			row, read, err := l.db.Runs().Events(context.Background(), id, next-1, 7, 1<<20)
			if err != nil {
				l.t.Error(err)
				return
			}
			got = read
			live = next+int64(len(read)) > row.Seq
		}
		for _, e := range got {
			if e.Seq != next {
				l.t.Errorf("event %d follows %d", e.Seq, next-1)
				return
			}
			if next++; e.Type.Terminal() {
				return
			}
		}
		if live && len(got) == 0 && more != nil {
			await(l.t, "more of the log", more)
		}
	}
}

// Whoever answers is told as soon as the answer is durable, however long it takes
// to wake those who watch.
func TestTheAnswerComesBeforeTheWatchersAreWoken(t *testing.T) {
	p := newProbe(t, "test.work")
	l := newLab(t, p.typ())
	e := l.engine()
	id := l.create(l.register("two", []any{step("a", p.id, nil), step("ok", "core.approvalGate", map[string]any{"title": "?"})}, []any{}))
	await(t, "the call", p.entered) // which keeps the run in memory
	w := e.Feed().Watch(id)
	defer w.Close()
	w.t.mu.Lock() // nobody can be woken
	told := make(chan Outcome, 1)
	go func() {
		told <- l.do(id, run.Resolve{NodeID: "ok", Value: []byte(`{"action":"accept"}`), Subject: owner.Subject})
	}()
	o := await(t, "the answer", told)
	w.t.mu.Unlock()
	if o.Err != nil || o.Seq != l.row(id).Seq {
		t.Errorf("%+v, stored up to %d", o, l.row(id).Seq)
	}
	p.free()
	l.until(id, run.Completed)
}
