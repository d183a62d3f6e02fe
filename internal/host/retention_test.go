package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/clock"
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/go-json-experiment/json/jsontext"
)

const aDay = 24 * time.Hour

var reader = asCaller("acme", "runs:read")

// kept opens a host with bounds on a clock that stands at noon.
func kept(t *testing.T, r Retention) (*lab, *clock.Manual) {
	t.Helper()
	c := clock.NewManual(noon)
	l := open(t, t.TempDir(), c)
	if r.Tombstones == 0 {
		r.Tombstones = defaultTombstones
	}
	l.cfg.Retention = r
	return l, c
}

// seed puts a run of n events there that ended at a time.
func (l *lab) seed(t *testing.T, tenant string, ended time.Time, n int, change ...func(*store.Run)) ids.Run {
	t.Helper()
	id := l.eng.NewID(tenant)
	row := store.Run{ID: id, WorkflowID: "w", WorkflowVersion: "1", Status: "completed", Seq: int64(n) - 1, CreatedAt: ended, CompletedAt: ended, Owner: []byte("{}")}
	for _, f := range change {
		f(&row)
	}
	a := &store.Append{Create: true, Row: row}
	for i := range n {
		a.Events = append(a.Events, event.Event{
			Run: id, Seq: int64(i), Type: event.LogAppended, NodeID: "n", Time: ended, Causation: -1,
			Payload: jsontext.Value(fmt.Sprintf(`{"level":"info","message":"note %d"}`, i)),
		})
	}
	if err := l.db.Runs().Append(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	return id
}

// pass makes one pass of retention, with a clock that is trusted.
func (l *lab) pass(t *testing.T) {
	t.Helper()
	was, err := l.db.Retention().Clock(t.Context())
	if err == nil {
		err = l.db.Retention().SetClock(t.Context(), was, store.Clock{Trusted: l.clock.Now()})
	}
	if err == nil {
		err = l.expirePass(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// there checks which of some runs are left; the others must have expired.
func (l *lab) there(t *testing.T, runs []ids.Run, want ...int) {
	t.Helper()
	stays := map[int]bool{}
	for _, i := range want {
		stays[i] = true
	}
	for i, id := range runs {
		_, err := l.Head(t.Context(), asCaller(id.Tenant, "runs:read"), id)
		switch {
		case stays[i] && err != nil:
			t.Errorf("run %d: %v", i, err)
		case !stays[i] && (err == nil || problem.From(err).Code != problem.RunExpired):
			t.Errorf("run %d: %v, want expired", i, err)
		}
	}
}

func TestRunsExpireByAge(t *testing.T) {
	t.Parallel()
	l, _ := kept(t, Retention{Default: Bounds{MaxAge: 30 * aDay}, Tenants: map[string]Bounds{"long": {MaxAge: 60 * aDay}, "ever": {}}})
	var runs []ids.Run
	for _, tenant := range []string{"acme", "long", "ever"} {
		for _, age := range []time.Duration{0, 30*aDay - time.Millisecond, 30 * aDay, 59 * aDay, 60 * aDay, 4000 * aDay} {
			runs = append(runs, l.seed(t, tenant, noon.Add(-age), 1))
		}
	}
	alive := l.seed(t, "acme", noon.Add(-400*aDay), 1, func(r *store.Run) { r.Status, r.CompletedAt = "waiting-approval", time.Time{} })
	l.pass(t)
	l.there(t, append(runs, alive), 0, 1, 6, 7, 8, 9, 12, 13, 14, 15, 16, 17, 18)
	page, err := l.ListRuns(t.Context(), reader, ListRuns{})
	if err != nil || len(page.Runs) != 3 {
		t.Errorf("%d runs are listed: %v", len(page.Runs), err)
	}
	if more, err := l.db.Retention().Clear(t.Context(), 1, 1); err != nil || more {
		t.Errorf("something is left behind: %v", err)
	}
}

// A run that many have come after goes, but not on the day of its end.
func TestRunsExpireByNumber(t *testing.T) {
	t.Parallel()
	l, c := kept(t, Retention{Default: Bounds{MaxRuns: 3}, Tenants: map[string]Bounds{"few": {MaxRuns: 1}}})
	var runs []ids.Run
	for i := range 6 {
		runs = append(runs, l.seed(t, "acme", noon.Add(-2*aDay).Add(time.Duration(-i)*time.Minute), 1))
	}
	for i := range 5 {
		runs = append(runs, l.seed(t, "few", noon.Add(time.Duration(-i)*12*time.Hour), 1))
	}
	l.pass(t)
	l.there(t, runs, 0, 1, 2, 6, 7)
	c.Advance(aDay)
	l.pass(t)
	l.there(t, runs, 0, 1, 2, 6)
}

// What the host or the database still needs stays, and does not keep the runs
// behind it from going.
func TestNeededRunsStay(t *testing.T) {
	t.Parallel()
	l, _ := kept(t, Retention{Default: Bounds{MaxAge: aDay}})
	old := noon.Add(-10 * aDay)
	parent := l.seed(t, "acme", old, 1, func(r *store.Run) { r.Status, r.CompletedAt = "running", time.Time{} })
	var runs []ids.Run
	for range walkRuns + 20 { // more than a page
		runs = append(runs, l.seed(t, "acme", old, 1, func(r *store.Run) { r.Parent, r.ParentNode = parent, "n" }))
	}
	runs = append(runs,
		l.seed(t, "acme", old, 1, func(r *store.Run) { r.Notify = true }),
		l.seed(t, "acme", old, 1, func(r *store.Run) { r.Instance = "someone" }),
		l.seed(t, "acme", old, 1, func(r *store.Run) { r.WakeAt = noon }),
		l.seed(t, "acme", old.Add(time.Hour), 1))
	l.pass(t)
	var want []int
	for i := range len(runs) - 1 {
		want = append(want, i)
	}
	l.there(t, runs, want...)
}

// Every clock that could delete a year at once is doubted for a day.
func TestClockThatLeapsIsDoubted(t *testing.T) {
	t.Parallel()
	l, c := kept(t, Retention{Default: Bounds{MaxAge: 30 * aDay}})
	pass := func() {
		t.Helper()
		if err := l.expirePass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	runs := []ids.Run{l.seed(t, "acme", noon.Add(-40*aDay), 1), l.seed(t, "acme", noon, 1)}
	pass() // the first look: nobody knows whether the clock is right
	l.there(t, runs, 0, 1)
	c.Advance(aDay)
	pass()
	l.there(t, runs, 1)
	c.Advance(3650 * aDay) // the leap
	for range 5 {
		pass()
		l.there(t, runs, 1)
		c.Advance(time.Hour)
	}
	c.Advance(-3650 * aDay) // it was wrong
	pass()
	l.there(t, runs, 1)
	c.Advance(12 * time.Hour)
	pass()
	l.there(t, runs, 1)
	c.Advance(200 * aDay) // and this time it was a long sleep
	pass()
	l.there(t, runs, 1)
	c.Advance(aDay)
	pass()
	l.there(t, runs)
}

func TestBelieve(t *testing.T) {
	at := func(h int) time.Time { return noon.Add(time.Duration(h) * time.Hour) }
	never := time.Time{}
	for name, tc := range map[string]struct {
		is        store.Clock
		now, want time.Time
		next      store.Clock
	}{
		"first look":     {store.Clock{}, at(0), never, store.Clock{Since: at(0)}},
		"a day of it":    {store.Clock{Since: at(0)}, at(24), at(24), store.Clock{Trusted: at(24)}},
		"less than that": {store.Clock{Since: at(0)}, at(23), never, store.Clock{Since: at(0)}},
		"as usual":       {store.Clock{Trusted: at(0)}, at(1), at(1), store.Clock{Trusted: at(1)}},
		"a step back":    {store.Clock{Trusted: at(0)}, at(-9000), at(-9000), store.Clock{Trusted: at(-9000)}},
		"a leap":         {store.Clock{Trusted: at(0)}, at(25), at(0), store.Clock{Trusted: at(0), Since: at(25)}},
		"goes on":        {store.Clock{Trusted: at(0), Since: at(25)}, at(40), at(0), store.Clock{Trusted: at(0), Since: at(25)}},
		"believed":       {store.Clock{Trusted: at(0), Since: at(25)}, at(49), at(49), store.Clock{Trusted: at(49)}},
		"taken back":     {store.Clock{Trusted: at(0), Since: at(9000)}, at(2), at(2), store.Clock{Trusted: at(2)}},
		"a smaller leap": {store.Clock{Trusted: at(0), Since: at(9000)}, at(100), at(0), store.Clock{Trusted: at(0), Since: at(100)}},
	} {
		got, next := believe(tc.is, tc.now)
		if !got.Equal(tc.want) || next != tc.next {
			t.Errorf("%s: %v %+v, want %v %+v", name, got, next, tc.want, tc.next)
		}
	}
}

// After a long time nothing is known of a run any more.
func TestTombstonesAreForgotten(t *testing.T) {
	t.Parallel()
	l, c := kept(t, Retention{Default: Bounds{MaxAge: aDay}, Tombstones: 10 * aDay})
	id := l.seed(t, "acme", noon.Add(-2*aDay), 1)
	l.pass(t)
	c.Advance(10*aDay - time.Millisecond)
	l.pass(t)
	l.there(t, []ids.Run{id})
	c.Advance(time.Millisecond)
	l.pass(t)
	if _, err := l.Head(t.Context(), reader, id); err == nil || problem.From(err).Code != problem.NotFound {
		t.Errorf("%v, want not found", err)
	}
}

// A caller of another tenant sees what he sees for any id, and one without the
// right sees that first.
func TestExpiredRunsAreNobodyElses(t *testing.T) {
	t.Parallel()
	l, _ := kept(t, Retention{Default: Bounds{MaxAge: aDay}})
	id := l.seed(t, "acme", noon.Add(-2*aDay), 1)
	l.pass(t)
	for code, caller := range map[problem.Code]struct {
		tenant string
		scope  string
	}{problem.IDTenantMismatch: {"other", "runs:read"}, problem.Forbidden: {"acme", "runs:create"}, problem.RunExpired: {"acme", "runs:read"}} {
		_, err := l.Head(t.Context(), asCaller(caller.tenant, caller.scope), id)
		if err == nil || problem.From(err).Code != code {
			t.Errorf("%+v: %v, want %s", caller, err, code)
		}
	}
}

// Whoever reads a log while its run expires reads events without a gap, and then
// that it has expired.
func TestReaderOfARunThatExpires(t *testing.T) {
	t.Parallel()
	l, _ := kept(t, Retention{Default: Bounds{MaxAge: aDay}})
	id := l.seed(t, "acme", noon.Add(-2*aDay), 3*streamEvents)
	log, err := l.OpenLog(t.Context(), reader, id, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	events, err := log.Next(t.Context(), nil)
	if err != nil || len(events) != streamEvents || events[0].Seq != 0 {
		t.Fatalf("%d events: %v", len(events), err)
	}
	l.pass(t)
	if _, err := log.Next(t.Context(), nil); err == nil || problem.From(err).Code != problem.RunExpired {
		t.Errorf("%v, want expired", err)
	}
	if _, err := l.OpenLog(t.Context(), reader, id, 511); err == nil || problem.From(err).Code != problem.RunExpired {
		t.Errorf("%v, want expired", err)
	}
}

func TestPruneCountsAndDeletes(t *testing.T) {
	t.Parallel()
	l, _ := kept(t, DefaultRetention())
	var runs []ids.Run
	for i := range 5 {
		runs = append(runs, l.seed(t, []string{"a", "b"}[i%2], noon.Add(time.Duration(-i)*time.Hour), 1))
	}
	hours := func(n int) *time.Duration { d := time.Duration(n) * time.Hour; return &d }
	count := func(n int) *int { return &n }
	prune := func(p Prune, want ...int) {
		t.Helper()
		got, err := l.Prune(t.Context(), p)
		if err != nil || got.Tenants["a"] != want[0] || got.Tenants["b"] != want[1] || got.Total != want[0]+want[1] {
			t.Errorf("%+v: %+v %v, want %v", p, got, err, want)
		}
	}
	prune(Prune{DryRun: true}, 0, 0)
	prune(Prune{DryRun: true, OlderThan: hours(0)}, 3, 2)
	prune(Prune{DryRun: true, OlderThan: hours(2), Tenant: "a"}, 2, 0)
	prune(Prune{DryRun: true, Keep: count(1)}, 2, 1)
	prune(Prune{DryRun: true, Keep: count(0)}, 3, 2)
	prune(Prune{DryRun: true, Keep: count(9)}, 0, 0)
	prune(Prune{DryRun: true, Keep: count(2), OlderThan: hours(3)}, 1, 1)
	l.there(t, runs, 0, 1, 2, 3, 4)
	prune(Prune{Keep: count(1)}, 2, 1)
	l.there(t, runs, 0, 1)
	for _, p := range []Prune{{Tenant: "no tenant"}, {Keep: count(-1)}, {OlderThan: hours(-1)}} {
		if _, err := l.Prune(t.Context(), p); err == nil || problem.From(err).Code != problem.ValidationError {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

func TestRetentionDays(t *testing.T) {
	for i, tc := range []struct {
		r     Retention
		days  int
		known bool
	}{
		{DefaultRetention(), 365, true},
		{Retention{}, 0, false},
		{Retention{Default: Bounds{MaxAge: 30*aDay + time.Hour}, Tenants: map[string]Bounds{"a": {MaxAge: 7 * aDay}, "b": {}}}, 7, true},
		{Retention{Default: Bounds{MaxAge: 30 * aDay}, Tenants: map[string]Bounds{"a": {MaxRuns: 5}}}, 0, false},
	} {
		if days, known := tc.r.Days(); known != tc.known || known && days != tc.days {
			t.Errorf("%d: %d %v", i, days, known)
		}
	}
	for _, r := range []Retention{{Default: Bounds{MaxAge: time.Hour}}, {Default: Bounds{MaxRuns: -1}}, {Tombstones: -1}, {Tenants: map[string]Bounds{"a b": {}}}} {
		if r.Check() == nil {
			t.Errorf("%+v is let through", r)
		}
	}
}

// pages records how much retention asks for at once.
type pages struct {
	store.Store
	mu   sync.Mutex
	most int
}

func (p *pages) Retention() store.Retention { return pagesRetention{p.Store.Retention(), p} }

type pagesRetention struct {
	store.Retention
	p *pages
}

func (r pagesRetention) Ended(ctx context.Context, q store.EndedQuery) ([]store.Run, error) {
	rows, err := r.Retention.Ended(ctx, q)
	r.p.mu.Lock()
	defer r.p.mu.Unlock()
	r.p.most = max(r.p.most, len(rows))
	return rows, err
}

// A tenant with very many old runs is swept a page at a time, whatever their
// number. The long form has a hundred thousand.
func TestManyOldRuns(t *testing.T) {
	l, _ := kept(t, Retention{Default: Bounds{MaxAge: aDay}})
	n := 3_000
	if os.Getenv("FERMATA_LONG") != "" {
		n = 100_000
	}
	var wg sync.WaitGroup
	for w := range 50 {
		wg.Go(func() {
			for i := range n / 50 {
				l.seed(t, "acme", noon.Add(-2*aDay).Add(time.Duration(-w*n-i)*time.Millisecond), 1)
			}
		})
	}
	wg.Wait()
	p := &pages{Store: l.db}
	l.store = p
	l.pass(t)
	rows, err := l.db.Runs().List(t.Context(), store.ListQuery{Tenant: "acme", Limit: 10})
	if err != nil || len(rows) != 0 {
		t.Errorf("%d runs are left: %v", len(rows), err)
	}
	if p.most != walkRuns {
		t.Errorf("up to %d runs were read at once", p.most)
	}
	if got, err := l.db.Retention().Forget(t.Context(), noon, 0); err != nil || got != n {
		t.Errorf("%d tombstones, want %d: %v", got, n, err)
	}
}

// A sweep that fails goes on with the next pass, and one whose host ends stops.
func TestSweepGoesOn(t *testing.T) {
	t.Parallel()
	l, _ := kept(t, Retention{Default: Bounds{MaxAge: aDay}})
	id := l.seed(t, "acme", noon.Add(-2*aDay), 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.expirePass(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	l.there(t, []ids.Run{id}, 0)
	l.pass(t)
	l.there(t, []ids.Run{id})
}
