package storetest

import (
	"slices"
	"time"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
)

// replicas is what a store offers whose database several processes share. One that
// belongs to a process has nothing of it to test.
func (e *env) replicas() store.Replicas {
	e.Helper()
	r, ok := e.s.(store.Replicas)
	if !ok {
		e.Skip("the database belongs to one process")
	}
	return r
}

func (e *env) told(instance string, limit int) []ids.Run {
	e.Helper()
	out, err := e.replicas().Told(e.ctx, instance, limit)
	e.ok(err)
	return out
}

// told: a step by somebody else is told to whom it names, with the step or not at all,
// once, and to nobody else.
func told(e *env) {
	e.replicas()
	e.register("host-1")
	e.register("host-2")
	var all []ids.Run
	var logs []*log
	for range 5 {
		l := e.create(e.id("acme"), owned("host-1"))
		a := l.next(note("a guest's"))
		a.Tell = "host-1"
		e.ok(l.write(a))
		// Again, before anybody has looked: it is one run to look at.
		a = l.next()
		a.Tell = "host-1"
		e.ok(l.write(a))
		l.check() // the owner and the epoch are what they were
		all, logs = append(all, l.row.ID), append(logs, l)
	}
	// A step that is refused tells nobody.
	stale := logs[0].next(note("late"))
	stale.ExpectedSeq, stale.Tell = stale.ExpectedSeq-1, "host-2"
	for i := range stale.Events {
		stale.Events[i].Seq--
	}
	stale.Row.Seq--
	e.fails(e.s.Runs().Append(e.ctx, stale), store.ErrStale)
	same(e, "told to another", len(e.told("host-2", 10)), 0)
	same(e, "told to nobody", len(e.told("host-3", 10)), 0)
	got := e.told("host-1", 3)
	same(e, "told at first", len(got), 3)
	got = append(got, e.told("host-1", 0)...)
	slices.SortFunc(got, func(a, b ids.Run) int { return slices.Compare([]byte(a.Opaque), []byte(b.Opaque)) })
	same(e, "told in all", got, all)
	same(e, "told twice", len(e.told("host-1", 10)), 0)

	// What is told to who is gone is told to nobody who comes later under another name.
	a := logs[0].next(note("too late"))
	a.Tell = "host-1"
	e.ok(logs[0].write(a))
	e.lose("host-1")
	e.claimed("host-2", e.claim("host-2", 10), logs...)
	same(e, "told to who is gone", len(e.told("host-1", 10)), 0)
}

// endsOfLogs: where logs end, of runs that are there.
func endsOfLogs(e *env) {
	r := e.replicas()
	got, err := r.Ends(e.ctx, nil)
	e.ok(err)
	same(e, "ends of nothing", len(got), 0)
	want := map[ids.Run]int64{}
	asked := []ids.Run{e.id("acme"), {Tenant: "other", Opaque: e.id("acme").Opaque}}
	for n := range 4 {
		l := e.create(e.id([]string{"acme", "other"}[n%2]))
		if n > 0 {
			l.grow(notes(n)...)
		}
		want[l.row.ID] = l.row.Seq
		asked = append(asked, l.row.ID, l.row.ID) // twice does no harm
		// The same id of another tenant is another run.
		asked = append(asked, ids.Run{Tenant: "third", Opaque: l.row.ID.Opaque})
	}
	got, err = r.Ends(e.ctx, asked)
	e.ok(err)
	same(e, "ends", got, want)
}

// databaseTime goes on, for everybody.
func databaseTime(e *env) {
	r := e.replicas()
	first, err := r.Now(e.ctx)
	e.ok(err)
	again, err := r.Now(e.ctx)
	e.ok(err)
	if first.IsZero() || again.Before(first) {
		e.Fatalf("%v, and then %v", first, again)
	}
}

// instanceLife: who beats lives; whose lease is over is lost as soon as somebody acts
// upon it, and from then on is nobody, whatever it believes; its runs are had by others.
func instanceLife(e *env) {
	e.replicas()
	o := e.s.Ownership()
	e.register("host-1")
	e.register("host-2")
	mine := e.create(e.id("acme"), owned("host-1"))
	other := e.create(e.id("acme"), owned("host-2"))
	same(e, "runs of who lives", len(e.claim("host-1", 10)), 0)
	e.ok(o.Heartbeat(e.ctx, "host-2", time.Millisecond))
	var rows []store.Run
	for range 10_000 { // the database's time goes on by itself
		if rows = e.claim("host-1", 10); len(rows) > 0 {
			break
		}
	}
	e.claimed("host-1", rows, other)
	mine.check()
	e.fails(o.Heartbeat(e.ctx, "host-2", ttl), store.ErrNotFound)
	_, err := o.Claim(e.ctx, "host-2", e.now, 10)
	e.fails(err, store.ErrNotFound)
	former := *other
	former.row.Epoch--
	e.fails(e.s.Runs().Append(e.ctx, former.next(note("zombie"))), store.ErrStale)
	// It begins anew under another name, and has nothing.
	e.register("host-3")
	same(e, "runs of who begins anew", len(e.claim("host-3", 10)), 0)
	e.ok(o.Heartbeat(e.ctx, "host-1", ttl))
}
