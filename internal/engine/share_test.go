package engine

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/builtin"
	"github.com/fermata-run/fermata/internal/clock"
	"github.com/fermata-run/fermata/internal/egress"
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/pgtest"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/internal/store/postgres"
	"github.com/fermata-run/fermata/node"
)

// sharedLab is a lab on a database that several engines share.
func sharedLab(t *testing.T, types ...node.Type) *lab {
	t.Helper()
	pgtest.Shared(t)
	l := &lab{t: t, dir: t.TempDir(), types: map[string]*node.Type{}, limit: run.DefaultLimits()}
	guard := egress.New(egress.Options{})
	t.Cleanup(guard.Close)
	for _, n := range append(builtin.All(builtin.Deps{Egress: guard}), types...) {
		l.types[n.ID] = &n
	}
	l.db = &faulty{Store: l.openShared()}
	return l
}

func (l *lab) openShared() store.Store {
	l.t.Helper()
	opts := postgres.Options{Migrate: true, Connections: 6}
	if l.hints {
		opts.Listen = pgtest.Database(l.t, l.dir)
	}
	s, err := postgres.Open(l.t.Context(), pgtest.Database(l.t, l.dir), opts)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { s.Close() })
	return s
}

// join starts one more engine with a connection of its own to the database.
func (l *lab) join(change ...func(*Config)) *Engine {
	l.t.Helper()
	s := l.openShared()
	cfg := Config{
		Store: s, Replicas: s.(store.Replicas), Catalog: l, Clock: l.clock, Limits: l.limit, Seams: l.seams,
		ReconcileEvery: 20 * time.Millisecond, LeaseTTL: time.Hour,
	}
	for _, c := range change {
		c(&cfg)
	}
	e := New(cfg)
	if err := e.Start(l.t.Context()); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { l.halt(e) })
	l.e = e
	return e
}

// of creates runs of a tenant, which has the workflow, too.
func (l *lab) of(tenant string, w *flow.Workflow, n int) (out []ids.Run) {
	l.t.Helper()
	row, err := l.db.Workflows().Get(l.t.Context(), "acme", w.Def.ID, "")
	if err != nil {
		l.t.Fatal(err)
	}
	row.Tenant = tenant
	if _, err := l.db.Workflows().Put(l.t.Context(), row); err != nil {
		l.t.Fatal(err)
	}
	c := run.Start{Owner: event.Owner{Tenant: tenant, Subject: owner.Subject}, Transport: "rest"}
	for range n {
		id := l.e.NewID(tenant)
		if _, err := l.e.Create(l.t.Context(), id, w, c); err != nil {
			l.t.Fatal(err)
		}
		out = append(out, id)
	}
	return out
}

// TestDueWorkIsShared: of more due work than one replica has room for it takes what it
// can begin soon; who joins gets a share at once; another tenant's single run begins
// although the first tenant's wait; and in the end each has been called once.
func TestDueWorkIsShared(t *testing.T) {
	p := newProbe(t, "test.work")
	l := sharedLab(t, p.typ())
	m := byHand(l)
	few := func(c *Config) { c.Workers, c.TenantWorkers = 4, 3 }
	l.join(few)
	w := l.register("later", []any{step("d", "core.delay", map[string]any{"delayMs": 1000}), step("a", p.id, nil)}, []any{edge("d", "a")})
	const n = 200
	all := l.of("acme", w, n)
	m.Advance(time.Millisecond)
	small := l.of("small", w, 1)[0]

	held := func() (by map[string]int, parked int) {
		by = map[string]int{}
		for _, id := range all {
			if r := l.row(id); r.Instance == "" {
				parked++
			} else {
				by[r.Instance]++
			}
		}
		return by, parked
	}
	// Three calls of the flood, which have a place; as many again as a batch may wait,
	// when another batch is claimed.
	const most = 3 + 2*leastBatch
	first := l.e
	m.Advance(2 * time.Second)
	begun := map[string]int{}
	for range 4 {
		begun[await(t, "the calls there is room for", p.entered).TenantID]++
	}
	if begun["acme"] != 3 || begun["small"] != 1 {
		t.Errorf("begun are %v", begun)
	}
	looked := func(e *Engine) {
		for range 10 { // looks for more
			m.Advance(20 * time.Millisecond)
			e.claim()
		}
	}
	looked(first)
	by, parked := held()
	if have := by[first.Instance()]; have < leastBatch || have > most || parked != n-have {
		t.Fatalf("the first replica holds %d, and %d are left", have, parked)
	}
	before := by[first.Instance()]

	for _, joined := range []*Engine{l.join(few), l.join(few)} {
		looked(joined)
		by, _ := held()
		if have := by[joined.Instance()]; have < leastBatch || have > most {
			t.Errorf("who joined holds %d", have)
		}
		if by[first.Instance()] != before {
			t.Errorf("the first replica holds %d, and held %d", by[first.Instance()], before)
		}
	}
	if _, parked := held(); parked < n-3*most {
		t.Errorf("only %d are left", parked)
	}
	p.free()
	for _, id := range append(all, small) {
		l.pass(m, id, 0, run.Completed)
	}
	if calls := p.total(); calls != n+1 {
		t.Errorf("%d calls for %d runs", calls, n+1)
	}
}

