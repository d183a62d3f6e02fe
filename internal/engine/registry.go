package engine

import (
	"sync"

	"github.com/fermata-run/fermata/internal/ids"
)

// registry holds the actors of runs that are being worked on.
type registry struct {
	shards [64]struct {
		sync.Mutex
		m map[ids.Run]*actor
	}
	busy sync.WaitGroup // actors whose goroutine runs
}

func (r *registry) init() {
	for i := range r.shards {
		r.shards[i].m = map[ids.Run]*actor{}
	}
}

func (r *registry) shard(id ids.Run) int {
	h := uint32(2166136261)
	for i := 0; i < len(id.Opaque); i++ {
		h = (h ^ uint32(id.Opaque[i])) * 16777619
	}
	return int(h % uint32(len(r.shards)))
}

// deliver puts a message into a run's mailbox and sees to it that somebody
// reads it.
func (r *registry) deliver(e *Engine, id ids.Run, m message) {
	sh := &r.shards[r.shard(id)]
	sh.Lock()
	defer sh.Unlock()
	a := sh.m[id]
	if a == nil {
		a = &actor{e: e, id: id}
		sh.m[id] = a
	}
	a.inbox = append(a.inbox, m)
	if !a.running {
		a.running = true
		r.busy.Add(1)
		go a.loop()
	}
}

// take hands an actor its mail. With none left, the actor rests: it is
// forgotten if its run is parked, kept with its state if calls are out.
func (r *registry) take(a *actor) []message {
	sh := &r.shards[r.shard(a.id)]
	sh.Lock()
	defer sh.Unlock()
	if len(a.inbox) > 0 {
		mail := a.inbox
		a.inbox = nil
		return mail
	}
	a.running = false
	if !a.holding() {
		delete(sh.m, a.id)
	}
	r.busy.Done()
	return nil
}

// adopt registers an actor that already holds its run's state, so that the
// results of its calls find it. If the run has an actor already, that one loads
// what is durable and this one's state is dropped.
func (r *registry) adopt(a *actor) bool {
	sh := &r.shards[r.shard(a.id)]
	sh.Lock()
	defer sh.Unlock()
	if sh.m[a.id] != nil {
		return false
	}
	sh.m[a.id] = a
	return true
}

// quiesce waits until no actor's goroutine runs.
func (r *registry) quiesce() { r.busy.Wait() }
