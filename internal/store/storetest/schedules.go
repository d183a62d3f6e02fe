package storetest

import (
	"strconv"
	"sync"
	"time"

	"github.com/fermata-run/fermata/internal/store"
)

func (e *env) schedule(trigger, spec string, at time.Time) store.Schedule {
	return store.Schedule{Trigger: trigger, Spec: []byte(spec), Owner: []byte(`{"subject":"ann"}`), NextAt: at, DueAt: at}
}

// scheduled puts a version of a workflow with some schedules.
func (e *env) scheduled(tenant, id, version string, list ...store.Schedule) {
	e.Helper()
	w := e.workflow(tenant, id, version)
	w.Schedules = list
	_, err := e.s.Workflows().Put(e.ctx, w)
	e.ok(err)
}

func (e *env) schedules(tenant string) []store.Schedule {
	e.Helper()
	out, err := e.s.Schedules().List(e.ctx, tenant, "", "", 0)
	e.ok(err)
	return out
}

// schedulesOfVersions: which schedules there are follows from the latest version.
func schedulesOfVersions(e *env) {
	at := e.now.Add(time.Hour)
	a, b := e.schedule("a \x00 \u2028", "spec a", at), e.schedule("b", "spec b", at.Add(time.Second))
	e.scheduled("acme", "greet", "1", a, b)
	want := func(tenant, workflow, version string, revision int64, x store.Schedule) store.Schedule {
		x.Tenant, x.Workflow, x.Version, x.Revision = tenant, workflow, version, revision
		return x
	}
	first := []store.Schedule{want("acme", "greet", "1", 1, a), want("acme", "greet", "1", 1, b)}
	same(e, "schedules", e.schedules("acme"), first)

	// The same version again changes nothing, whoever it comes from and whenever.
	later, other := a, b
	later.NextAt, later.DueAt, later.Owner = at.Add(time.Minute), at.Add(time.Minute), []byte("{}")
	e.scheduled("acme", "greet", "1", later, other)
	same(e, "after the same version again", e.schedules("acme"), first)

	// One that has moved goes on where it is with another version's same words.
	moved := first[0]
	moved.NextAt, moved.DueAt, moved.LastAt, moved.LastRun = at.Add(2*time.Hour), at.Add(3*time.Hour), at, "r1"
	e.ok(e.s.Schedules().Move(e.ctx, moved))
	changed := e.schedule("b", "spec b, another", at.Add(5*time.Hour))
	c := e.schedule("c", "spec c", time.Time{})
	e.scheduled("acme", "greet", "2", later, changed, c)
	moved.Version, moved.Owner, moved.Revision = "2", later.Owner, 3
	two := []store.Schedule{moved, want("acme", "greet", "2", 2, changed), want("acme", "greet", "2", 1, c)}
	same(e, "of the second version", e.schedules("acme"), two)

	// A version that is refused leaves them alone.
	bad := e.workflow("acme", "greet", "2")
	bad.Digest = "sha256:other"
	_, err := e.s.Workflows().Put(e.ctx, bad)
	e.fails(err, store.ErrExists)
	same(e, "after a refusal", e.schedules("acme"), two)

	e.scheduled("acme", "bill", "1", a)
	e.scheduled("acme", "greet", "1")
	e.reopen()
	rest := []store.Schedule{want("acme", "bill", "1", 1, a)}
	same(e, "of a version without", e.schedules("acme"), rest)
	e.ok(e.s.Workflows().Delete(e.ctx, "acme", "bill"))
	same(e, "of a workflow that is hidden", len(e.schedules("acme")), 0)
	next, err := e.s.Schedules().NextDue(e.ctx)
	e.ok(err)
	same(e, "next", next, time.Time{})
	e.scheduled("acme", "bill", "1", a)
	same(e, "of one that is back", e.schedules("acme"), rest)
}

