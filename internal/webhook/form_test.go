package webhook

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
)

// shout is the form of a major that has everything in capitals, and tells nobody of the
// first event.
type shout struct{}

func (shout) Agent() string                 { return "shouter/1" }
func (shout) ID(_, id string) string        { return strings.ToUpper(id) }
func (shout) EventType(t event.Type) string { return strings.ToUpper(string(t)) }
func (shout) Body(o *event.Owner, e *event.Event) ([]byte, error) {
	if e.Seq == 0 {
		return nil, nil
	}
	return fmt.Appendf(nil, `{"RUN":%q,"TENANT":%q,"SEQ":%d}`, e.Run.Opaque, o.Tenant, e.Seq), nil
}
func (shout) Callback(c *Called) ([]byte, error) {
	return fmt.Appendf(nil, `{"CALLBACK":%q,"DELIVERY":"%s/%s"}`, c.Token, c.Tenant, c.DeliveryID), nil
}

// TestFormOfAnOlderMajor: whoever has subscribed under an older major is sent what that
// major looks like, beside others of this one, and every delivery has its headers in
// either family.
func TestFormOfAnOlderMajor(t *testing.T) {
	l := newLab(t, func(c *Config) { c.Older = shout{} })
	old := l.subscribe("acme", "/old", func(s *store.Subscription) { s.Major = 1 })
	now := l.subscribe("acme", "/now")
	id := l.begin("acme", 3)
	w := l.work()
	l.idle(w)
	got := l.world.calls("/old")
	if len(got) != 2 {
		t.Fatalf("%d deliveries, want 2: one of three events is nothing to tell", len(got))
	}
	for i, c := range got {
		h := c.header
		if string(c.body) != fmt.Sprintf(`{"RUN":%q,"TENANT":"acme","SEQ":%d}`, id.Opaque, i+1) {
			t.Errorf("%s", c.body)
		}
		if h.Get("User-Agent") != "shouter/1" || h.Get("OpenWOP-Webhook-Id") != strings.ToUpper(old.ID) || h.Get("OpenWOP-Event-Type") != "LOG.APPENDED" {
			t.Errorf("%v", h)
		}
	}
	if n := len(l.world.calls("/now")); n != 3 {
		t.Fatalf("%d deliveries in the form of this major, want 3", n)
	}
	for _, c := range append(got, l.world.calls("/now")...) {
		for _, name := range []string{"Webhook-Id", "Event-Type", "Timestamp", "Signature", "Signature-Algorithm"} {
			if v := c.header.Get("X-openwop-" + name); v == "" || v != c.header.Get("OpenWOP-"+name) {
				t.Errorf("%s: %q and %q", name, v, c.header.Get("OpenWOP-"+name))
			}
		}
	}
	if c := l.world.calls("/now")[0]; c.header.Get("User-Agent") != "test" || c.header.Get("OpenWOP-Webhook-Id") != "acme/"+now.ID || c.run != id.String() {
		t.Errorf("%v %s", c.header, c.body)
	}
}

// TestOneMajorAlone: a host of this major says nothing of another.
func TestOneMajorAlone(t *testing.T) {
	l := newLab(t)
	l.subscribe("acme", "/now")
	l.begin("acme", 1)
	l.idle(l.work())
	for _, c := range l.world.calls("/now") {
		for name := range c.header {
			if strings.HasPrefix(strings.ToLower(name), "x-openwop") {
				t.Errorf("%s", name)
			}
		}
	}
}

// TestMajorThatIsNotServed: a receiver that knows only a major which is not served any
// more is sent nothing it cannot read. What it does not get can be read of, is not tried
// again, and harms nobody else.
func TestMajorThatIsNotServed(t *testing.T) {
	l := newLab(t)
	old := l.subscribe("acme", "/old", func(s *store.Subscription) { s.Major = 1 })
	l.subscribe("acme", "/now")
	id := l.begin("acme", 3)
	w := l.work()
	l.idle(w)
	if n := len(l.world.calls("/old")); n != 0 {
		t.Errorf("%d deliveries", n)
	}
	if n := len(l.world.calls("/now")); n != 3 {
		t.Errorf("%d deliveries of this major", n)
	}
	letters := l.letters(old)
	if len(letters) != 3 {
		t.Fatalf("%d dead letters, want 3", len(letters))
	}
	for _, d := range letters {
		if d.Reason != "payload_unprojectable" || d.Attempts != 0 || d.LastStatus != 0 || d.Run != id {
			t.Errorf("%+v", d)
		}
	}
	if s, err := l.s.Webhooks().Get(t.Context(), "acme", old.ID); err != nil || !s.DisabledAt.IsZero() {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestCallbackOfAnOlderMajor: a run's callback URL is told in the form of the major under
// which it was given, and nothing where that is not served.
func TestCallbackOfAnOlderMajor(t *testing.T) {
	for _, served := range []bool{true, false} {
		l := newLab(t)
		var majors []int
		l.cfg.Callback = func(_ context.Context, row store.Run, e *event.Event, major int) (*Called, error) {
			majors = append(majors, major)
			return &Called{Run: row.ID, Event: e, Token: "t"}, nil
		}
		if served {
			l.cfg.Older = shout{}
		}
		l.begin("acme", 2, func(s *run.State, a *store.Append) {
			s.CallbackURL, s.CallbackMajor = l.world.http.URL+"/back", 1
			a.Events[1].Type = event.InterruptRequested
		})
		l.idle(l.work())
		got := l.world.calls("/back")
		if !served {
			if len(got)+len(majors) != 0 {
				t.Errorf("%d calls, asked for %v", len(got), majors)
			}
			continue
		}
		if len(got) != 1 || fmt.Sprint(majors) != "[1]" || !strings.HasPrefix(string(got[0].body), `{"CALLBACK":"t","DELIVERY":"acme/`) {
			t.Fatalf("%d calls, %v", len(got), majors)
		}
		if h := got[0].header; h.Get("OpenWOP-Event-Type") != "INTERRUPT.REQUESTED" || h.Get("X-openwop-Event-Type") != "INTERRUPT.REQUESTED" {
			t.Errorf("%v", h)
		}
	}
}

// broken cannot say what it is asked for.
type broken struct{ shout }

func (broken) Body(*event.Owner, *event.Event) ([]byte, error) { return nil, errors.New("broken") }

// TestFormThatFails: what cannot be written is put off, and nothing is lost.
func TestFormThatFails(t *testing.T) {
	l := newLab(t, func(c *Config) { c.Older = broken{} })
	old := l.subscribe("acme", "/old", func(s *store.Subscription) { s.Major = 1 })
	l.begin("acme", 1)
	l.idle(l.work())
	if n, letters := len(l.world.calls("/old")), l.letters(old); n != 0 || len(letters) != 0 {
		t.Errorf("%d calls, %v", n, letters)
	}
	if at, err := l.s.Deliveries().NextDue(t.Context()); err != nil || at.IsZero() {
		t.Errorf("due at %s, %v", at, err)
	}
}
