package storetest

import (
	"context"
	"time"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
)

// restart: everything is there again, and the runs of the former process belong
// to nobody who lives.
func restart(e *env) {
	e.register("host-1")
	running := e.create(e.id("acme"), owned("host-1"))
	running.grow(notes(4)...)
	asks := running.interrupt(1)
	a := running.next(note("asks"))
	a.Opened = []store.Interrupt{asks}
	e.ok(running.write(a))
	parked := e.create(e.id("acme"), asleep(e.now.Add(time.Hour)))
	done := e.create(e.id("acme"), func(a *store.Append) { a.Row.Status, a.Row.CompletedAt = "completed", e.now })
	for range 3 {
		e.reopen()
	}
	// As a host does after a crash, when nobody has deregistered.
	e.ok(e.s.Ownership().Register(e.ctx, "host-2"))
	e.lose("host-1")
	same(e, "inbox", e.inbox("acme"), []store.Interrupt{asks})
	same(e, "list", runIDs(e.listed(store.ListQuery{Tenant: "acme", Limit: 2})),
		[]ids.Run{done.row.ID, parked.row.ID, running.row.ID})
	e.claimed("host-2", e.claim("host-2", 10), running)
	running.grow(note("recovered"))
	for _, l := range []*log{running, parked, done} {
		l.check()
	}
}

// every calls each method once, with a context, and returns what they fail with.
func (e *env) every(ctx context.Context, l *log) map[string]error {
	errs := map[string]error{}
	keep := func(name string, err error) { errs[name] = err }
	r, o, w, k := e.s.Runs(), e.s.Ownership(), e.s.Workflows(), e.s.Keys()
	id := l.row.ID
	var err error

	keep("Ping", e.s.Ping(ctx))
	keep("Append", r.Append(ctx, l.next(note("late"))))
	_, err = r.Get(ctx, id)
	keep("Get", err)
	_, err = r.Load(ctx, id)
	keep("Load", err)
	_, _, err = r.Events(ctx, id, -1, 10, 1<<20)
	keep("Events", err)
	_, err = r.List(ctx, store.ListQuery{Tenant: "acme", Limit: 10})
	keep("List", err)
	_, err = r.Children(ctx, id)
	keep("Children", err)
	_, err = r.OpenInterrupts(ctx, "acme", "", 10)
	keep("OpenInterrupts", err)
	keep("Settle", r.Settle(ctx, []store.Settled{{Child: id, Seq: l.row.Seq}}))

	keep("Register", o.Register(ctx, "host-1"))
	keep("Heartbeat", o.Heartbeat(ctx, "host-1", ttl))
	_, err = o.Claim(ctx, "host-1", e.now, 10)
	keep("Claim", err)
	_, err = o.NextWake(ctx)
	keep("NextWake", err)
	_, err = o.Unsettled(ctx, 10)
	keep("Unsettled", err)
	e.everyRecord(ctx, keep)
	e.everyEffect(ctx, l.row.ID, keep)
	e.everyAudit(ctx, keep)
	e.everyRetention(ctx, id, keep)
	keep("Deregister", o.Deregister(ctx, "host-1"))

	_, err = w.Put(ctx, e.workflow("acme", "late", "1"))
	keep("Put", err)
	_, err = w.Get(ctx, "acme", "greet", "")
	keep("Workflows.Get", err)
	_, err = w.List(ctx, "acme", "", 10)
	keep("Workflows.List", err)
	_, err = w.Versions(ctx, "acme", "greet")
	keep("Versions", err)
	keep("Delete", w.Delete(ctx, "acme", "greet"))

	keep("Add", k.Add(ctx, store.Key{ID: "late", Hash: []byte("late"), Tenant: "acme", CreatedAt: e.now}))
	_, err = k.ByHash(ctx, []byte("hash"))
	keep("ByHash", err)
	_, err = k.Count(ctx)
	keep("Count", err)
	keep("Secrets.Add", e.s.Secrets().Add(ctx, store.Secret{Purpose: "late", ID: "late", Value: []byte("late"), CreatedAt: e.now}))
	_, err = e.s.Secrets().List(ctx, "late")
	keep("Secrets.List", err)
	keep("Secrets.Drop", e.s.Secrets().Drop(ctx, "late", "late"))
	e.everyCredential(ctx, keep)
	return errs
}

// prepared is a store in which every method has something to find.
func (e *env) prepared() *log {
	e.Helper()
	e.put(e.workflow("acme", "greet", "1"))
	e.ok(e.s.Keys().Add(e.ctx, store.Key{ID: "key", Hash: []byte("hash"), Tenant: "acme", CreatedAt: e.now}))
	// Once before it counts: a backend may remember rows, but not beyond Close.
	e.getWorkflow("acme", "greet", "")
	_, err := e.s.Keys().ByHash(e.ctx, []byte("hash"))
	e.ok(err)
	return e.create(e.id("acme"), func(a *store.Append) { a.Row.Notify = true })
}

func closedStore(e *env) {
	l := e.prepared()
	e.ok(e.s.Close())
	for name, err := range e.every(e.ctx, l) {
		e.Log(name)
		e.fails(err, store.ErrClosed)
	}
	e.ok(e.s.Close())
	e.s = e.open(e.T, e.dir)
	l.check()
}

// endedContext: a call whose context is over does nothing.
func endedContext(e *env) {
	l := e.prepared()
	e.register("host-1")
	ctx, cancel := context.WithCancel(e.ctx)
	cancel()
	for name, err := range e.every(ctx, l) {
		e.Log(name)
		e.fails(err, context.Canceled)
	}
	l.check()
	e.ok(e.s.Ownership().Heartbeat(e.ctx, "host-1", ttl))
	e.getWorkflow("acme", "greet", "")
	_, err := e.s.Workflows().Get(e.ctx, "acme", "late", "")
	e.fails(err, store.ErrNotFound)
	n, err := e.s.Keys().Count(e.ctx)
	e.ok(err)
	same(e, "keys", n, 1)
	for name, err := range e.every(e.ctx, l) {
		e.Log(name)
		e.ok(err)
	}
}
