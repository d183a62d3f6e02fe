package engine

import (
	"container/heap"
	"sync"
	"time"

	"github.com/fermata-run/fermata/internal/clock"
	"github.com/fermata-run/fermata/internal/ids"
)

// timers wakes the engine's loops: one list holds the due times of runs that
// are being worked on, one mark says when the store's index has something due.
type timers struct {
	clock clock.Clock

	mu     sync.Mutex
	heap   dueHeap
	byRun  map[ids.Run]*due
	parked time.Time // earliest due time known among parked runs

	activeChanged chan struct{}
	parkedChanged chan struct{}
}

type due struct {
	id    ids.Run
	at    time.Time
	index int
}

func newTimers(c clock.Clock) *timers {
	return &timers{
		clock: c, byRun: map[ids.Run]*due{},
		activeChanged: make(chan struct{}, 1), parkedChanged: make(chan struct{}, 1),
	}
}

func nudge(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// set registers the due time of a run that is being worked on.
func (t *timers) set(id ids.Run, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.byRun[id]
	if d == nil {
		d = &due{id: id, at: at}
		t.byRun[id] = d
		heap.Push(&t.heap, d)
	} else if !d.at.Equal(at) {
		d.at = at
		heap.Fix(&t.heap, d.index)
	}
	if t.heap[0] == d {
		nudge(t.activeChanged)
	}
}

// drop forgets a run.
func (t *timers) drop(id ids.Run) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if d := t.byRun[id]; d != nil {
		heap.Remove(&t.heap, d.index)
		delete(t.byRun, id)
	}
}

// poke says that a parked run is due at a time.
func (t *timers) poke(at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.parked.IsZero() || at.Before(t.parked) {
		t.parked = at
		nudge(t.parkedChanged)
	}
}

// popDue takes the active runs that are due, and tells how long to wait for the
// next one; a negative wait means there is none.
func (t *timers) popDue() (ready []ids.Run, wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	for len(t.heap) > 0 {
		if wait := t.heap[0].at.Sub(now); wait > 0 {
			return ready, wait
		}
		d := heap.Pop(&t.heap).(*due)
		delete(t.byRun, d.id)
		ready = append(ready, d.id)
	}
	return ready, -1
}

// nextParked tells how long to wait for the next parked run; a negative wait
// means that none is known.
func (t *timers) nextParked() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.parked.IsZero() {
		return -1
	}
	return max(t.parked.Sub(t.clock.Now()), 0)
}

// forgetParked forgets what is known of parked runs, before the store is asked.
func (t *timers) forgetParked() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.parked = time.Time{}
}

type dueHeap []*due

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *dueHeap) Push(x any) {
	d := x.(*due)
	d.index = len(*h)
	*h = append(*h, d)
}
func (h *dueHeap) Pop() any {
	old := *h
	d := old[len(old)-1]
	*h = old[:len(old)-1]
	return d
}
