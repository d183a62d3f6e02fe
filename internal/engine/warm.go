package engine

import (
	"container/list"
	"sync"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
)

// Bounds of the states kept of runs that rest. Small ones are read as quickly as
// they are kept; of the large ones those that worked last are likely to go on soon,
// as a run that waits for many children does.
const (
	warmFloor = 16 << 10 // bytes of log and checkpoint to read
	warmRuns  = 64
	warmBytes = 32 << 20
	shownSize = 256 // of a child as its parent's node is shown it
)

// resting is the state of a run at one sequence and epoch.
type resting struct {
	id                    ids.Run
	s                     *run.State
	row                   store.Run
	sinceCheck, checkSize int
}

// size is about what the state takes, in bytes.
func (r *resting) size() int {
	n := r.sinceCheck + r.checkSize
	for _, x := range r.s.Nodes {
		n += shownSize * len(x.Memo.Results)
	}
	return n
}

// warm keeps the states of runs that rest. Whoever takes one is its only owner, and
// holds it against the run's row first: it counts only if nothing has happened to
// the run meanwhile, whoever did it.
type warm struct {
	mu    sync.Mutex
	byID  map[ids.Run]*list.Element
	order *list.List // oldest first
	bytes int
	most  int // runs
}

func newWarm() *warm {
	return &warm{byID: map[ids.Run]*list.Element{}, order: list.New(), most: warmRuns}
}

// keep takes an actor's state as it comes to rest.
func (w *warm) keep(a *actor) {
	if a.s == nil || a.s.Ended != "" || a.sinceCheck+a.checkSize < warmFloor {
		return
	}
	r := &resting{id: a.id, s: a.s, row: a.row, sinceCheck: a.sinceCheck, checkSize: a.checkSize}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.remove(w.byID[a.id])
	w.byID[a.id] = w.order.PushBack(r)
	for w.bytes += r.size(); len(w.byID) > w.most || w.bytes > warmBytes; {
		w.remove(w.order.Front())
	}
}

// take hands a run's state over; nil if there is none.
func (w *warm) take(id ids.Run) *resting {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.remove(w.byID[id])
}

func (w *warm) remove(e *list.Element) *resting {
	if e == nil {
		return nil
	}
	r := w.order.Remove(e).(*resting)
	delete(w.byID, r.id)
	w.bytes -= r.size()
	return r
}
