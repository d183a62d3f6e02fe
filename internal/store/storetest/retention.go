package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
)

// over makes a run that ends with its first step.
func (e *env) over(tenant string, change ...func(a *store.Append)) *log {
	e.Helper()
	return e.create(e.id(tenant), func(a *store.Append) {
		a.Row.Status, a.Row.CompletedAt = "completed", e.tick()
		for _, f := range change {
			f(a)
		}
	})
}

func (e *env) expire(logs ...*log) []ids.Run {
	e.Helper()
	rows := make([]store.Run, len(logs))
	for i, l := range logs {
		rows[i] = l.row
	}
	gone, err := e.s.Retention().Expire(e.ctx, e.now, rows)
	e.ok(err)
	return gone
}

// cleared clears until nothing is left, and counts the transactions.
func (e *env) cleared(limit, maxBytes int) int {
	e.Helper()
	for n := 1; ; n++ {
		more, err := e.s.Retention().Clear(e.ctx, limit, maxBytes)
		e.ok(err)
		if !more {
			return n
		}
		if n > 10_000 {
			e.Fatal("clearing does not come to an end")
		}
	}
}

// gone checks that every way to name a run says that it has expired.
func (e *env) gone(l *log, at time.Time) {
	e.Helper()
	r, id := e.s.Runs(), l.row.ID
	_, e1 := r.Get(e.ctx, id)
	_, e2 := r.Load(e.ctx, id)
	_, _, e3 := r.Events(e.ctx, id, -1, 10, 1<<20)
	e4 := r.Append(e.ctx, l.next(note("late")))
	_, e5 := e.s.Retention().Needed(e.ctx, id)
	for i, err := range []error{e1, e2, e3, e4, e5} {
		var x store.Expired
		if !errors.As(err, &x) || x.Run != id || !x.At.Equal(at) {
			e.Fatalf("way %d: %v, want expired at %v", i, err, at)
		}
		e.fails(err, store.ErrNotFound)
	}
	a := l.next(note("again"))
	a.Create, a.Row.Seq = true, 0
	a.Events[0].Seq = 0
	e.fails(r.Append(e.ctx, a), store.ErrExists)
	e.fails(r.Stage(e.ctx, id, at, a.Events), store.ErrExists)
}

func expiredRuns(e *env) {
	keep, other := e.over("acme"), e.over("other")
	l := e.over("acme", func(a *store.Append) { a.Row.WorkflowID = "bill" })
	l.grow(notes(9)...)
	a := l.next(note("checked"))
	a.Opened, a.Checkpoint = []store.Interrupt{l.interrupt(1)}, &store.Checkpoint{Seq: 2, State: []byte("s")}
	e.ok(l.write(a))
	at := e.tick()
	same(e, "gone", e.expire(l), []ids.Run{l.row.ID})
	for range 2 { // the second time as another process
		e.gone(l, at)
		same(e, "list", runIDs(e.listed(store.ListQuery{Tenant: "acme", Limit: 3})), []ids.Run{keep.row.ID})
		same(e, "of the workflow", len(e.listed(store.ListQuery{Tenant: "acme", Limit: 3, WorkflowID: "bill"})), 0)
		e.noInterrupts("acme")
		e.reopen()
	}
	same(e, "gone twice", len(e.expire(l)), 0)
	e.cleared(100, 1<<20)
	e.gone(l, at)
	_, err := e.s.Runs().OpenInterrupts(e.ctx, "acme", a.Opened[0].ID, 3) // its place is gone, too
	e.fails(err, store.ErrNotFound)
	for _, l := range []*log{keep, other} {
		l.check()
	}
	// The same opaque segment under another tenant is another run.
	_, err = e.s.Runs().Get(e.ctx, ids.Run{Tenant: "other", Opaque: l.row.ID.Opaque})
	var x store.Expired
	if e.fails(err, store.ErrNotFound); errors.As(err, &x) {
		e.Fatal("another tenant's run has expired")
	}
}

