package host

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/audit"
	"github.com/fermata-run/fermata/internal/clock"
	"github.com/fermata-run/fermata/internal/engine"
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/internal/store/sqlite"
	"github.com/fermata-run/fermata/node"
	"github.com/go-json-experiment/json"
)

// few is a catalogue of a node that does nothing, and of one that waits.
type few struct{}

func (few) Type(id string) (*node.Type, bool) {
	switch id {
	case "core.noop":
		return &node.Type{ID: id, Pure: true, Run: func(context.Context, *node.Input) (node.Result, error) { return node.Result{}, nil }}, true
	case "test.wait":
		return &node.Type{ID: id, Run: func(ctx context.Context, _ *node.Input) (node.Result, error) {
			<-ctx.Done()
			return node.Result{}, ctx.Err()
		}}, true
	}
	return nil, false
}

// unmoved is a store that does not move schedules on while it is told so: a process
// that has died between a run and what it wanted to say of it.
type unmoved struct {
	store.Store
	on atomic.Bool
}

func (u *unmoved) Schedules() store.Schedules { return unmovedSchedules{u.Store.Schedules(), u} }

type unmovedSchedules struct {
	store.Schedules
	u *unmoved
}

var errGone = errors.New("the process is gone")

func (s unmovedSchedules) Move(ctx context.Context, x store.Schedule) error {
	if s.u.on.Load() {
		return errGone
	}
	return s.Schedules.Move(ctx, x)
}

// clockwork is a host whose loop is driven by hand.
type clockwork struct {
	*Host
	t     *testing.T
	db    *unmoved
	clock *clock.Manual
}

func newClockwork(t *testing.T, limits Limits) *clockwork {
	t.Helper()
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "h.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := &clockwork{t: t, db: &unmoved{Store: db}, clock: clock.NewManual(noon)}
	eng := engine.New(engine.Config{Store: c.db, Catalog: few{}, Clock: c.clock})
	if err := eng.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Host = New(Config{Store: c.db, Engine: eng, Catalog: few{}, Clock: c.clock, Limits: limits})
	if err := db.Tenants().Add(t.Context(), store.Tenant{ID: "acme", State: store.TenantActive}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		over, cancel := context.WithCancel(context.Background())
		cancel()
		eng.Stop(over) //nolint:errcheck // nobody waits for a node that never ends
		db.Close()
	})
	return c
}

var author = asCaller("acme", identity.WorkflowsWrite, identity.RunsCreate, identity.ManifestRead)

func scheduledFlow(id, version, typeID, triggers string) []byte {
	return fmt.Appendf(nil, `{"id":%q,"name":"n","version":%q,"nodes":[{"id":"a","typeId":%q,"name":"a","position":{"x":0,"y":0},"config":{},"inputs":{}}],
		"edges":[],"triggers":[%s],"variables":[{"name":"n","type":"number"}],"metadata":{},"settings":{}}`, id, version, typeID, triggers)
}

func trigger(config string) string {
	return `{"id":"t","type":"schedule","config":` + config + `}`
}

func (c *clockwork) put(version, typeID, triggers string) {
	c.t.Helper()
	if _, err := c.PutWorkflow(c.t.Context(), author, "w", scheduledFlow("w", version, typeID, triggers)); err != nil {
		c.t.Fatal(err)
	}
}

// at moves the clock and lets the loop do what there is to do.
func (c *clockwork) at(d time.Duration) {
	c.t.Helper()
	if now := noon.Add(d); now.After(c.clock.Now()) {
		c.clock.Advance(now.Sub(c.clock.Now()))
	}
	c.passes(nil)
}

func (c *clockwork) passes(want error) {
	c.t.Helper()
	for range 1000 {
		wait, err := c.tickPass(c.t.Context())
		if !errors.Is(err, want) {
			c.t.Fatal(err)
		}
		if wait > 0 || err != nil {
			return
		}
	}
	c.t.Fatal("there is no end to it")
}

