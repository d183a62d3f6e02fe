package engine

import (
	"sync"

	"github.com/fermata-run/fermata/internal/ids"
)

// registry holds the actors of runs that are being worked on.
type registry struct {
	shards [64]shard
	busy   tally // actors whose goroutine runs, and reserved ones
}

type shard struct {
	sync.Mutex
	m      map[ids.Run]*actor
	closed bool
}

func (r *registry) init() {
	for i := range r.shards {
		r.shards[i].m = map[ids.Run]*actor{}
	}
}

// spread hashes a run (FNV-1a), so that runs share locks evenly.
func spread(id ids.Run) uint32 {
	h := uint32(2166136261)
	for i := 0; i < len(id.Opaque); i++ {
		h = (h ^ uint32(id.Opaque[i])) * 16777619
	}
	return h
}

func (r *registry) shard(id ids.Run) *shard {
	return &r.shards[spread(id)%uint32(len(r.shards))]
}

// deliver puts a message into a run's mailbox and sees to it that somebody
// reads it. Once the registry is closed, nobody will.
func (r *registry) deliver(e *Engine, id ids.Run, m message) {
	sh := r.shard(id)
	sh.Lock()
	defer sh.Unlock()
	if sh.closed {
		if m.reply != nil {
			m.reply <- Outcome{Err: errDraining()}
		}
		return
	}
	a := sh.m[id]
	if a == nil {
		a = &actor{e: e, id: id, life: e.life.Load()}
		sh.m[id] = a
	}
	a.inbox = append(a.inbox, m)
	if !a.running {
		a.running = true
		r.busy.add()
		go a.loop()
	}
}

// take hands an actor its mail. With none left, the actor rests.
func (r *registry) take(a *actor) []message {
	sh := r.shard(a.id)
	sh.Lock()
	defer sh.Unlock()
	if len(a.inbox) > 0 {
		mail := a.inbox
		a.inbox = nil
		return mail
	}
	r.rest(sh, a)
	return nil
}

// more hands an actor what has come in while it is busy.
func (r *registry) more(a *actor) []message {
	sh := r.shard(a.id)
	sh.Lock()
	defer sh.Unlock()
	mail := a.inbox
	a.inbox = nil
	return mail
}

// rest ends an actor's turn at work: it is forgotten if nothing but the store
// is needed to go on, kept with its state if calls are out.
func (r *registry) rest(sh *shard, a *actor) {
	a.running = false
	if !a.holding() {
		a.e.warm.keep(a)
		delete(sh.m, a.id)
	}
	r.busy.done()
}

// reserve enters the actor of a run that is about to come into being. Whatever
// reaches the run before release waits in its mailbox, so that nothing happens
// to it before what its creation calls for. It reports false if the run has an
// actor already, or nobody is to work any more.
func (r *registry) reserve(a *actor) bool {
	sh := r.shard(a.id)
	sh.Lock()
	defer sh.Unlock()
	if sh.closed || sh.m[a.id] != nil {
		return false
	}
	a.running = true
	sh.m[a.id] = a
	r.busy.add()
	return true
}

// release lets a reserved actor go on by itself.
func (r *registry) release(a *actor) {
	sh := r.shard(a.id)
	sh.Lock()
	defer sh.Unlock()
	if len(a.inbox) > 0 {
		go a.loop()
		return
	}
	r.rest(sh, a)
}

// close refuses messages from now on. Actors finish the mail they have.
func (r *registry) close() {
	for i := range r.shards {
		sh := &r.shards[i]
		sh.Lock()
		sh.closed = true
		sh.Unlock()
	}
}

// size is how many runs have an actor.
func (r *registry) size() int {
	n := 0
	for i := range r.shards {
		sh := &r.shards[i]
		sh.Lock()
		n += len(sh.m)
		sh.Unlock()
	}
	return n
}
