package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/store"
)

// TestDelivery: every event asked for arrives once, in the order of its run, with
// the five headers and a signature that fits; others do not arrive.
func TestDelivery(t *testing.T) {
	l := newLab(t)
	s := l.subscribe("acme", "/a", func(s *store.Subscription) { s.Events = []string{"log.appended"} })
	l.subscribe("other", "/other")
	w := l.work()
	id := l.begin("acme", 70) // more than one read of the log
	l.idle(w)
	got := l.world.calls("/a")
	if len(got) != 69 {
		t.Fatalf("%d deliveries, want 69", len(got))
	}
	for i, c := range got {
		if c.run != id.String() || c.seq != int64(i+1) {
			t.Fatalf("delivery %d is of event %d of %s", i, c.seq, c.run)
		}
		stamp := c.header.Get("OpenWOP-Timestamp")
		want := "sha256=" + hex.EncodeToString(mac([]byte("the secret"), stamp+".", c.body))
		if c.header.Get("OpenWOP-Signature") != want || stamp != fmt.Sprint(epoch.Unix()) ||
			c.header.Get("OpenWOP-Webhook-Id") != "acme/"+s.ID || c.header.Get("OpenWOP-Event-Type") != "log.appended" ||
			c.header.Get("OpenWOP-Signature-Algorithm") != "v1" || c.header.Get("webhook-id") != "" {
			t.Fatalf("headers are %v", c.header)
		}
	}
	if n := len(l.world.calls("/other")); n != 0 {
		t.Errorf("another tenant's subscriber got %d deliveries", n)
	}
	if len(l.world.twice) > 0 {
		t.Errorf("at once: %v", l.world.twice)
	}
}

func mac(key []byte, prefix string, body []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(prefix))
	h.Write(body)
	return h.Sum(nil)
}

// TestRetries: a failed delivery comes again after longer and longer, under the
// same id, and ends among the dead letters, which hold nothing of either side.
func TestRetries(t *testing.T) {
	l := newLab(t)
	key := base64.StdEncoding.EncodeToString([]byte("0123456789012345678901234"))
	s := l.subscribe("acme", "/a", func(s *store.Subscription) {
		s.Events, s.Secret = []string{"run.started"}, "whsec_"+key
		s.Algorithms = []string{SchemeV1, SchemeStandard}
	})
	l.world.on("/a", func(n int, w http.ResponseWriter) { status([]int{0, 500, 302, 404}[n])(n, w) })
	w := l.work()
	id := l.begin("acme", 1)
	var seen []string
	for n, wait := range []time.Duration{0, time.Second, 4 * time.Second} {
		if wait > 0 {
			l.pass(wait - time.Millisecond)
			l.idle(w)
			if got := len(l.world.calls("/a")); got != n {
				t.Fatalf("%d attempts before the wait of %s is over, want %d", got, wait, n)
			}
			l.pass(time.Millisecond)
		}
		l.until("the next attempt", func() bool { return len(l.world.calls("/a")) == n+1 })
		l.idle(w)
		c := l.world.calls("/a")[n]
		seen = append(seen, c.header.Get("webhook-id"))
		want := "v1," + base64.StdEncoding.EncodeToString(mac([]byte("0123456789012345678901234"), seen[n]+"."+c.header.Get("webhook-timestamp")+".", c.body))
		if c.header.Get("webhook-signature") != want || c.header.Get("webhook-timestamp") != c.header.Get("OpenWOP-Timestamp") {
			t.Errorf("attempt %d: %v", n+1, c.header)
		}
	}
	if seen[0] != seen[1] || seen[0] != seen[2] || len(seen[0]) < 16 {
		t.Errorf("the delivery's id is %v over its attempts", seen)
	}
	want := store.DeadLetter{
		Tenant: "acme", Subscription: s.ID, ID: seen[0], Run: id, EventID: id.Opaque + "-0", EventType: "run.started", Attempts: 3,
		Reason: "retries_exhausted", LastStatus: 404, At: l.clock.Now(), ExpiresAt: l.clock.Now().Add(time.Hour),
	}
	if got := l.letters(s); len(got) != 1 || got[0] != want {
		t.Errorf("dead letters are %+v, want %+v", got, want)
	}
	l.pass(24 * time.Hour)
	l.idle(w)
	if n := len(l.world.calls("/a")); n != 3 {
		t.Errorf("%d attempts at a delivery that was given up after 3", n)
	}
}