// TestHintsSaveLooks: with no look to come, a watcher on another replica hears of a step,
// and a run that its owner leaves is gone on with.
func TestHintsSaveLooks(t *testing.T) {
	p := newProbe(t, "test.work")
	l := sharedLab(t, p.typ())
	l.clock, l.hints = clock.System{}, true
	seldom := func(c *Config) { c.ReconcileEvery = time.Hour }
	b := l.join(seldom)
	a := l.join(seldom)
	// Each has looked once, and knows of the other one.
	for _, e := range []*Engine{a, b, a} {
		e.claim()
	}
	id := l.create(l.register("two", []any{step("ok", "core.approvalGate", map[string]any{"title": "?"}), step("a", p.id, nil)}, []any{edge("ok", "a")}))
	w := b.feed.Watch(id)
	defer w.Close()
	b.feed.reached(id, l.row(id).Seq)
	_, more, _ := w.After(l.row(id).Seq)
	topic := b.feed.topic(id)
	topic.mu.Lock()
	topic.lookAt = time.Now().Add(time.Hour)
	topic.mu.Unlock()
	l.must(id, accept("ok"))
	await(t, "news of the step", more)

	await(t, "the call", p.entered)
	l.halt(a)
	l.e = b
	// The store of who leaves is closed behind it, which sends what waits.
	await(t, "the call by the other replica", p.entered)
	p.free()
	l.until(id, run.Completed)
}

// TestBacklogIsCounted: everything that is taken on is counted until it has begun, and
// nothing is left over, whatever becomes of it.
func TestBacklogIsCounted(t *testing.T) {
	p := newProbe(t, "test.work")
	l := newLab(t, p.typ())
	e := l.engine(func(c *Config) { c.Workers, c.TenantWorkers = 2, 2 })
	w := l.register("one", []any{step("a", p.id, nil)}, nil)
	var all []ids.Run
	for range 6 {
		all = append(all, l.create(w))
	}
	for range 2 {
		await(t, "a call", p.entered)
	}
	waiting := func(want int) {
		t.Helper()
		eventually(t, fmt.Sprint(want, " calls wait"), func() bool {
			e.backlog.mu.Lock()
			defer e.backlog.mu.Unlock()
			return e.backlog.waiting["acme"] == want
		})
	}
	waiting(4)
	for _, id := range all {
		if o := e.Do(context.Background(), id, run.Cancel{Reason: "enough"}); o.Err != nil {
			t.Fatal(o.Err)
		}
	}
	waiting(0)
	if len(e.backlog.full()) != 0 {
		t.Error("somebody is passed over")
	}
	if len(e.backlog.waiting) != 0 {
		t.Errorf("left over: %v", e.backlog.waiting)
	}
}

// TestBacklog: who has a batch waiting is passed over until half of it has begun.
func TestBacklog(t *testing.T) {
	b := newBacklog(4)
	b.add("a", 4)
	b.add("b", 3)
	if got := b.full(); len(got) != 1 || got[0] != "a" {
		t.Fatalf("full are %v", got)
	}
	if b.done("b") {
		t.Error("room for who was not passed over")
	}
	for i, want := range []bool{false, true, false, false} {
		if b.done("a") != want {
			t.Errorf("after %d have begun: %v", i+1, !want)
		}
	}
	if len(b.full()) != 0 || b.waiting["a"] != 0 {
		t.Error("something is left over")
	}
	none := newBacklog(0)
	none.add("a", 1000)
	if len(none.full()) != 0 {
		t.Error("a bound where there is none")
	}
}

// TestStoppingLeavesWhatHasNotBegun: a replica that leaves in order ends the calls it
// makes and begins none of those that wait: the next one does, once each.
func TestStoppingLeavesWhatHasNotBegun(t *testing.T) {
	p := newProbe(t, "test.work")
	l := sharedLab(t, p.typ())
	l.clock = clock.System{}
	leaving := l.join(func(c *Config) { c.Workers, c.TenantWorkers = 1, 1 })
	w := l.register("one", []any{step("a", p.id, nil)}, nil)
	all := l.many(w, 6)
	await(t, "the call there is room for", p.entered)
	done := make(chan error, 1)
	go func() { done <- leaving.Stop(context.Background()) }()
	eventually(t, "nothing waits any more", func() bool {
		leaving.backlog.mu.Lock()
		defer leaving.backlog.mu.Unlock()
		return len(leaving.backlog.waiting) == 0
	})
	p.pass(t)
	if err := await(t, "the replica to leave", done); err != nil {
		t.Fatal(err)
	}
	if n := p.total(); n != 1 {
		t.Errorf("%d calls by who leaves", n)
	}
	p.free()
	l.join()
	for _, id := range all {
		l.until(id, run.Completed)
	}
	if n := p.total(); n != len(all) {
		t.Errorf("%d calls for %d runs", n, len(all))
	}
}