// schedulesAreClaimed once each, and moved by who claimed them.
func schedulesAreClaimed(e *env) {
	s := e.s.Schedules()
	e.scheduled("acme", "greet", "1", e.schedule("a", "x", e.now), e.schedule("b", "x", e.now.Add(time.Second)), e.schedule("never", "x", time.Time{}))
	next, err := s.NextDue(e.ctx)
	e.ok(err)
	same(e, "next", next, e.now)
	got, err := s.Claim(e.ctx, e.now.Add(-1*time.Millisecond), e.now.Add(time.Minute), 10)
	e.ok(err)
	same(e, "claimed too early", len(got), 0)
	until := e.now.Add(time.Minute)
	got, err = s.Claim(e.ctx, e.now, until, 10)
	e.ok(err)
	want := e.schedules("acme")[0]
	same(e, "claimed", got, []store.Schedule{want})
	same(e, "until and revision", []any{want.DueAt, want.Revision, want.NextAt}, []any{until, int64(2), e.now})
	got, err = s.Claim(e.ctx, e.now, until, 10)
	e.ok(err)
	same(e, "claimed again", len(got), 0)

	// Whoever lets the time pass has lost it to the next.
	again, err := s.Claim(e.ctx, until, until.Add(time.Minute), 1)
	e.ok(err)
	same(e, "the one due first", again[0].Trigger, "b")
	again, err = s.Claim(e.ctx, until, until.Add(time.Minute), 10)
	e.ok(err)
	same(e, "claimed after its time", []any{len(again), again[0].Trigger, again[0].Revision}, []any{1, "a", int64(3)})
	e.fails(s.Move(e.ctx, want), store.ErrStale)
	x := again[0]
	x.NextAt, x.DueAt, x.LastAt, x.LastRun = until.Add(time.Hour), until.Add(time.Hour), e.now, "r1"
	e.ok(s.Move(e.ctx, x))
	e.fails(s.Move(e.ctx, x), store.ErrStale)
	x.Revision++
	same(e, "moved", e.schedules("acme")[0], x)
	x.Trigger = "none"
	e.fails(s.Move(e.ctx, x), store.ErrStale)
}

// schedulesTakeTurns: of many tenants with many, each is served.
func schedulesTakeTurns(e *env) {
	var many []store.Schedule
	for i := range 12 {
		many = append(many, e.schedule("t"+strconv.Itoa(i), "x", e.now))
	}
	e.scheduled("acme", "greet", "1", many...)
	for _, tenant := range []string{"b", "c", "d", "zeta"} {
		e.scheduled(tenant, "greet", "1", e.schedule("one", "x", e.now.Add(time.Second)))
	}
	now, all := e.now.Add(time.Minute), map[string]int{}
	for round := 1; round <= 10; round++ {
		got, err := e.s.Schedules().Claim(e.ctx, now, now.Add(time.Hour), 3)
		e.ok(err)
		if len(got) > 3 {
			e.Fatalf("%d with limit 3", len(got))
		}
		for _, x := range got {
			all[x.Tenant]++
		}
		if round == 3 { // 5 tenants, 3 at a time
			same(e, "tenants served", len(all), 5)
		}
	}
	same(e, "claimed", all, map[string]int{"acme": 12, "b": 1, "c": 1, "d": 1, "zeta": 1})
}

// schedulesClaimedByMany at once come to one of them each.
func schedulesClaimedByMany(e *env) {
	var many []store.Schedule
	for i := range 40 {
		many = append(many, e.schedule("t"+strconv.Itoa(i), "x", e.now))
	}
	e.scheduled("acme", "greet", "1", many...)
	var mu sync.Mutex
	var wg sync.WaitGroup
	seen := map[string]int{}
	for range 4 {
		wg.Go(func() {
			for range 40 {
				got, err := e.s.Schedules().Claim(e.ctx, e.now, e.now.Add(time.Hour), 7)
				mu.Lock()
				if err != nil {
					e.Error(err)
				}
				for _, x := range got {
					seen[x.Trigger]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	same(e, "claimed", len(seen), 40)
	for trigger, n := range seen {
		if n != 1 {
			e.Errorf("%s was claimed %d times", trigger, n)
		}
	}
}

// schedulePages are in order, of one tenant.
func schedulePages(e *env) {
	for _, id := range []string{"zeta", "a", "b"} {
		e.scheduled("acme", id, "1", e.schedule("2", "x", e.now), e.schedule("10", "x", e.now))
	}
	e.scheduled("other", "a", "1", e.schedule("1", "x", e.now))
	all := e.schedules("acme")
	for _, limit := range []int{1, 4, 6, 7} {
		var got []store.Schedule
		for last := (store.Schedule{}); ; last = got[len(got)-1] {
			page, err := e.s.Schedules().List(e.ctx, "acme", last.Workflow, last.Trigger, limit)
			e.ok(err)
			got = append(got, page...)
			if len(page) < limit {
				break
			}
		}
		same(e, "schedules", got, all)
	}
	var names []string
	for _, x := range all {
		names = append(names, x.Workflow+"/"+x.Trigger)
	}
	same(e, "order", names, []string{"a/10", "a/2", "b/10", "b/2", "zeta/10", "zeta/2"})
}
