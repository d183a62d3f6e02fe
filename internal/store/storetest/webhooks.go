package storetest

import (
	"slices"
	"time"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
)

// hook is a new subscription, not added yet.
func (e *env) hook(tenant string) store.Subscription {
	return store.Subscription{
		Tenant: tenant, ID: e.mint.Next(e.tick()), URL: "https://" + tenant + ".example/hook?a=b", Events: []string{"run.started", "log.appended"},
		Secret: "s-" + tenant, CreatedAt: e.now,
	}
}

// subscribe adds a subscription.
func (e *env) subscribe(tenant string, change ...func(*store.Subscription)) store.Subscription {
	e.Helper()
	s := e.hook(tenant)
	for _, f := range change {
		f(&s)
	}
	e.ok(e.s.Webhooks().Add(e.ctx, s, 0))
	return s
}

func (e *env) got(want store.Subscription) {
	e.Helper()
	got, err := e.s.Webhooks().Get(e.ctx, want.Tenant, want.ID)
	e.ok(err)
	same(e, "subscription", got, want)
}

// subscriptions: what is written is read, by its tenant, and lists hold no secret.
func subscriptions(e *env) {
	a, b, other := e.hook("acme"), e.hook("acme"), e.hook("other")
	b.Major = 1
	b.Tags, b.Algorithms = []string{"x", "\"ü"}, []string{"v1", "standard-webhooks-1"}
	for _, s := range []store.Subscription{a, b, other} {
		e.ok(e.s.Webhooks().Add(e.ctx, s, 2))
	}
	e.fails(e.s.Webhooks().Add(e.ctx, a, 2), store.ErrExists)
	e.fails(e.s.Webhooks().Add(e.ctx, e.hook("acme"), 2), store.ErrFull)
	bad := e.hook("acme")
	bad.Events = nil
	if err := e.s.Webhooks().Add(e.ctx, bad, 0); err == nil {
		e.Error("a subscription without events was added")
	}
	e.reopen()
	e.got(a)
	e.got(b)
	_, err := e.s.Webhooks().Get(e.ctx, "other", a.ID)
	e.fails(err, store.ErrNotFound)

	list := func(after string, limit int, want ...store.Subscription) {
		e.Helper()
		got, err := e.s.Webhooks().List(e.ctx, "acme", after, limit)
		e.ok(err)
		for i := range want {
			want[i].Secret, want[i].Previous = "", ""
		}
		same(e, "list", got, want)
	}
	list("", 0, a, b)
	list("", 1, a)
	list(a.ID, 5, b)
	list(b.ID, 5, []store.Subscription(nil)...)

	at := e.tick()
	e.ok(e.s.Webhooks().Rotate(e.ctx, "acme", b.ID, "fresh", at, at.Add(time.Hour)))
	b.Previous, b.Secret, b.RotatedAt, b.PreviousUntil = b.Secret, "fresh", at, at.Add(time.Hour)
	e.got(b)
	e.fails(e.s.Webhooks().Rotate(e.ctx, "other", b.ID, "fresh", at, at), store.ErrNotFound)
	e.fails(e.s.Webhooks().Enable(e.ctx, "other", b.ID, at), store.ErrNotFound)
	e.fails(e.s.Webhooks().Remove(e.ctx, "other", b.ID), store.ErrNotFound)
	e.ok(e.s.Webhooks().Remove(e.ctx, "acme", b.ID))
	e.fails(e.s.Webhooks().Remove(e.ctx, "acme", b.ID), store.ErrNotFound)
	list("", 0, a)
	e.got(other)
}

// matching asks for every event of a step, and remembers who was offered.
type matching struct {
	first, last int64
	at          time.Time
	offered     []string
}

func (m *matching) Match(subs []store.Subscription) (out []store.Queued) {
	m.offered = nil
	for _, s := range subs {
		m.offered = append(m.offered, s.Tenant+"/"+s.ID)
		out = append(out, store.Queued{Target: s.ID, First: m.first, Last: m.last, At: m.at})
	}
	return out
}

