package webhook

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
)

// TestClaimOfADeadWorker: what a process had under way when it died is delivered by
// the next one at once, under the same id.
func TestClaimOfADeadWorker(t *testing.T) {
	l := newLab(t)
	s := l.subscribe("acme", "/a", func(s *store.Subscription) {
		s.Events, s.Algorithms, s.Secret = []string{"run.started"}, []string{SchemeV1, SchemeStandard}, NewSecret()
	})
	id := l.begin("acme", 1)
	taken, err := l.s.Deliveries().Take(t.Context(), store.TakeQuery{
		Instance: "i-1", Now: epoch, Until: epoch.Add(time.Hour), Quotas: []store.Quota{{Tenant: "acme", Target: s.ID, Limit: 1}},
	})
	if err != nil || len(taken) != 1 {
		t.Fatal(taken, err)
	}
	l.ok(l.s.Ownership().Register(t.Context(), "i-2"))
	l.cfg.Instance = func() string { return "i-2" }
	w := l.work()
	l.until("the delivery", func() bool { return len(l.world.calls("/a")) == 1 })
	l.idle(w)
	want := DeliveryID("acme", s.ID, id, 0, epoch)
	if got := l.world.calls("/a")[0].header.Get("webhook-id"); got != want {
		t.Errorf("the delivery's id is %q, want %q", got, want)
	}
}

// TestRemovedSubscription: nothing is sent to it any more, whatever was due.
func TestRemovedSubscription(t *testing.T) {
	l := newLab(t)
	s := l.subscribe("acme", "/a")
	l.world.on("/a", status(500))
	w := l.work()
	l.begin("acme", 3)
	l.until("the first attempt", func() bool { return len(l.world.calls("/a")) == 1 })
	l.idle(w)
	l.ok(l.s.Webhooks().Remove(t.Context(), s.Tenant, s.ID))
	l.begin("acme", 1)
	l.pass(24 * time.Hour)
	l.idle(w)
	if n := len(l.world.calls("/a")); n != 1 {
		t.Errorf("%d attempts, of which %d after the removal", n, n-1)
	}
}

// TestRotation: through the overlap v1 stays with the old secret and the standard
// has both; afterwards only the new one signs.
func TestRotation(t *testing.T) {
	l := newLab(t)
	s := l.subscribe("acme", "/a", func(s *store.Subscription) {
		s.Events, s.Algorithms, s.Secret = []string{"run.started"}, []string{SchemeV1, SchemeStandard}, NewSecret()
	})
	fresh := NewSecret()
	l.ok(l.s.Webhooks().Rotate(t.Context(), s.Tenant, s.ID, fresh, epoch, epoch.Add(time.Hour)))
	w := l.work()
	for n, c := range []struct {
		wait time.Duration
		v1   string
		both []string
	}{{0, s.Secret, []string{fresh, s.Secret}}, {time.Hour - time.Millisecond, s.Secret, []string{fresh, s.Secret}}, {time.Millisecond, fresh, []string{fresh}}} {
		l.pass(c.wait)
		l.begin("acme", 1)
		l.until("the delivery", func() bool { return len(l.world.calls("/a")) == n+1 })
		l.idle(w)
		got := l.world.calls("/a")[n]
		stamp, id := got.header.Get("webhook-timestamp"), got.header.Get("webhook-id")
		if got.header.Get("OpenWOP-Signature") != "sha256="+hex.EncodeToString(mac([]byte(c.v1), stamp+".", got.body)) {
			t.Errorf("delivery %d: v1 is not signed with the secret it should be", n)
		}
		var want []string
		for _, x := range c.both {
			want = append(want, "v1,"+base64.StdEncoding.EncodeToString(mac(StandardKey(x), id+"."+stamp+".", got.body)))
		}
		if have := strings.Fields(got.header.Get("webhook-signature")); !slices.Equal(have, want) {
			t.Errorf("delivery %d has the signatures %v, want %v", n, have, want)
		}
	}
}

// TestTags narrow to runs with one of them.
func TestTags(t *testing.T) {
	l := newLab(t)
	l.subscribe("acme", "/a", func(s *store.Subscription) { s.Events, s.Tags = []string{"run.started"}, []string{"x", "y"} })
	w := l.work()
	var want []string
	for _, tags := range [][]string{nil, {"z"}, {"z", "y"}, {"x"}, {"X"}} {
		id := l.begin("acme", 1, func(s *run.State, _ *store.Append) { s.Tags = tags })
		if slices.Contains(tags, "x") || slices.Contains(tags, "y") {
			want = append(want, id.String())
		}
	}
	l.idle(w)
	var got []string
	for _, c := range l.world.calls("/a") {
		got = append(got, c.run)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("deliveries of %v, want %v", got, want)
	}
}

