package host

import (
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/clock"
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/internal/store/sqlite"
	"github.com/fermata-run/fermata/internal/token"
)

// keeper is a host of which only the tokens are put to use.
func keeper(t *testing.T, dir string, clk clock.Clock) (*Host, store.Store) {
	t.Helper()
	db, err := sqlite.Open(filepath.Join(dir, "fermata.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := db.Tenants().Add(t.Context(), store.Tenant{ID: "acme", State: store.TenantActive}); err != nil && !errors.Is(err, store.ErrExists) {
		t.Fatal(err)
	}
	return New(Config{Store: db, Clock: clk}), db
}

var day = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func claims(intent string, end time.Time) token.Claims {
	id := ids.Run{Tenant: "acme", Opaque: "run-0000000000000001"}
	return token.Claims{
		Run: id, NodeID: "gate", Interrupt: ids.Interrupt(id, "gate", 1, 0), Intent: intent, ExpiresAt: end,
		Subject: event.Subject{Issuer: "urn:test", SubjectID: "ann", Tenant: "acme", Lane: "api-key", Kind: "user"},
	}
}

func TestTokenExpires(t *testing.T) {
	clk := clock.NewManual(day)
	h, _ := keeper(t, t.TempDir(), clk)
	end := day.Add(tokenLife)
	for i, intent := range []string{token.Resolve, token.Inspect, token.Resolve, token.Inspect} {
		clk = clock.NewManual(day)
		h.clock = clk
		form := token.Sign
		if i > 1 {
			form = token.SignOlder
		}
		issued, err := h.sign(t.Context(), form, claims(intent, end))
		if err != nil {
			t.Fatal(err)
		}
		if issued.ExpiresAt != run.Stamp(end) {
			t.Errorf("ends at %s", issued.ExpiresAt)
		}
		clk.Advance(tokenLife - time.Millisecond)
		g, err := h.OpenToken(t.Context(), issued.Token, token.Inspect)
		if err != nil {
			t.Fatalf("in its last millisecond: %v", err)
		}
		clk.Advance(time.Millisecond)
		// Past its end it says so and nothing else, whatever it was for.
		for _, want := range []string{token.Resolve, token.Inspect} {
			if _, err := h.OpenToken(t.Context(), issued.Token, want); !problem.Is(err, problem.InterruptExpired) {
				t.Errorf("%s: %v", want, err)
			}
		}
		// A token that was good when its request began does not stay good for it.
		if _, err := h.ResolveByToken(t.Context(), g, []byte(`{}`)); intent == token.Resolve && !problem.Is(err, problem.InterruptExpired) {
			t.Errorf("answered late: %v", err)
		}
	}
}

// What a snapshot offers is one token all through a period, lives no longer than a token
// may, and never longer than what it answers.
func TestOfferedTokensEnd(t *testing.T) {
	for ms := time.Duration(0); ms < 3*offerPeriod; ms += 7 * time.Second {
		now := day.Add(ms)
		end := offerEnd(now, time.Time{})
		if left := end.Sub(now); left > tokenLife || left <= tokenLife-offerPeriod {
			t.Fatalf("at %s: %s to live", now, left)
		}
		if next := offerEnd(now.Add(time.Second), time.Time{}); next != end && now.Add(time.Second).Truncate(offerPeriod) == now.Truncate(offerPeriod) {
			t.Fatalf("at %s: another end within one period", now)
		}
		if soon := now.Add(time.Minute); offerEnd(now, soon) != soon {
			t.Fatalf("it outlives its interrupt")
		}
		if soon := now.Add(time.Minute); offerEnd(now, soon.Add(time.Hour), soon) != soon || offerEnd(now, time.Time{}, soon) != soon {
			t.Fatalf("it outlives the credential it was had with")
		}
		if late := end.Add(time.Minute); offerEnd(now, late) != end {
			t.Fatalf("the interrupt's deadline makes it live longer")
		}
	}
}

func TestTokenKeysAge(t *testing.T) {
	clk := clock.NewManual(day)
	h, db := keeper(t, t.TempDir(), clk)
	issue := func() string {
		t.Helper()
		i, err := h.sign(t.Context(), token.Sign, claims(token.Resolve, clk.Now().Add(maxTokenLife)))
		if err != nil {
			t.Fatal(err)
		}
		return i.Token
	}
	keys := func() int {
		t.Helper()
		list, err := db.Secrets().List(t.Context(), tokenPurpose)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	opens := func(s string) bool {
		t.Helper()
		_, err := h.OpenToken(t.Context(), s, token.Resolve)
		if err != nil && !problem.Is(err, problem.InterruptTokenInvalid) && !problem.Is(err, problem.InterruptExpired) {
			t.Fatal(err)
		}
		return err == nil
	}
	if keys() != 0 {
		t.Error("a key before the first use")
	}
	first := issue()
	clk.Advance(tokenKeyLife - time.Millisecond)
	last := issue()
	if keys() != 1 || !opens(last) || opens(first) {
		t.Error("the first key did not last for its life")
	}
	clk.Advance(time.Millisecond)
	fresh := issue()
	if keys() != 2 || !opens(fresh) || !opens(last) {
		t.Error("the old key does not verify after its time")
	}
	clk.Advance(tokenKeyLife)
	issue()
	if n := keys(); n != 2 {
		t.Errorf("%d keys: what can verify nothing any more is dropped", n)
	}
	// A clock that went back does not make an old key sign again.
	h.keys.now = func() time.Time { return day }
	s, err := h.keys.rotate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if now, err := h.keys.signing(t.Context()); err != nil || now.ID != s.ID {
		t.Errorf("signs with %s after a rotation to %s: %v", now.ID, s.ID, err)
	}
}

// Many first uses at once make one key, and another replica on the same store
// learns of a key that it has not made.
func TestTokenKeysAreShared(t *testing.T) {
	clk := clock.NewManual(day)
	h, db := keeper(t, t.TempDir(), clk)
	twin := New(Config{Store: db, Clock: clk})
	issued := make([]IssuedToken, 16)
	var wg sync.WaitGroup
	for i := range issued {
		wg.Go(func() {
			var err error
			if issued[i], err = h.sign(t.Context(), token.Sign, claims(token.Resolve, day.Add(time.Hour))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if list, err := db.Secrets().List(t.Context(), tokenPurpose); err != nil || len(list) != 1 {
		t.Fatalf("%d keys, %v", len(list), err)
	}
	for range 2 {
		for _, i := range issued {
			if _, err := twin.OpenToken(t.Context(), i.Token, token.Resolve); err != nil {
				t.Fatal(err)
			}
		}
		s, err := twin.keys.rotate(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		i, err := h.sign(t.Context(), token.Sign, claims(token.Resolve, day.Add(time.Hour)))
		if u, _ := token.Parse(i.Token); err != nil || u.Kid != s.ID {
			t.Fatalf("signed with %s after the other's rotation to %s: %v", u.Kid, s.ID, err)
		}
	}
}