// notExpired is what stays, whatever is asked for.
func notExpired(e *env) {
	running := e.create(e.id("acme"))
	told := func(l *log) func(a *store.Append) {
		return func(a *store.Append) { a.Row.Parent, a.Row.ParentNode = l.row.ID, "spawn" }
	}
	ofRunning := e.over("acme", told(running))
	withRunning := e.over("acme")
	e.create(e.id("acme"), told(withRunning))
	untold := e.over("acme")
	news := e.over("acme", told(untold), func(a *store.Append) { a.Row.Notify = true })
	held := e.over("acme", func(a *store.Append) { a.Row.Instance = "host-1" })
	undoing := e.over("acme", func(a *store.Append) { a.Row.Compensation = "running" })
	hook := e.subscribe("acme")
	sending := e.over("acme", func(a *store.Append) {
		a.Queued = []store.Queued{{Target: hook.ID, First: 0, Last: 0, At: e.now}}
	})
	moved := e.over("acme")
	before := *moved
	moved.grow(note("more"))
	owned := e.over("acme")
	early := *owned
	c := owned.next()
	c.Row.Epoch++
	e.ok(owned.write(c))
	all := []*log{running, ofRunning, withRunning, untold, news, held, undoing, sending, &before, &early, {e: e, row: e.newRow(e.id("acme"))}}
	same(e, "gone", len(e.expire(all...)), 0)
	for i, l := range []*log{ofRunning, withRunning, untold, news, undoing, sending} {
		is, err := e.s.Retention().Needed(e.ctx, l.row.ID)
		e.ok(err)
		same(e, fmt.Sprintf("needed %d", i), is, true)
	}
	for _, l := range []*log{running, ofRunning, withRunning, untold, news, held, undoing, sending, moved, owned} {
		l.check()
	}
	// Each may go as soon as nothing holds it.
	end := running.next(note("over"))
	end.Row.Status, end.Row.CompletedAt = "failed", e.tick()
	e.ok(running.write(end))
	e.ok(e.s.Runs().Settle(e.ctx, []store.Settled{{Child: news.row.ID, Seq: news.row.Seq}}))
	same(e, "gone", e.expire(running, ofRunning, untold, news, moved, owned), []ids.Run{
		running.row.ID, ofRunning.row.ID, untold.row.ID, news.row.ID, moved.row.ID, owned.row.ID})
}

// endedOrder compares pages and cuts with what plain code says.
func endedOrder(e *env) {
	var want []store.Run
	for i := range 40 {
		l := e.create(e.id([]string{"acme", "acme", "other"}[i%3]), func(a *store.Append) {
			if i%4 == 0 {
				return // not over
			}
			a.Row.Status = []string{"completed", "failed", "cancelled"}[i%3]
			// Some end in the same millisecond, and not in the order of their ids.
			a.Row.CompletedAt = epoch0.Add(time.Duration(i*7%20) * time.Hour)
		})
		if i%4 != 0 && i%3 != 2 {
			want = append(want, l.row)
		}
	}
	ending := func(r store.Run) store.Ending { return store.Ending{At: r.CompletedAt, ID: r.ID.Opaque} }
	slices.SortFunc(want, func(a, b store.Run) int {
		if ending(a).Before(ending(b)) {
			return -1
		}
		return 1
	})
	r := e.s.Retention()
	for _, limit := range []int{1, 4, 100} {
		for cut := range len(want) {
			var got []store.Run
			q := store.EndedQuery{Tenant: "acme", Until: ending(want[cut]), Limit: limit}
			for {
				page, err := r.Ended(e.ctx, q)
				e.ok(err)
				got = append(got, page...)
				if len(page) < limit {
					break
				}
				q.After = ending(page[len(page)-1])
			}
			same(e, "ended", runIDs(got), runIDs(want[:cut+1]))
		}
	}
	for keep := range len(want) + 2 {
		got, err := r.EndOf(e.ctx, "acme", keep)
		e.ok(err)
		var end store.Ending
		if keep < len(want) {
			end = ending(want[len(want)-1-keep])
		}
		same(e, fmt.Sprintf("end of %d", keep), got, end)
	}
	none, err := r.Ended(e.ctx, store.EndedQuery{Tenant: "acme", Limit: 5})
	e.ok(err)
	same(e, "until nothing", len(none), 0)
}

func tenantNames(e *env) {
	want := []string{"A", "a", "a-b", "ab", "b"}
	for _, i := range []int{3, 0, 4, 2, 1} {
		e.create(e.id(want[i]))
		e.over(want[i])
	}
	for _, limit := range []int{1, 2, 5, 9} {
		var got []string
		for after := ""; ; after = got[len(got)-1] {
			page, err := e.s.Retention().Tenants(e.ctx, after, limit)
			e.ok(err)
			got = append(got, page...)
			if len(page) < limit {
				break
			}
		}
		same(e, "tenants", got, want)
	}
}

// clearInPieces: a long log goes in bounded transactions, also across a restart,
// and nobody sees half of it.
func clearInPieces(e *env) {
	l := e.over("acme")
	for range 30 {
		l.grow(note("one"), note("two"))
	}
	e.tick()
	same(e, "gone", len(e.expire(l)), 1)
	for range 3 {
		more, err := e.s.Retention().Clear(e.ctx, 5, 1<<20)
		e.ok(err)
		same(e, "more", more, true)
		e.gone(l, e.now)
		e.reopen()
	}
	n := e.cleared(5, 1<<20)
	if n < 3 {
		e.Fatalf("the rest was cleared in %d pieces", n)
	}
	// By size: at least one row a time, and no more than that.
	big := e.over("acme")
	for range 6 {
		big.grow(note("x"))
	}
	same(e, "gone", len(e.expire(big)), 1)
	if n := e.cleared(100, 1); n < 7 {
		e.Fatalf("cleared in %d pieces", n)
	}
	more, err := e.s.Retention().Clear(e.ctx, 5, 1<<20)
	e.ok(err)
	same(e, "more", more, false)
}

