package storetest

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
)

// ttl is long: no test waits for an instance to be lost by time.
const ttl = time.Hour

// register makes an instance known and alive.
func (e *env) register(instance string) {
	e.Helper()
	e.ok(e.s.Ownership().Register(e.ctx, instance))
	e.ok(e.s.Ownership().Heartbeat(e.ctx, instance, ttl))
}

// lose makes an instance lost: in a backend whose instances share a database,
// only a clean leave can be had without waiting.
func (e *env) lose(instance string) {
	e.Helper()
	e.ok(e.s.Ownership().Deregister(e.ctx, instance))
}

func (e *env) claim(instance string, limit int) []store.Run {
	e.Helper()
	rows, err := e.s.Ownership().Claim(e.ctx, instance, e.now, limit)
	e.ok(err)
	return rows
}

// claimed checks that rows are logs, each taken over by instance at the next
// epoch and otherwise unchanged, and lets the logs know.
func (e *env) claimed(instance string, rows []store.Run, logs ...*log) {
	e.Helper()
	same(e, "claimed runs", len(rows), len(logs))
	for _, l := range logs {
		i := slices.IndexFunc(rows, func(r store.Run) bool { return r.ID == l.row.ID })
		if i < 0 {
			e.Fatalf("run %s was not claimed", l.row.ID)
		}
		l.row.Instance, l.row.Epoch = instance, l.row.Epoch+1
		e.sameRun(rows[i], l.row)
		l.check()
	}
}

// owned changes the row of a run that is being created.
func owned(instance string) func(a *store.Append) {
	return func(a *store.Append) { a.Row.Instance, a.Row.Epoch = instance, 1 }
}

// asleep parks a run that is being created until at.
func asleep(at time.Time) func(a *store.Append) {
	return func(a *store.Append) { a.Row.Status, a.Row.WakeAt = "waiting-external", at }
}

func instances(e *env) {
	o := e.s.Ownership()
	e.fails(o.Heartbeat(e.ctx, "host-1", ttl), store.ErrNotFound)
	_, err := o.Claim(e.ctx, "host-1", e.now, 10)
	e.fails(err, store.ErrNotFound)
	e.register("host-1")
	e.ok(o.Heartbeat(e.ctx, "host-1", ttl))
	e.ok(o.Deregister(e.ctx, "host-1"))
	e.fails(o.Heartbeat(e.ctx, "host-1", ttl), store.ErrNotFound)
	_, err = o.Claim(e.ctx, "host-1", e.now, 10)
	e.fails(err, store.ErrNotFound)
	e.ok(o.Deregister(e.ctx, "host-1"))
	e.ok(o.Deregister(e.ctx, "nobody"))
	e.register("host-1") // the name was given up: it may come back
}

func claimLostRuns(e *env) {
	e.register("m-old")
	lost := e.create(e.id("acme"), owned("m-old"))
	stranger := e.create(e.id("other"), owned("a-unknown"), asleep(e.now.Add(time.Hour)))
	parked := e.create(e.id("acme"))
	for _, status := range []string{"completed", "failed", "cancelled"} {
		e.create(e.id("acme"), owned("m-old"), func(a *store.Append) {
			a.Row.Status, a.Row.CompletedAt = status, e.now
		})
	}
	e.lose("m-old")
	e.register("n-new")
	mine := e.create(e.id("acme"), owned("n-new"))
	e.claimed("n-new", e.claim("n-new", 10), lost, stranger)
	e.claimed("n-new", e.claim("n-new", 10))
	mine.check()
	parked.check()

	// The former owner cannot write any more, not even the row.
	former := *lost
	former.row.Epoch--
	e.fails(e.s.Runs().Append(e.ctx, former.next(note("zombie"))), store.ErrStale)
	e.fails(e.s.Runs().Append(e.ctx, former.next()), store.ErrStale)
	lost.grow(note("recovered"))
	lost.check()
}