// TestBackoffIsJitteredAndBounded looks at waits without waiting.
func TestBackoffIsJitteredAndBounded(t *testing.T) {
	p := Policy{}.withDefaults()
	for n := 1; n < 60; n++ {
		low, high := p.wait(n, longestWait, 0), p.wait(n, longestWait, 1)
		if low < time.Second || high > longestWait || high != 2*low && high-2*low > 1 {
			t.Errorf("after %d failures: from %s to %s", n, low, high)
		}
		if next := p.wait(n+1, longestWait, 1); next < high {
			t.Errorf("the wait shrinks after %d failures", n)
		}
	}
}

// TestRetryAfterIsHonoured within bounds, and only where it means something.
func TestRetryAfterIsHonoured(t *testing.T) {
	for _, c := range []struct {
		code  int
		value string
		want  time.Duration
	}{
		{503, "120", 2 * time.Minute}, {429, "100000000", longestAsked}, {503, "soon", time.Second},
		{503, epoch.Add(90 * time.Second).Format(http.TimeFormat), 90 * time.Second}, {500, "120", time.Second},
		{503, "0", time.Second}, {503, "-5", time.Second},
	} {
		t.Run(fmt.Sprint(c.code, c.value), func(t *testing.T) {
			l := newLab(t)
			l.subscribe("acme", "/a", func(s *store.Subscription) { s.Events = []string{"run.started"} })
			l.world.on("/a", func(_ int, w http.ResponseWriter) {
				w.Header().Set("Retry-After", c.value)
				w.WriteHeader(c.code)
			})
			w := l.work()
			l.begin("acme", 1)
			l.until("the first attempt", func() bool { return len(l.world.calls("/a")) == 1 })
			l.idle(w)
			next, err := l.s.Deliveries().NextDue(t.Context())
			l.ok(err)
			if got := next.Sub(epoch); got != c.want {
				t.Errorf("comes again after %s, want %s", got, c.want)
			}
		})
	}
}

// TestDeadEndpointIsDisabled: it is asked once at a time and ever more rarely, then
// not at all; what waits is held, and delivered when somebody enables it.
func TestDeadEndpointIsDisabled(t *testing.T) {
	l := newLab(t)
	s := l.subscribe("acme", "/a", func(s *store.Subscription) { s.Events = []string{"run.started"} })
	l.world.on("/a", status(500))
	w := l.work()
	for n := range 20 {
		l.begin("acme", 1)
		if n >= failing {
			continue // it is known to fail by now, and rests
		}
		l.until("the attempt", func() bool { return len(l.world.calls("/a")) == n+1 })
		l.idle(w)
	}
	disabled := func() bool {
		x, err := l.s.Webhooks().Get(t.Context(), s.Tenant, s.ID)
		l.ok(err)
		return !x.DisabledAt.IsZero()
	}
	rests := []time.Duration{}
	for n := 0; !disabled(); n++ {
		before, at := len(l.world.calls("/a")), l.clock.Now()
		next, err := l.s.Deliveries().NextDue(t.Context())
		l.ok(err)
		l.pass(next.Sub(at))
		rests = append(rests, next.Sub(at))
		l.until("another attempt", func() bool { return len(l.world.calls("/a")) > before || disabled() })
		l.idle(w)
		if got := len(l.world.calls("/a")) - before; got > perFailing {
			t.Errorf("%d attempts at once at an endpoint that takes nothing", got)
		}
		if n > 500 {
			t.Fatal("it is never disabled")
		}
		l.begin("acme", 1) // there is always something new for it
	}
	if since := l.clock.Now().Sub(epoch); since < 6*time.Hour {
		t.Errorf("it is disabled after %s", since)
	}
	if last := rests[len(rests)-1]; last < 10*time.Minute || last > longestRest {
		t.Errorf("it rests for %s in the end", last)
	}
	if len(rests) > 400 {
		t.Errorf("%d attempts before it was disabled", len(rests))
	}
	x, err := l.s.Webhooks().Get(t.Context(), s.Tenant, s.ID)
	l.ok(err)
	if !strings.Contains(x.Reason, "HTTP 500") || strings.Contains(x.Reason, "subscriber says") || strings.Contains(x.Reason, "127.0.0.1") {
		t.Errorf("the reason is %q", x.Reason)
	}
	before := len(l.world.calls("/a"))
	l.begin("acme", 1)
	l.pass(holdFor - time.Second)
	l.idle(w)
	if got := len(l.world.calls("/a")); got != before {
		t.Errorf("%d attempts at an endpoint that was disabled", got-before)
	}
	l.world.on("/a", nil)
	id := l.begin("acme", 1)
	l.ok(l.s.Webhooks().Enable(t.Context(), s.Tenant, s.ID, l.clock.Now()))
	l.outbox.wake()
	l.until("what has waited", func() bool {
		return slices.ContainsFunc(l.world.calls("/a"), func(c call) bool { return c.run == id.String() })
	})
	l.idle(w)
	if next, err := l.s.Deliveries().NextDue(t.Context()); err != nil || !next.IsZero() {
		t.Errorf("something is left, due at %s: %v", next, err)
	}
}