// matched makes a run whose creation is matched, or a step of it.
func (e *env) matched(a *store.Append) *matching {
	m := &matching{first: a.Row.Seq + 1 - int64(len(a.Events)), last: a.Row.Seq, at: e.now}
	a.Matcher = m
	return m
}

func (e *env) due() []string {
	e.Helper()
	list, err := e.s.Deliveries().Due(e.ctx, e.now, nil, 0)
	e.ok(err)
	out := []string{}
	for _, t := range list {
		out = append(out, t.ID)
	}
	return out
}

// take takes up to limit entries of a target until a minute from now.
func (e *env) take(instance, tenant, target string, limit int) []store.Delivery {
	e.Helper()
	got, err := e.s.Deliveries().Take(e.ctx, store.TakeQuery{
		Instance: instance, Now: e.now, Until: e.now.Add(time.Minute), Quotas: []store.Quota{{Tenant: tenant, Target: target, Limit: limit}},
	})
	e.ok(err)
	return got
}

// one takes the one entry that is due.
func (e *env) one(instance string, s store.Subscription) store.Delivery {
	e.Helper()
	got := e.take(instance, s.Tenant, s.ID, 5)
	if len(got) != 1 {
		e.Fatalf("%d entries are due, want one: %+v", len(got), got)
	}
	return got[0]
}

func entry(s store.Subscription, run ids.Run, next, last int64) store.Delivery {
	return store.Delivery{Tenant: s.Tenant, Target: s.ID, Run: run, Next: next, Last: last}
}

func (e *env) sameEntry(got, want store.Delivery) {
	e.Helper()
	if got.Claim == 0 {
		e.Error("the entry names no claim")
	}
	got.Claim, got.CreatedAt = 0, time.Time{}
	same(e, "entry", got, want)
}

// queued: a step queues for the subscriptions of its own tenant, once for a run,
// and a step that is refused queues nothing.
func queued(e *env) {
	e.register("host-1")
	quiet := e.create(e.id("quiet"))
	step := quiet.next(notes(1)...)
	m := e.matched(step)
	e.ok(quiet.write(step))
	same(e, "offered", m.offered, []string(nil))

	a, b, _ := e.subscribe("acme"), e.subscribe("acme"), e.subscribe("other")
	l := e.create(e.id("acme"), func(x *store.Append) { m = e.matched(x) })
	same(e, "offered", m.offered, []string{"acme/" + a.ID, "acme/" + b.ID})
	step = l.next(notes(3)...)
	m = e.matched(step)
	e.ok(l.write(step))

	stale := l.next(notes(1)...)
	stale.ExpectedSeq--
	stale.Events, stale.Row.Seq = nil, stale.ExpectedSeq
	stale.Queued = []store.Queued{{Target: a.ID, First: 50, Last: 60, At: e.now}}
	e.fails(e.s.Runs().Append(e.ctx, stale), store.ErrStale)
	bad := l.next(notes(1)...)
	bad.Queued = []store.Queued{{Target: a.ID, First: 9, Last: 8, At: e.now}}
	if err := e.s.Runs().Append(e.ctx, bad); err == nil {
		e.Error("an entry that ends before it begins was queued")
	}

	e.reopen()
	e.register("host-1")
	e.sameEntry(e.one("host-1", a), entry(a, l.row.ID, 0, 3))
	e.sameEntry(e.one("host-1", b), entry(b, l.row.ID, 0, 3))

	// A step of several runs queues for all of them.
	p := e.create(e.id("acme"))
	child := e.id("acme")
	step = p.next(notes(1)...)
	also := (&log{e: e, row: e.newRow(child)}).next(notes(2)...)
	also.Create = true
	e.matched(also)
	step.Also = []*store.Append{also}
	e.ok(p.write(step))
	e.sameEntry(e.one("host-1", a), entry(a, child, 0, 1))

	// A subscription that was removed is offered to nobody; one that was added is.
	e.ok(e.s.Webhooks().Remove(e.ctx, "acme", a.ID))
	c := e.subscribe("acme")
	step = p.next(notes(1)...)
	m = e.matched(step)
	e.ok(p.write(step))
	same(e, "offered", m.offered, []string{"acme/" + b.ID, "acme/" + c.ID})
}

