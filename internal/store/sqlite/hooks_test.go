package sqlite

import (
	"context"
	"errors"
	"testing"

	"github.com/fermata-run/fermata/internal/store"
)

// asking remembers who it was offered last.
type asking struct{ offered, asked int }

func (a *asking) Match(subs []store.Subscription) []store.Queued {
	a.offered = len(subs)
	a.asked++
	return nil
}

// TestSubscriptionsAreAsTheyAreWritten: what the writer remembers of subscriptions
// is never what a transaction said that came to nothing, and tenants without any are
// not looked at.
func TestSubscriptionsAreAsTheyAreWritten(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{})
	sub := store.Subscription{Tenant: "acme", ID: mint.Next(noon), URL: "https://x.example/", Events: []string{"run.started"}, Secret: "s", CreatedAt: noon}
	append1 := func(m store.Matcher) func(ctx context.Context) error {
		a := newStep(1)
		a.Matcher = m
		return func(ctx context.Context) error { return s.Runs().Append(ctx, a) }
	}
	before, beside, after := &asking{}, &asking{}, &asking{}
	failed := errors.New("it is not to be")
	errs := gather(t, s,
		append1(before),
		func(ctx context.Context) error {
			return s.writer.submit(ctx, 0, func(c *conn) error {
				s.hooks.changed("acme")
				err := c.prep(insertHook).text(sub.Tenant).text(sub.ID).text(sub.URL).strings(sub.Events).null().null().
					null().null().null().text("").time(noon).text("s").text("").run()
				if list, readErr := s.hooks.of(c, "acme"); err == nil && (readErr != nil || len(list) != 1) {
					t.Errorf("within the write: %v %v", list, readErr)
				}
				return errors.Join(err, failed)
			})
		},
		append1(beside),
	)
	if errs[0] != nil || !errors.Is(errs[1], failed) || errs[2] != nil {
		t.Fatal(errs)
	}
	if err := append1(after)(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, m := range []*asking{before, beside, after} {
		if m.offered != 0 {
			t.Errorf("a subscription was offered that is not there: %+v", m)
		}
	}
	if list, ok := s.hooks.known["acme"]; !ok || len(list) != 0 {
		t.Errorf("a tenant without subscriptions is looked at each time: %v", list)
	}

	if err := s.Webhooks().Add(t.Context(), sub, 0); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		m := &asking{}
		if err := append1(m)(t.Context()); err != nil || m.offered != 1 || m.asked != 1 {
			t.Errorf("%+v %v", m, err)
		}
		s.Close()
		s = openTest(t, dir, Options{})
	}
}

// TestRemovalThatIsUndone: a subscription whose removal came to nothing is offered
// what happens next, also if a step of the same transaction has seen it gone.
func TestRemovalThatIsUndone(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	sub := store.Subscription{Tenant: "acme", ID: mint.Next(noon), URL: "https://x.example/", Events: []string{"run.started"}, Secret: "s", CreatedAt: noon}
	if err := s.Webhooks().Add(t.Context(), sub, 0); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("the disk is full")
	err := s.writer.submit(t.Context(), 0, func(c *conn) error {
		s.hooks.changed("acme")
		err := c.prep(removeHook).text("acme").text(sub.ID).run()
		if list, readErr := s.hooks.of(c, "acme"); err == nil && (readErr != nil || len(list) != 0) {
			t.Errorf("within the write: %v %v", list, readErr)
		}
		return errors.Join(err, failed)
	})
	if !errors.Is(err, failed) {
		t.Fatal(err)
	}
	m := &asking{}
	a := newStep(1)
	a.Matcher = m
	if err := s.Runs().Append(t.Context(), a); err != nil || m.offered != 1 {
		t.Errorf("%+v %v", m, err)
	}
}