// TestDisabledForTooLong: what a disabled subscription holds ends as dead letters.
func TestDisabledForTooLong(t *testing.T) {
	l := newLab(t, func(c *Config) { c.Policy.MaxAttempts, c.Policy.DisableAfter = 1, time.Second })
	s := l.subscribe("acme", "/a", func(s *store.Subscription) { s.Events = []string{"run.started", "log.appended"} })
	l.world.on("/a", status(503))
	w := l.work()
	l.begin("acme", 3)
	l.until("three dead letters", func() bool { return len(l.letters(s)) == 3 })
	l.idle(w)
	l.pass(time.Minute)
	l.begin("acme", 1)
	l.until("the subscription is disabled", func() bool {
		x, err := l.s.Webhooks().Get(t.Context(), s.Tenant, s.ID)
		l.ok(err)
		return !x.DisabledAt.IsZero()
	})
	l.idle(w)
	calls := len(l.world.calls("/a"))
	l.begin("acme", 2)
	l.pass(holdFor)
	l.idle(w)
	if got := l.letters(s); len(got) != 2 || got[0].Attempts != 0 || len(l.world.calls("/a")) != calls {
		// The three before have reached their end meanwhile.
		t.Errorf("dead letters are %+v, and %d attempts were made", got, len(l.world.calls("/a"))-calls)
	}
}

// TestSilentEndpointsDelayNobody: eight endpoints that never answer, with more
// waiting for each than may be under way, hold up neither another of the tenant nor
// another tenant (spec v2 webhooks.md §Delivery isolation).
func TestSilentEndpointsDelayNobody(t *testing.T) {
	l := newLab(t)
	for i := range 40 {
		path := fmt.Sprint("/silent", i)
		l.world.on(path, l.world.hold)
		l.subscribe("acme", path)
	}
	w := l.work()
	for range perTarget + 4 {
		l.begin("acme", 1)
	}
	l.until("the silent ones hold what they may", func() bool {
		w.room.mu.Lock()
		defer w.room.mu.Unlock()
		return w.room.left("acme") <= 0
	})
	l.subscribe("other", "/other")
	l.begin("other", 3)
	l.until("the other tenant's deliveries", func() bool { return len(l.world.calls("/other")) == 3 })
	w.room.mu.Lock()
	defer w.room.mu.Unlock()
	if w.room.total >= capacity {
		t.Errorf("one tenant has filled all %d places", capacity)
	}
	for key, n := range w.room.targets {
		if n > perTarget {
			t.Errorf("%d under way at %v", n, key)
		}
	}
}

// TestNineOfOneTenant: with eight silent subscribers, the ninth is served.
func TestNineOfOneTenant(t *testing.T) {
	l := newLab(t)
	for i := range 8 {
		path := fmt.Sprint("/silent", i)
		l.world.on(path, l.world.hold)
		l.subscribe("acme", path)
	}
	l.subscribe("acme", "/healthy")
	l.work()
	l.begin("acme", 2)
	l.until("the ninth", func() bool { return len(l.world.calls("/healthy")) == 2 })
}

// TestTwoWorkersNeverDeliverAtOnce: with several workers on one queue, no event is
// delivered twice and none of a run beside another of it.
func TestTwoWorkersNeverDeliverAtOnce(t *testing.T) {
	l := newLab(t)
	l.subscribe("acme", "/a")
	for range 3 {
		l.work()
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 15 {
				l.begin("acme", 4)
			}
		})
	}
	wg.Wait()
	l.until("everything", func() bool {
		l.outbox.wake()
		return len(l.world.calls("/a")) >= 4*15*4
	})
	l.until("rest", func() bool {
		next, err := l.s.Deliveries().NextDue(t.Context())
		l.ok(err)
		return next.IsZero()
	})
	count, last := map[string]int{}, map[string]int64{}
	for _, c := range l.world.calls("/a") {
		count[fmt.Sprint(c.run, c.seq)]++
		if c.seq < last[c.run] {
			t.Errorf("event %d of %s came behind event %d", c.seq, c.run, last[c.run])
		}
		last[c.run] = c.seq
	}
	for k, n := range count {
		if n != 1 {
			t.Errorf("%s was delivered %d times", k, n)
		}
	}
	if len(l.world.twice) > 0 || len(count) != 240 {
		t.Errorf("%d events; at once: %v", len(count), l.world.twice)
	}
}