// ticks are the ticks that runs came of, by their logs, oldest first.
func (c *clockwork) ticks() (out []string) {
	c.t.Helper()
	rows := listRuns(c.t, c.db)
	for i := len(rows) - 1; i >= 0; i-- {
		_, events, err := c.db.Runs().Events(c.t.Context(), rows[i].ID, -1, 1, 0)
		if err != nil {
			c.t.Fatal(err)
		}
		p, err := event.Read[event.Started](events[0].Payload)
		if err != nil || p.X.Trigger == nil || p.X.Trigger.ID != "t" || p.Owner.Subject.SubjectID != "s" {
			c.t.Fatalf("started with %s: %v", events[0].Payload, err)
		}
		at, err := time.Parse(time.RFC3339, p.X.Trigger.Tick)
		if err != nil {
			c.t.Fatal(err)
		}
		out = append(out, at.Sub(noon).String())
	}
	return out
}

func (c *clockwork) wants(ticks ...string) {
	c.t.Helper()
	if got := c.ticks(); fmt.Sprint(got) != fmt.Sprint(ticks) {
		c.t.Fatalf("runs for %v, want %v", got, ticks)
	}
}

// skips are why ticks were left out, as the audit log has it.
func (c *clockwork) skips() (out []string) {
	c.t.Helper()
	list, err := c.db.Audit().Entries(c.t.Context(), "acme", 0, 1000)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, e := range list {
		var f audit.Entry
		if err := json.Unmarshal(e.Body, &f); err != nil {
			c.t.Fatal(err)
		}
		if f.Action == "schedule.skip" {
			at, _ := time.Parse(time.RFC3339, f.Detail["tick"])
			out = append(out, at.Sub(noon).String()+" "+f.Detail["reason"])
		}
	}
	return out
}

func (c *clockwork) wantsSkips(skips ...string) {
	c.t.Helper()
	if got := c.skips(); fmt.Sprint(got) != fmt.Sprint(skips) {
		c.t.Fatalf("left out %v, want %v", got, skips)
	}
}

func TestEachTickIsOneRun(t *testing.T) {
	c := newClockwork(t, DefaultLimits())
	c.put("1", "core.noop", trigger(`{"every":"1h","inputs":{"n":7}}`))
	c.at(0)
	c.at(59 * time.Minute)
	c.wants()
	c.at(time.Hour)
	c.at(time.Hour + time.Second)
	c.wants("1h0m0s")
	c.at(2*time.Hour + 30*time.Second)
	c.wants("1h0m0s", "2h0m0s")
	page, err := c.ListSchedules(t.Context(), author, "", 0)
	if err != nil || len(page.Schedules) != 1 {
		t.Fatalf("%+v, %v", page, err)
	}
	s := page.Schedules[0]
	if s.NextTick != run.Stamp(noon.Add(3*time.Hour)) || s.LastTick != run.Stamp(noon.Add(2*time.Hour)) || s.LastRunID == "" || s.Every != "1h0m0s" {
		t.Fatalf("%+v", s)
	}
	id, err := ids.ParseRun(s.LastRunID)
	if err != nil {
		t.Fatal(err)
	}
	_, events, err := c.db.Runs().Events(t.Context(), id, -1, 1, 0)
	if p, _ := event.Read[event.Started](events[0].Payload); err != nil || string(p.Inputs) != `{"n":7}` {
		t.Fatalf("inputs %s, %v", p.Inputs, err)
	}
}

func TestCatchUp(t *testing.T) {
	for mode, want := range map[string]struct{ ticks, skips []string }{
		"last": {[]string{"1h0m0s", "5h0m0s", "6h0m0s"}, []string{"2h0m0s superseded"}},
		"none": {[]string{"1h0m0s", "6h0m0s"}, []string{"2h0m0s superseded", "5h0m0s late"}},
		"all":  {[]string{"1h0m0s", "2h0m0s", "3h0m0s", "4h0m0s", "5h0m0s", "6h0m0s"}, nil},
	} {
		t.Run(mode, func(t *testing.T) {
			c := newClockwork(t, DefaultLimits())
			c.put("1", "core.noop", trigger(`{"every":"1h","catchUp":"`+mode+`"}`))
			c.at(time.Hour)
			c.at(5*time.Hour + 30*time.Minute)
			c.at(6*time.Hour + time.Minute)
			c.wants(want.ticks...)
			c.wantsSkips(want.skips...)
		})
	}
	t.Run("all is bounded", func(t *testing.T) {
		c := newClockwork(t, DefaultLimits())
		c.put("1", "core.noop", trigger(`{"every":"1m","catchUp":"all"}`))
		c.at(300 * time.Minute)
		got := c.ticks()
		if len(got) != mostCaught || got[0] != "3h21m0s" || got[mostCaught-1] != "5h0m0s" {
			t.Fatalf("%d runs: %v", len(got), got)
		}
		c.wantsSkips("1m0s superseded")
	})
}