func forgetTombstones(e *env) {
	var logs []*log
	var at []time.Time
	for range 6 {
		l := e.over("acme")
		l.grow(note("x"))
		at = append(at, e.tick())
		e.expire(l)
		logs = append(logs, l)
	}
	r := e.s.Retention()
	n, err := r.Forget(e.ctx, e.now, 10)
	e.ok(err)
	same(e, "forgotten before they are cleared", n, 0)
	e.cleared(100, 1<<20)
	n, err = r.Forget(e.ctx, at[3], 3)
	e.ok(err)
	same(e, "forgotten", n, 3)
	n, err = r.Forget(e.ctx, at[3], 3)
	e.ok(err)
	same(e, "forgotten", n, 1)
	for i, l := range logs {
		if i >= 4 {
			e.gone(l, at[i])
			continue
		}
		_, err := e.s.Runs().Get(e.ctx, l.row.ID)
		if x := (store.Expired{}); errors.As(err, &x) {
			e.Fatalf("run %d is remembered", i)
		}
		e.fails(err, store.ErrNotFound)
	}
}

func retentionClock(e *env) {
	r := e.s.Retention()
	read := func() store.Clock {
		e.Helper()
		c, err := r.Clock(e.ctx)
		e.ok(err)
		return c
	}
	same(e, "clock", read(), store.Clock{})
	one := store.Clock{Trusted: epoch0}
	two := store.Clock{Trusted: epoch0, Since: epoch0.Add(time.Hour)}
	e.fails(r.SetClock(e.ctx, one, two), store.ErrStale)
	e.ok(r.SetClock(e.ctx, store.Clock{}, one))
	e.ok(r.SetClock(e.ctx, one, two))
	e.fails(r.SetClock(e.ctx, one, one), store.ErrStale)
	e.reopen()
	r = e.s.Retention()
	same(e, "clock", read(), two)
	e.ok(r.SetClock(e.ctx, two, one))
	same(e, "clock", read(), one)
}

// expireRace: of rivals each run goes once, whoever appends meanwhile.
func expireRace(e *env) {
	var logs []*log
	for range 40 {
		logs = append(logs, e.over("acme"))
	}
	var mu sync.Mutex
	count := map[ids.Run]int{}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			rows := make([]store.Run, len(logs))
			for i, l := range logs {
				rows[i] = l.row
			}
			gone, err := e.s.Retention().Expire(e.ctx, e.now, rows)
			if err != nil {
				e.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, id := range gone {
				count[id]++
			}
		})
	}
	appended := make([]error, len(logs))
	for i := 0; i < len(logs); i += 2 {
		wg.Go(func() {
			a := logs[i].next(note("late"))
			appended[i] = e.s.Runs().Append(e.ctx, a)
		})
	}
	wg.Wait()
	for i, l := range logs {
		wrote := i%2 == 0 && appended[i] == nil
		if n := count[l.row.ID]; n > 1 || wrote && n != 0 || !wrote && n != 1 {
			e.Errorf("run %d: expired %d times, append %v", i, n, appended[i])
		}
	}
}

func reclaim(e *env) {
	e.expire(e.over("acme"))
	e.cleared(100, 1<<20)
	for n := 0; ; n++ {
		more, err := e.s.Retention().Reclaim(e.ctx)
		e.ok(err)
		if !more {
			return
		}
		if n > 10_000 {
			e.Fatal("giving room back does not come to an end")
		}
	}
}

// everyRetention calls each method once, as every does.
func (e *env) everyRetention(ctx context.Context, id ids.Run, keep func(string, error)) {
	r := e.s.Retention()
	_, err := r.Tenants(ctx, "", 10)
	keep("Tenants", err)
	_, err = r.Ended(ctx, store.EndedQuery{Tenant: "acme", Until: store.Ending{At: e.now}, Limit: 10})
	keep("Ended", err)
	_, err = r.EndOf(ctx, "acme", 1)
	keep("EndOf", err)
	_, err = r.Needed(ctx, id)
	keep("Needed", err)
	_, err = r.Expire(ctx, e.now, nil)
	keep("Expire", err)
	_, err = r.Clear(ctx, 10, 1<<20)
	keep("Clear", err)
	_, err = r.Forget(ctx, e.now, 10)
	keep("Retention.Forget", err)
	_, err = r.Reclaim(ctx)
	keep("Reclaim", err)
	c, err := r.Clock(ctx)
	keep("Clock", err)
	keep("SetClock", r.SetClock(ctx, c, store.Clock{Trusted: e.now}))
}