// claims: an entry is one taker's at a time, and only that one settles it.
func claims(e *env) {
	e.register("host-1")
	s := e.subscribe("acme")
	l := e.create(e.id("acme"), func(a *store.Append) { e.matched(a) })
	first := e.one("host-1", s)
	same(e, "due while taken", e.due(), []string{})
	next, err := e.s.Deliveries().NextDue(e.ctx)
	e.ok(err)
	same(e, "due again", next, e.now.Add(time.Minute))

	e.now = e.now.Add(time.Minute) // the claim runs out
	second := e.one("host-1", s)
	late := store.Settlement{Delivery: first, Next: 1, Now: e.now}
	e.fails(e.s.Deliveries().Settle(e.ctx, late), store.ErrStale)
	nothing := store.Settlement{Now: e.now}
	if err := e.s.Deliveries().Settle(e.ctx, nothing); err == nil {
		e.Error("a settlement of nothing was taken")
	}

	// Put off: due later, with its attempts.
	again := store.Settlement{Delivery: second, Next: 0, Attempts: 2, DueAt: e.now.Add(time.Second), Failures: 2, FailingSince: e.now, Now: e.now}
	e.ok(e.s.Deliveries().Settle(e.ctx, again))
	e.fails(e.s.Deliveries().Settle(e.ctx, again), store.ErrStale)
	same(e, "due", e.due(), []string{})
	e.now = e.now.Add(time.Second)
	want := entry(s, l.row.ID, 0, 0)
	want.Attempts, want.Failures, want.FailingSince = 2, 2, again.FailingSince
	third := e.one("host-1", s)
	e.sameEntry(third, want)

	// It grows while it is taken: what was done is done, the rest is due.
	step := l.next(notes(2)...)
	e.matched(step)
	e.ok(l.write(step))
	e.ok(e.s.Deliveries().Settle(e.ctx, store.Settlement{Delivery: third, Next: 1, Now: e.now}))
	fourth := e.one("host-1", s)
	e.sameEntry(fourth, entry(s, l.row.ID, 1, 2))

	// Moved on within the claim.
	e.ok(e.s.Deliveries().Settle(e.ctx, store.Settlement{Delivery: fourth, Next: 2, DueAt: e.now.Add(time.Hour), Hold: true, Now: e.now}))
	e.now = e.now.Add(2 * time.Minute)
	same(e, "due while held", e.due(), []string{})
	e.ok(e.s.Deliveries().Settle(e.ctx, store.Settlement{Delivery: fourth, Next: 3, Now: e.now}))
	next, err = e.s.Deliveries().NextDue(e.ctx)
	e.ok(err)
	same(e, "due at the end", next, time.Time{})
	e.fails(e.s.Deliveries().Settle(e.ctx, store.Settlement{Delivery: fourth, Next: 3, Now: e.now}), store.ErrStale)
}

// claimsOfTheLost: what an instance has taken is due again once it is lost.
func claimsOfTheLost(e *env) {
	e.register("host-1")
	s := e.subscribe("acme")
	e.create(e.id("acme"), func(a *store.Append) { e.matched(a) })
	mine := e.one("host-1", s)
	n, err := e.s.Deliveries().Recover(e.ctx, "host-1", e.now)
	e.ok(err)
	same(e, "taken from the living", n, 0)
	e.lose("host-1")
	e.reopen()
	e.register("host-2")
	_, err = e.s.Deliveries().Take(e.ctx, store.TakeQuery{Instance: "host-1", Now: e.now, Until: e.now.Add(time.Minute)})
	e.fails(err, store.ErrNotFound)
	n, err = e.s.Deliveries().Recover(e.ctx, "host-2", e.now)
	e.ok(err)
	same(e, "taken from the lost", n, 1)
	e.fails(e.s.Deliveries().Settle(e.ctx, store.Settlement{Delivery: mine, Next: 1, Now: e.now}), store.ErrStale)
	e.one("host-2", s)
}

