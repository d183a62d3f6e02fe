package engine

import (
	"github.com/fermata-run/fermata/internal/run"
)

// reserve makes sure that, from the moment a new run is durable, whatever
// reaches it waits until what its creation calls for has been done. A run that
// is parked or over at once calls for nothing.
func (t *turn) reserve() {
	if t.written.Instance != "" {
		a := &actor{e: t.e, id: t.s.ID, life: t.e.life.Load()}
		if t.e.actors.reserve(a) {
			t.actor = a
		}
	}
	for _, c := range t.children {
		c.reserve()
	}
}

// giveUp lets go of a run that could not be written. The failed write may have
// reached the store all the same, so the run is looked for once more.
func (t *turn) giveUp() {
	for _, c := range t.children {
		c.giveUp()
	}
	if t.written.Instance != "" {
		t.e.actors.deliver(t.e, t.s.ID, message{cmd: run.Tick{}})
	}
	if t.actor != nil {
		t.e.actors.release(t.actor)
	}
}

// takeOver begins to work on a run that has just become durable.
func (e *Engine) takeOver(t *turn) {
	row := t.written
	e.feed.publish(t.s.ID, t.events)
	for _, c := range t.children {
		e.takeOver(c)
	}
	if row.Instance == "" {
		if !row.WakeAt.IsZero() {
			e.timers.poke(row.WakeAt)
		}
		if t.s.Settled() {
			e.ended.keep(t, row, 0)
		}
		return
	}
	a := t.actor
	if a == nil {
		// Somebody works on it already: let him look it over.
		e.actors.deliver(e, t.s.ID, message{cmd: run.Tick{}})
		return
	}
	a.s, a.row, a.fresh, a.replay = t.s, row, true, t.replay
	for i := range t.events {
		a.sinceCheck += len(t.events[i].Doc())
	}
	a.dispatch(t)
	e.actors.release(a)
}