// TestReplayIsNotDelivered: what a replay says again is no news, nor what a fork has
// inherited; a branch's own events are.
func TestReplayIsNotDelivered(t *testing.T) {
	l := newLab(t)
	l.subscribe("acme", "/a", func(s *store.Subscription) { s.Events = []string{"run.started", "interrupt.requested"} })
	l.cfg.Callback = func(_ context.Context, row store.Run, e *event.Event, _ int) (*Called, error) {
		return &Called{Run: row.ID, Event: e}, nil
	}
	w := l.work()
	var want, back []string
	for _, tc := range []struct {
		mode string
		from int64
		news bool
	}{{"replay", 0, false}, {"replay", 1, false}, {"branch", 0, true}, {"branch", 1, true}, {"branch", 2, false}, {"", 0, true}} {
		id := l.begin("acme", 2, func(s *run.State, a *store.Append) {
			a.Row.ForkMode, a.Row.ForkSeq = tc.mode, tc.from
			if tc.mode != "" {
				a.Row.ForkSource = a.Row.ID
			}
			s.CallbackURL = l.world.http.URL + "/callback"
			a.Events[0].Type, a.Events[1].Type = event.RunStarted, event.InterruptRequested
		})
		if tc.news {
			for seq := tc.from; seq < 2; seq++ {
				want = append(want, fmt.Sprintf("%s %d", id, seq))
			}
			back = append(back, id.String()+" 1")
		}
	}
	l.idle(w)
	for path, want := range map[string][]string{"/a": want, "/callback": back} {
		var got []string
		for _, c := range l.world.calls(path) {
			got = append(got, fmt.Sprintf("%s %d", c.run, c.seq))
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s got %v, want %v", path, got, want)
		}
	}
}

// TestStopCutsOffNothingThatCounts: a worker that ends leaves what it had under way
// to the next one, as if it had not been tried.
func TestStopCutsOffNothingThatCounts(t *testing.T) {
	l := newLab(t)
	s := l.subscribe("acme", "/a", func(s *store.Subscription) { s.Events = []string{"run.started"} })
	l.world.on("/a", l.world.hold)
	l.begin("acme", 1)
	ended := make(chan struct{})
	w := NewWorker(l.cfg)
	ctx, stop := contextOf(t)
	go func() {
		defer close(ended)
		w.Run(ctx)
	}()
	l.until("the attempt", func() bool { return len(l.world.calls("/a")) == 1 })
	stop()
	<-ended
	taken, err := l.s.Deliveries().Take(t.Context(), store.TakeQuery{
		Instance: "i-1", Now: epoch, Until: epoch.Add(time.Hour), Quotas: []store.Quota{{Tenant: "acme", Target: s.ID, Limit: 1}},
	})
	if err != nil || len(taken) != 1 || taken[0].Attempts != 0 || taken[0].Failures != 0 {
		t.Errorf("left is %+v: %v", taken, err)
	}
}

// brokenStore refuses to give deliveries away while it is full.
type brokenStore struct {
	store.Store
	full  atomic.Bool
	asked chan struct{}
}

type brokenDeliveries struct {
	store.Deliveries
	s *brokenStore
}

func (s *brokenStore) Deliveries() store.Deliveries { return brokenDeliveries{s.Store.Deliveries(), s} }

func (d brokenDeliveries) Take(ctx context.Context, q store.TakeQuery) ([]store.Delivery, error) {
	if !d.s.full.Load() {
		return d.Deliveries.Take(ctx, q)
	}
	d.s.asked <- struct{}{}
	return nil, errors.New("the disk is full")
}

// TestStoreThatFailsIsLeftAlone: a full disk is asked once a second, however much
// there is to do, and what was due goes out when there is room again.
func TestStoreThatFailsIsLeftAlone(t *testing.T) {
	b := &brokenStore{asked: make(chan struct{}, 1000)}
	l := newLab(t, func(c *Config) { b.Store, c.Store = c.Store, b })
	b.full.Store(true)
	l.subscribe("acme", "/hook")
	l.begin("acme", 1)
	l.work()
	for range 3 {
		l.until("the store is asked", func() bool {
			l.clock.Advance(restFailed)
			return len(b.asked) > 0
		})
		for len(b.asked) > 0 {
			<-b.asked
		}
		// Whatever was under way when the clock stopped has come to its end after one
		// more question at the most; news alone leads to none.
		for range 50 {
			l.outbox.wake()
			time.Sleep(time.Millisecond)
		}
		if n := len(b.asked); n > 1 {
			t.Fatalf("asked %d times more while the clock stands", n)
		}
	}
	b.full.Store(false)
	l.until("the delivery", func() bool {
		l.pass(restFailed)
		return len(l.world.calls("/hook")) == 1
	})
}