// targets: what is due, of whom, and how a target fares.
func targets(e *env) {
	e.register("host-1")
	a, b, other := e.subscribe("acme"), e.subscribe("acme"), e.subscribe("other")
	var runs []ids.Run
	for range 3 {
		runs = append(runs, e.create(e.id("acme"), func(x *store.Append) { e.matched(x) }).row.ID)
	}
	e.create(e.id("other"), func(x *store.Append) { e.matched(x) })
	same(e, "due", e.due()[2], other.ID)
	list, err := e.s.Deliveries().Due(e.ctx, e.now, []string{"acme", "nobody"}, 1)
	e.ok(err)
	if len(list) != 1 || list[0].ID != other.ID || list[0].Tenant != "other" {
		e.Fatalf("due beside acme is %+v", list)
	}
	same(e, "entries", len(e.take("host-1", "acme", b.ID, 2)), 2)
	if !slices.Contains(e.due(), b.ID) {
		e.Error("a target with another entry is not due")
	}
	got := e.take("host-1", "acme", a.ID, 1)
	if len(got) != 1 || got[0].Run != runs[0] {
		e.Fatalf("took %+v, want the entry that was due first", got)
	}

	// A target that rests takes its entries along, and disabled stays at rest.
	rest := e.now.Add(time.Hour)
	e.ok(e.s.Deliveries().Settle(e.ctx, store.Settlement{
		Delivery: got[0], Next: 0, Attempts: 1, DueAt: e.now, Failures: 1, ResumeAt: rest, Disable: "nobody there", Now: e.now,
	}))
	a.DisabledAt, a.Reason = e.now, "nobody there"
	if slices.Contains(e.due(), a.ID) {
		e.Error("a target that rests is due")
	}
	e.create(e.id("acme"), func(x *store.Append) { e.matched(x) })
	if slices.Contains(e.due(), a.ID) {
		e.Error("a target that rests is due because of a new entry")
	}
	same(e, "entries of a target that rests", len(e.take("host-1", "acme", a.ID, 9)), 0)
	e.got(a)
	e.reopen()
	e.register("host-1")
	e.got(a)
	e.ok(e.s.Webhooks().Enable(e.ctx, "acme", a.ID, e.tick()))
	a.DisabledAt, a.Reason = time.Time{}, ""
	e.got(a)
	all := e.take("host-1", "acme", a.ID, 9)
	same(e, "entries after the rest", len(all), 4)
	for _, d := range all {
		if d.Attempts != 0 || d.Failures != 0 || !d.FailingSince.IsZero() {
			e.Errorf("an entry begins with %d attempts, its target with %d failures", d.Attempts, d.Failures)
		}
	}
	// Removed: nothing is due, and no claim can be settled.
	e.ok(e.s.Webhooks().Remove(e.ctx, "acme", a.ID))
	e.fails(e.s.Deliveries().Settle(e.ctx, store.Settlement{Delivery: all[0], Next: 9, Now: e.now}), store.ErrStale)
	e.now = e.now.Add(24 * time.Hour)
	if slices.Contains(e.due(), a.ID) {
		e.Error("a subscription that was removed is due")
	}
	same(e, "entries of it", len(e.take("host-1", "acme", a.ID, 9)), 0)
}

// urlTargets: a target that is no subscription lasts as long as its entries.
func urlTargets(e *env) {
	e.register("host-1")
	at := e.now
	l := e.create(e.id("acme"), func(a *store.Append) {
		a.Queued = []store.Queued{{Target: "call", URL: "https://x.example/", First: 0, Last: 0, At: at}}
	})
	list, err := e.s.Deliveries().Due(e.ctx, e.now, nil, 0)
	e.ok(err)
	same(e, "due", list, []store.Target{{Tenant: "acme", ID: "call", URL: "https://x.example/", DueAt: at}})
	got := e.take("host-1", "acme", "call", 1)
	e.ok(e.s.Deliveries().Settle(e.ctx, store.Settlement{Delivery: got[0], Next: 1, Failures: 3, Now: e.now}))
	same(e, "due afterwards", e.due(), []string{})
	step := l.next(notes(1)...)
	step.Queued = []store.Queued{{Target: "call", URL: "https://y.example/", First: 1, Last: 1, At: at}}
	e.ok(l.write(step))
	got = e.take("host-1", "acme", "call", 1)
	if len(got) != 1 || got[0].URL != "https://y.example/" || got[0].Failures != 0 {
		e.Fatalf("took %+v, want a target that is new", got)
	}
}