// A process may die between a run and the word that it was made, and the next one
// comes later: neither is there a second run, nor is the first forgotten.
func TestATickIsNotRunTwice(t *testing.T) {
	c := newClockwork(t, DefaultLimits())
	c.put("1", "test.wait", trigger(`{"every":"1h","overlap":"skip"}`))
	c.db.on.Store(true)
	c.clock.Advance(time.Hour)
	c.passes(errGone)
	c.wants("1h0m0s")
	c.db.on.Store(false)
	c.at(time.Hour + 30*time.Second)
	c.wants("1h0m0s") // the claim is still the dead one's
	c.at(time.Hour + 2*time.Minute)
	c.wants("1h0m0s")
	list, err := c.db.Schedules().List(t.Context(), "acme", "", "", 0)
	if err != nil || !list[0].LastAt.Equal(noon.Add(time.Hour)) || !list[0].NextAt.Equal(noon.Add(2*time.Hour)) {
		t.Fatalf("%+v, %v", list, err)
	}

	// The same, and the next tick is there before anybody is back: the run that nobody
	// has spoken of is active.
	c.wantsSkips()
	d := newClockwork(t, DefaultLimits())
	d.put("1", "test.wait", trigger(`{"every":"1h","overlap":"skip"}`))
	d.db.on.Store(true)
	d.clock.Advance(time.Hour)
	d.passes(errGone)
	d.db.on.Store(false)
	d.at(4*time.Hour + time.Minute)
	d.wants("1h0m0s")
	d.wantsSkips("2h0m0s superseded", "4h0m0s overlap")
}

func TestOverlap(t *testing.T) {
	c := newClockwork(t, DefaultLimits())
	c.put("1", "test.wait", trigger(`{"every":"1h","overlap":"skip"}`))
	c.at(time.Hour)
	c.at(2 * time.Hour)
	c.at(3 * time.Hour)
	c.wants("1h0m0s")
	c.wantsSkips("2h0m0s overlap", "3h0m0s overlap")
	list, _ := c.db.Schedules().List(t.Context(), "acme", "", "", 0)
	out := c.engine.Do(t.Context(), ids.Run{Tenant: "acme", Opaque: list[0].LastRun}, run.Cancel{Reason: "enough"})
	if out.Err != nil {
		t.Fatal(out.Err)
	}
	c.at(4 * time.Hour)
	c.wants("1h0m0s", "4h0m0s")
}

// A tick for which there is no room waits for it; one that is never had is kept in the
// audit log.
func TestATickWaitsForRoom(t *testing.T) {
	limits := DefaultLimits()
	limits.TenantActiveRuns = 1
	c := newClockwork(t, limits)
	c.put("1", "test.wait", trigger(`{"every":"1h"}`))
	c.at(time.Hour)
	c.at(2 * time.Hour)
	c.at(2*time.Hour + 10*time.Minute)
	c.wants("1h0m0s")
	c.at(3*time.Hour + 10*time.Second)
	c.wants("1h0m0s")
	c.wantsSkips("2h0m0s superseded")
	list, _ := c.db.Schedules().List(t.Context(), "acme", "", "", 0)
	if out := c.engine.Do(t.Context(), ids.Run{Tenant: "acme", Opaque: list[0].LastRun}, run.Cancel{Reason: "enough"}); out.Err != nil {
		t.Fatal(out.Err)
	}
	c.at(3*time.Hour + time.Minute)
	c.wants("1h0m0s", "3h0m0s")
}