func claimDueRuns(e *env) {
	e.register("host-1")
	at := e.now.Add(time.Minute)
	early := e.create(e.id("acme"), asleep(at.Add(-time.Second)))
	exact := e.create(e.id("other"), asleep(at))
	late := e.create(e.id("acme"), asleep(at.Add(time.Millisecond)))
	mine := e.create(e.id("acme"), asleep(at), owned("host-1"))
	e.create(e.id("acme"), asleep(at), func(a *store.Append) { a.Row.Status = "completed" })
	e.create(e.id("acme"))

	e.claimed("host-1", e.claim("host-1", 10))
	e.now = at
	e.claimed("host-1", e.claim("host-1", 10), early, exact)
	e.claimed("host-1", e.claim("host-1", 10))
	e.now = at.Add(time.Hour)
	e.claimed("host-1", e.claim("host-1", 10), late)
	mine.check()

	// Put to sleep again, it is found again.
	a := early.next(note("sleeps"))
	a.Row.Instance, a.Row.WakeAt = "", e.now.Add(time.Second)
	e.ok(early.write(a))
	e.claimed("host-1", e.claim("host-1", 10))
	e.now = e.now.Add(time.Second)
	e.claimed("host-1", e.claim("host-1", 10), early)
}

func claimLimit(e *env) {
	e.register("host-1")
	var logs []*log
	for i := range 10 {
		change := asleep(e.now)
		if i%2 == 0 {
			change = owned("long-gone")
		}
		logs = append(logs, e.create(e.id("acme"), change))
	}
	byID := map[ids.Run]*log{}
	for _, l := range logs {
		byID[l.row.ID] = l
	}
	e.tick()
	for _, want := range []int{3, 3, 3, 1, 0} {
		rows := e.claim("host-1", 3)
		same(e, "claimed runs", len(rows), want)
		for _, r := range rows {
			l := byID[r.ID]
			if l == nil {
				e.Fatalf("run %s was claimed twice", r.ID)
			}
			delete(byID, r.ID)
			e.claimed("host-1", []store.Run{r}, l)
		}
	}
}

// claimRace: however many claim at once, each run goes to one of them.
func claimRace(e *env) {
	const n = 60
	for i := range n {
		change := asleep(e.now)
		if i%2 == 0 {
			change = owned("long-gone")
		}
		e.create(e.id("acme"), change)
	}
	e.tick()
	// Where the database belongs to one process, the second instance declares
	// the first one lost, which then gets nothing.
	e.register("host-1")
	e.register("host-2")
	var mu sync.Mutex
	got := map[ids.Run]store.Run{}
	var wg sync.WaitGroup
	for i := range 8 {
		instance := []string{"host-1", "host-2"}[i%2]
		wg.Go(func() {
			for {
				rows, err := e.s.Ownership().Claim(e.ctx, instance, e.now, 4)
				if errors.Is(err, store.ErrNotFound) && instance == "host-1" {
					return
				}
				if err != nil {
					e.Errorf("claim: %v", err)
				}
				if len(rows) == 0 {
					return
				}
				mu.Lock()
				for _, r := range rows {
					if _, twice := got[r.ID]; twice || r.Instance != instance {
						e.Errorf("run %s went to %s and %s", r.ID, got[r.ID].Instance, r.Instance)
					}
					got[r.ID] = r
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	same(e, "claimed runs", len(got), n)
	for id, r := range got {
		e.sameRun(e.get(id), r)
	}
}

// deregister: who leaves gives up all of its runs, and they can be claimed.
func deregister(e *env) {
	e.register("host-1")
	running := e.create(e.id("acme"), owned("host-1"))
	sleeping := e.create(e.id("acme"), owned("host-1"), asleep(e.now.Add(time.Hour)))
	e.ok(e.s.Ownership().Deregister(e.ctx, "host-1"))
	e.register("host-2")
	rows := e.claim("host-2", 10)
	// Whether a run still shows the former owner's name is the backend's choice.
	e.claimed("host-2", rows, running, sleeping)
}

func nextWake(e *env) {
	want := func(at time.Time) {
		e.Helper()
		got, err := e.s.Ownership().NextWake(e.ctx)
		e.ok(err)
		if !got.Equal(at) {
			e.Fatalf("next wake is %v, want %v", got, at)
		}
	}
	want(time.Time{})
	e.register("host-1")
	at := e.now.Add(time.Hour)
	e.create(e.id("acme"))
	e.create(e.id("acme"), asleep(at.Add(-time.Minute)), owned("host-1"))
	e.create(e.id("acme"), asleep(at.Add(-time.Minute)), func(a *store.Append) { a.Row.Status = "cancelled" })
	want(time.Time{})
	late := e.create(e.id("acme"), asleep(at.Add(time.Minute)))
	want(at.Add(time.Minute))
	e.create(e.id("other"), asleep(at))
	want(at)
	e.reopen()
	want(at)
	e.register("host-2")
	e.now = at
	e.claim("host-2", 10)
	want(at.Add(time.Minute))
	a := late.next()
	a.Row.WakeAt = time.Time{}
	e.ok(late.write(a))
	want(time.Time{})
}
