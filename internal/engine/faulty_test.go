package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
)

// errDisk is what a store says whose disk is full.
var errDisk = errors.New("database or disk is full")

// fault decides about one append. before ends it without writing; after says
// that it failed although it has been written.
type fault struct{ before, after error }

// faulty is a store that fails when told to, and counts what is asked of it.
type faulty struct {
	store.Store

	gate   sync.RWMutex // held for reading by every append
	mu     sync.Mutex
	inject func(*store.Append) fault                     // nil for none
	loads  func(ids.Run) error                           // nil for none
	beat   error                                         // of heartbeats and claims
	claims func(store.EffectClaim) (store.Effect, error) // of effects; nil, or a zero effect, for the store itself
	ends   func(store.Effect) error
	after  func() // a claim of an effect

	appends, appendBytes, appendEvents atomic.Int64
	loaded, loadedEvents, read         atomic.Int64
	claimed                            atomic.Int64
}

func (f *faulty) Runs() store.Runs           { return faultyRuns{f.Store.Runs(), f} }
func (f *faulty) Ownership() store.Ownership { return faultyOwner{f.Store.Ownership(), f} }

func (f *faulty) Effects() store.Effects { return faultyEffects{f.Store.Effects(), f} }

// failingEffects sets what becomes of claims and ends of effects from now on.
func (f *faulty) failingEffects(claims func(store.EffectClaim) (store.Effect, error), ends func(store.Effect) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.claims, f.ends = claims, ends
}

type faultyEffects struct {
	store.Effects
	f *faulty
}

func (x faultyEffects) Claim(ctx context.Context, k store.EffectClaim) (store.Effect, bool, error) {
	x.f.mu.Lock()
	claims, after := x.f.claims, x.f.after
	x.f.mu.Unlock()
	if after != nil {
		defer after()
	}
	if claims != nil {
		if e, err := claims(k); err != nil || e.State != "" {
			return e, false, err
		}
	}
	return x.Effects.Claim(ctx, k)
}

func (x faultyEffects) Finish(ctx context.Context, e store.Effect) error {
	x.f.mu.Lock()
	ends := x.f.ends
	x.f.mu.Unlock()
	if ends != nil {
		if err := ends(e); err != nil {
			return err
		}
	}
	return x.Effects.Finish(ctx, e)
}

// failing sets what becomes of appends from now on.
func (f *faulty) failing(inject func(*store.Append) fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inject = inject
}

// failingLoads sets what becomes of loads from now on.
func (f *faulty) failingLoads(loads func(ids.Run) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.loads = loads
}

// lost makes the store declare every instance lost.
func (f *faulty) lost() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.beat = store.ErrNotFound
}

type faultyRuns struct {
	store.Runs
	f *faulty
}

func (r faultyRuns) Append(ctx context.Context, a *store.Append) error {
	r.f.gate.RLock()
	defer r.f.gate.RUnlock()
	r.f.mu.Lock()
	inject := r.f.inject
	r.f.mu.Unlock()
	var x fault
	if inject != nil {
		x = inject(a)
	}
	if x.before != nil {
		return x.before
	}
	r.f.count(a)
	if err := r.Runs.Append(ctx, a); err != nil {
		return err
	}
	return x.after
}

func (f *faulty) count(a *store.Append) {
	f.appends.Add(1)
	f.appendEvents.Add(int64(len(a.Events)))
	for i := range a.Events {
		f.appendBytes.Add(int64(len(a.Events[i].Doc()) + len(a.Events[i].Sealed)))
	}
	if a.Checkpoint != nil {
		f.appendBytes.Add(int64(len(a.Checkpoint.State)))
	}
	for _, also := range a.Also {
		f.count(also)
	}
}

func (r faultyRuns) Load(ctx context.Context, id ids.Run) (store.Loaded, error) {
	r.f.mu.Lock()
	loads := r.f.loads
	r.f.mu.Unlock()
	if loads != nil {
		if err := loads(id); err != nil {
			return store.Loaded{}, err
		}
	}
	l, err := r.Runs.Load(ctx, id)
	r.f.loaded.Add(1)
	r.f.loadedEvents.Add(int64(len(l.Tail)))
	return l, err
}

func (r faultyRuns) Events(ctx context.Context, id ids.Run, after int64, limit, max int) (store.Run, []event.Event, error) {
	row, events, err := r.Runs.Events(ctx, id, after, limit, max)
	r.f.read.Add(int64(len(events)))
	return row, events, err
}

type faultyOwner struct {
	store.Ownership
	f *faulty
}

func (o faultyOwner) Heartbeat(ctx context.Context, instance string, ttl time.Duration) error {
	if err := o.down(); err != nil {
		return err
	}
	return o.Ownership.Heartbeat(ctx, instance, ttl)
}

func (o faultyOwner) Claim(ctx context.Context, instance string, now time.Time, limit int, skip ...string) ([]store.Run, error) {
	if err := o.down(); err != nil {
		return nil, err
	}
	runs, err := o.Ownership.Claim(ctx, instance, now, limit, skip...)
	o.f.claimed.Add(int64(len(runs)))
	return runs, err
}

func (o faultyOwner) down() error {
	o.f.mu.Lock()
	defer o.f.mu.Unlock()
	return o.f.beat
}

// hold keeps every append waiting while do is at work, so that what do sends
// meets in the mailboxes.
func (f *faulty) hold(do func()) {
	f.gate.Lock()
	defer f.gate.Unlock()
	do()
}