func TestASuspendedTenantsSchedulesRest(t *testing.T) {
	c := newClockwork(t, DefaultLimits())
	c.put("1", "core.noop", trigger(`{"every":"1h"}`))
	set := func(state string) {
		t.Helper()
		x, err := c.db.Tenants().Get(t.Context(), "acme")
		if err != nil {
			t.Fatal(err)
		}
		x.State = state
		if err := c.db.Tenants().Update(t.Context(), x); err != nil {
			t.Fatal(err)
		}
	}
	set(store.TenantSuspended)
	c.at(time.Hour)
	c.at(3 * time.Hour)
	c.wants()
	set(store.TenantActive)
	c.at(3*time.Hour + 10*time.Minute)
	c.wants("3h0m0s")
}

func TestSchedulesFollowTheLatestVersion(t *testing.T) {
	c := newClockwork(t, DefaultLimits())
	c.put("1", "core.noop", trigger(`{"every":"1h"}`))
	c.put("2", "core.noop", `{"id":"t","type":"schedule","enabled":false,"config":{"every":"1h"}}`)
	c.at(time.Hour)
	c.wants()
	c.put("1", "core.noop", trigger(`{"every":"1h"}`))
	c.at(2 * time.Hour)
	c.wants("2h0m0s")
	c.put("1", "core.noop", trigger(`{"every":"1h"}`)) // does not make 2h come again
	c.at(2*time.Hour + time.Minute)
	c.wants("2h0m0s")
	c.put("3", "core.noop", trigger(`{"every":"30m"}`))
	c.at(2*time.Hour + 30*time.Minute)
	c.wants("2h0m0s", "2h30m0s")
	if err := c.DeleteWorkflow(t.Context(), author, "w"); err != nil {
		t.Fatal(err)
	}
	c.at(9 * time.Hour)
	c.wants("2h0m0s", "2h30m0s")
}

func TestWhoRegistersAScheduleMayStartRuns(t *testing.T) {
	c := newClockwork(t, DefaultLimits())
	writer := asCaller("acme", identity.WorkflowsWrite)
	_, err := c.PutWorkflow(t.Context(), writer, "w", scheduledFlow("w", "1", "core.noop", trigger(`{"every":"1h"}`)))
	if p := problem.From(err); p == nil || p.Code != problem.Forbidden || p.Details["requiredScope"] != identity.RunsCreate {
		t.Fatalf("%v", err)
	}
	if _, err := c.db.Workflows().Get(t.Context(), "acme", "w", ""); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("it was registered: %v", err)
	}
	off := `{"id":"t","type":"schedule","enabled":false,"config":{"every":"1h"}}`
	if _, err := c.PutWorkflow(t.Context(), writer, "w", scheduledFlow("w", "1", "core.noop", off)); err != nil {
		t.Fatal(err)
	}
}

// The loop itself waits for the next tick, hears of new schedules, and ends.
func TestTheLoopTicks(t *testing.T) {
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "h.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := newClock(10 * time.Second) // shorter than a look: only a tick is waited for so
	eng := engine.New(engine.Config{Store: db, Catalog: few{}, Clock: w})
	if err := eng.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	h := New(Config{Store: db, Engine: eng, Catalog: few{}, Clock: w, Limits: DefaultLimits()})
	t.Cleanup(func() { eng.Stop(context.Background()); db.Close() })
	if err := db.Tenants().Add(t.Context(), store.Tenant{ID: "acme", State: store.TenantActive}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); h.Tick(ctx) }()
	w.Advance(50 * time.Second)
	if _, err := h.PutWorkflow(t.Context(), author, "w", scheduledFlow("w", "1", "core.noop", trigger(`{"every":"1m"}`))); err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		<-w.waits // ten seconds to the next
		w.Advance(10 * time.Second)
		for next := w.Now(); !next.After(w.Now()) && t.Context().Err() == nil; runtime.Gosched() {
			if next, err = db.Schedules().NextDue(t.Context()); err != nil {
				t.Fatal(err)
			}
			if next.After(w.Now()) && len(listRuns(t, db)) <= n {
				next = w.Now() // it is in the loop's hands
			}
		}
		w.Advance(50 * time.Second)
		h.rescheduled()
	}
	cancel()
	<-done
	if n := len(listRuns(t, db)); n != 3 {
		t.Fatalf("%d runs", n)
	}
}

func listRuns(t *testing.T, db store.Store) []store.Run {
	t.Helper()
	rows, err := db.Runs().List(t.Context(), store.ListQuery{Tenant: "acme", Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

var _ flow.Catalog = few{}
