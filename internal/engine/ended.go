package engine

import (
	"slices"
	"sync"
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
)

// Bounds of what is kept of runs that have ended. Whoever started a run asks
// for its outcome soon after it is there, and then no store need be asked.
const (
	endedRuns  = 1024
	endedBytes = 8 << 20
	endedLog   = 64 << 10 // a longer log is not worth its room

	// What another replica lets go of is not told here. No run is let go of so
	// soon after its end (host.Smallest), unless an operator wants it.
	endedFor = time.Hour
)

// Ended is a run that has come to its end on this instance, and of which nothing is
// left to be undone. Nothing changes it any more: all of it is only for reading, by
// any number of readers.
type Ended struct {
	State *run.State
	Row   store.Run
	Log   []event.Event // all of it, or nil if only part is at hand

	size int
	kept time.Time // by this process's own time
}

// ended keeps the runs that ended last, the oldest of which make room.
type ended struct {
	mu    sync.RWMutex
	byID  map[ids.Run]*Ended
	order []ids.Run // oldest first
	bytes int
}

// Ended finds a run among those that have ended on this instance just now.
func (e *Engine) Ended(id ids.Run) (*Ended, bool) {
	e.ended.mu.RLock()
	defer e.ended.mu.RUnlock()
	r, ok := e.ended.byID[id]
	if ok && time.Since(r.kept) > endedFor {
		return nil, false
	}
	return r, ok
}

// Forget drops what is kept of a run that has ended: it has expired.
func (e *Engine) Forget(id ids.Run) {
	d := &e.ended
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.byID[id]
	if r == nil {
		return
	}
	delete(d.byID, id)
	d.bytes -= r.size
	d.order = slices.DeleteFunc(d.order, func(x ids.Run) bool { return x == id })
}

// keep remembers a run whose end is durable. before is how much log it had
// ahead of the turn that ended it.
func (d *ended) keep(t *turn, row store.Run, before int) {
	r := &Ended{State: t.s, Row: row, size: before, kept: time.Now()}
	for i := range t.events {
		r.size += len(t.events[i].Doc())
	}
	if r.size > endedLog {
		return
	}
	if len(t.events) > 0 && t.events[0].Seq == 0 && int64(len(t.events)) == t.s.Seq+1 {
		r.Log = t.events
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byID == nil {
		d.byID = map[ids.Run]*Ended{}
	}
	if d.byID[row.ID] != nil {
		return
	}
	d.byID[row.ID] = r
	d.order = append(d.order, row.ID)
	d.bytes += r.size
	for len(d.order) > endedRuns || d.bytes > endedBytes {
		oldest := d.order[0]
		d.order = d.order[1:]
		d.bytes -= d.byID[oldest].size
		delete(d.byID, oldest)
	}
}