// takeRace: of many takers at once, each entry goes to one.
func takeRace(e *env) {
	e.register("host-1")
	s := e.subscribe("acme")
	const n = 24
	for range n {
		e.create(e.id("acme"), func(a *store.Append) { e.matched(a) })
	}
	found := make(chan []store.Delivery)
	for range 8 {
		go func() {
			got, err := e.s.Deliveries().Take(e.ctx, store.TakeQuery{
				Instance: "host-1", Now: e.now, Until: e.now.Add(time.Minute), Quotas: []store.Quota{{Tenant: "acme", Target: s.ID, Limit: 5}},
			})
			if err != nil {
				e.Error(err)
			}
			found <- got
		}()
	}
	owners := map[ids.Run]int{}
	for range 8 {
		for _, d := range <-found {
			owners[d.Run]++
		}
	}
	same(e, "entries", len(owners), n)
	for id, k := range owners {
		if k != 1 {
			e.Errorf("the entry of run %s was taken %d times", id, k)
		}
	}
}

// deadLetters: newest first, by pages, until their end.
func deadLetters(e *env) {
	e.register("host-1")
	s, other := e.subscribe("acme"), e.subscribe("acme")
	var want []store.DeadLetter
	for i := range 5 {
		l := e.create(e.id("acme"), func(a *store.Append) { e.matched(a) })
		at := e.now.Add(time.Duration(i/2) * time.Second) // two of one moment
		d := store.DeadLetter{
			Tenant: "acme", Subscription: s.ID, ID: e.mint.Next(at), Run: l.row.ID, EventID: ids.Event(l.row.ID, 0), EventType: "run.started",
			Attempts: i, Reason: "retries_exhausted", LastStatus: 500, At: at, ExpiresAt: at.Add(time.Duration(i+1) * time.Hour),
		}
		for _, x := range e.take("host-1", "acme", s.ID, 1) {
			e.ok(e.s.Deliveries().Settle(e.ctx, store.Settlement{Delivery: x, Next: 1, Letters: []store.DeadLetter{d}, Now: e.now}))
		}
		want = append(want, d)
	}
	slices.SortFunc(want, func(a, b store.DeadLetter) int {
		if c := b.At.Compare(a.At); c != 0 {
			return c
		}
		if b.ID > a.ID {
			return 1
		}
		return -1
	})
	e.reopen()
	read := func(q store.DeadLetterQuery) []store.DeadLetter {
		e.Helper()
		q.Tenant = "acme"
		if q.Subscription == "" {
			q.Subscription = s.ID
		}
		got, err := e.s.Webhooks().DeadLetters(e.ctx, q)
		e.ok(err)
		return got
	}
	same(e, "dead letters", read(store.DeadLetterQuery{Now: e.now}), want)
	same(e, "of another", len(read(store.DeadLetterQuery{Now: e.now, Subscription: other.ID})), 0)
	var paged []store.DeadLetter
	for q := (store.DeadLetterQuery{Now: e.now, Limit: 2}); ; {
		got := read(q)
		if len(got) == 0 {
			break
		}
		paged = append(paged, got...)
		q.BeforeAt, q.BeforeID = got[len(got)-1].At, got[len(got)-1].ID
	}
	same(e, "pages", paged, want)

	later := want[len(want)-1].ExpiresAt // of the earliest
	same(e, "past the end", len(read(store.DeadLetterQuery{Now: later})), 4)
	n, err := e.s.Webhooks().PurgeDeadLetters(e.ctx, later, 10)
	e.ok(err)
	same(e, "purged", n, 1)
	same(e, "left", len(read(store.DeadLetterQuery{Now: e.now})), 4)
	e.ok(e.s.Webhooks().Remove(e.ctx, "acme", s.ID))
	same(e, "after the removal", len(read(store.DeadLetterQuery{Now: e.now})), 0)
}
