package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
)

// Where several instances share a store, a command to a run that another one works on
// is decided where it arrives. Its step keeps the run's owner and epoch and is made
// only if the run has not moved on; the owner is told of it in the same transaction,
// reads the run again, and makes or cuts off the calls that follow. See ADR 21.

const (
	// Between looks at what others have done: short while something happens, longer
	// the longer nothing does.
	firstLook = 50 * time.Millisecond
	lastLook  = time.Second
	toldBatch = 256
	endsBatch = 512
)

// life is what the calls of one registration live in. It ends when the instance stops
// or has been declared lost.
type life struct {
	ctx context.Context
	end context.CancelFunc
}

func newLife() *life {
	ctx, end := context.WithCancel(context.Background())
	return &life{ctx, end}
}

// guestworthy says whether a command may be decided by an instance that does not own
// the run: it comes from outside, and not from a call of a node.
func guestworthy(m message) bool {
	switch m.cmd.(type) {
	case run.Resolve, run.Cancel, run.Pause, run.Resume, run.Operate, run.ChildNews:
		return true
	}
	return false
}

// refuseGuest refuses the messages of a batch that only the owner may take.
func refuseGuest(mail []message, outs []Outcome) {
	for i, m := range mail {
		if !guestworthy(m) {
			outs[i].Err = refusal(errForeign)
		}
	}
}

// lookOut learns what other instances have done, until the engine stops.
func (e *Engine) lookOut() {
	told := time.Duration(0)
	var due time.Time
	hints := e.others.Hints()
	for {
		select {
		case <-e.stop:
			return
		case h := <-hints:
			if e.hear(h) {
				due = time.Time{}
			}
			for range len(hints) { // all that are at hand, and then one look
				if e.hear(<-hints) {
					due = time.Time{}
				}
			}
		case <-time.After(firstLook):
		}
		if now := time.Now(); e.actors.size() > 0 && !now.Before(due) {
			if e.takeTold() {
				told = 0
			}
			told = min(max(2*told, firstLook), lastLook/4)
			due = now.Add(told)
		}
		e.lookAtWatched()
	}
}

// hear makes the next look one at what a hint is about. It reports whether that is what
// others have told this instance.
func (e *Engine) hear(h store.Hint) (told bool) {
	if !h.Run.IsZero() {
		e.feed.hint(h.Run)
	}
	if h.All {
		e.feed.hintAll()
	}
	if h.Work || h.All {
		e.timers.poke(e.clock.Now())
	}
	return h.All || h.Instance == e.Instance()
}

// hint has the end of a run's log looked at with the next look, if somebody watches.
func (f *Feed) hint(id ids.Run) {
	if t := f.topic(id); t != nil {
		t.soon()
	}
}

func (f *Feed) hintAll() {
	for i := range f.shards {
		sh := &f.shards[i]
		sh.mu.Lock()
		for _, t := range sh.topics {
			t.soon()
		}
		sh.mu.Unlock()
	}
}

func (t *topic) soon() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lookAt = time.Time{}
}

// takeTold looks at the runs of this instance in which others have made a step.
func (e *Engine) takeTold() (any bool) {
	ctx, done := context.WithTimeout(e.looking, 10*time.Second)
	defer done()
	runs, err := e.others.Told(ctx, e.Instance(), toldBatch)
	if err != nil {
		return false
	}
	for _, id := range runs {
		e.actors.deliver(e, id, message{cmd: run.Tick{}, moved: true})
	}
	return len(runs) > 0
}

// lookAtWatched lets watchers know of events that others have appended.
func (e *Engine) lookAtWatched() {
	ids := e.feed.lookDue(time.Now())
	for len(ids) > 0 {
		n := min(len(ids), endsBatch)
		ctx, done := context.WithTimeout(e.looking, 10*time.Second)
		ends, err := e.others.Ends(ctx, ids[:n])
		done()
		if err != nil {
			return
		}
		for id, seq := range ends {
			e.feed.reached(id, seq)
		}
		ids = ids[n:]
	}
}

// lookDue lists the watched runs whose ends in the store should be looked at.
func (f *Feed) lookDue(now time.Time) (out []ids.Run) {
	for i := range f.shards {
		sh := &f.shards[i]
		sh.mu.Lock()
		for id, t := range sh.topics {
			if t.look(now) {
				out = append(out, id)
			}
		}
		sh.mu.Unlock()
	}
	return out
}

// look says whether it is time to look, and puts the next look off.
func (t *topic) look(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Before(t.lookAt) {
		return false
	}
	t.gap = min(max(2*t.gap, firstLook), lastLook)
	t.lookAt = now.Add(t.gap)
	return true
}

// rejoin begins anew as a fresh instance after the store has declared this one lost:
// its calls are cut off, for its runs may be others' by now, and what it knows of
// them is void. Whoever claims them goes on from their logs, this instance, too.
func (e *Engine) rejoin(lost string) {
	e.joining.Lock()
	defer e.joining.Unlock()
	if e.draining.Load() || e.Instance() != lost {
		return
	}
	e.log.Warn("this instance has been declared lost; its calls are cut off, and it begins anew", "instance", lost)
	e.life.Swap(newLife()).end()
	id := "i-" + rand.Text()
	for wait := firstWait; ; wait = min(2*wait, longestGap) {
		err := e.store.Ownership().Register(e.looking, id)
		if err == nil {
			break
		}
		if errors.Is(err, store.ErrClosed) || !e.rest(wait) {
			return
		}
	}
	e.instance.Store(&id)
	e.log.Info("registered again", "instance", id)
}
