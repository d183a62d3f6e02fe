package host

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/store"
)

// TestOutcomes holds what is kept of a request against the rows of the text.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	l := open(t, t.TempDir(), nil)
	for i, row := range problem.Rows() {
		key := aKey + string(rune('a'+i%26)) + string(rune('a'+i/26))
		n := 0
		refusal := refuses(problem.New(row.Code, "no"))
		final := row.Status < 429 && !row.Retriable && row.Status != 401 && row.Status != 403 &&
			row.Code != problem.ValidationError && row.Code != problem.IdempotencyKeyInvalid
		if final {
			l.wants(t, keyedBy(key, "d"), refusal, "refusal", false)
			l.wants(t, keyedBy(key, "d"), said(&n, "late"), "refusal", true)
			l.refused(t, keyedBy(key, "other"), said(&n, "late"), problem.IdempotencyKeyMismatch)
			if n != 0 {
				t.Errorf("%s: a final outcome was not kept", row.Code)
			}
			continue
		}
		for range 2 {
			l.refused(t, keyedBy(key, "d"), refusal, row.Code)
		}
		if retryable := row.Status >= 429 || row.Retriable; retryable {
			// The first try may have got far: its request stays what it was.
			l.refused(t, keyedBy(key, "other"), said(&n, "late"), problem.IdempotencyKeyMismatch)
			l.wants(t, keyedBy(key, "d"), said(&n, "done"), "done", false)
			l.wants(t, keyedBy(key, "d"), said(&n, "late"), "done", true)
		} else {
			l.wants(t, keyedBy(key, "corrected"), said(&n, "done"), "done", false)
			l.wants(t, keyedBy(key, "corrected"), said(&n, "late"), "done", true)
		}
		if n != 1 {
			t.Errorf("%s: %d executions afterwards", row.Code, n)
		}
	}
	if n := l.flights.size(); n != 0 {
		t.Errorf("%d requests are at work for ever", n)
	}
}

// TestAttempts: every try is told of the same run, and whether one came before.
func TestAttempts(t *testing.T) {
	t.Parallel()
	l := open(t, t.TempDir(), nil)
	var seen []attempt
	look := func(err error) func(context.Context) (store.Outcome, error) {
		return func(ctx context.Context) (store.Outcome, error) {
			seen = append(seen, attemptIn(ctx))
			return store.Outcome{Status: 201, Header: []byte("{}")}, err
		}
	}
	k := keyedBy(aKey, "d")
	l.refused(t, k, look(context.DeadlineExceeded), problem.InternalError)
	l.refused(t, k, look(store.ErrClosed), problem.InternalError)
	// A refusal that is not kept does not undo what an earlier try may have done.
	l.refused(t, k, look(problem.New(problem.Forbidden, "no")), problem.Forbidden)
	l.refused(t, keyedBy(aKey, "other"), look(nil), problem.IdempotencyKeyMismatch)
	func() {
		defer func() { recover() }()
		l.Once(t.Context(), ann, k, func(ctx context.Context) (store.Outcome, error) { //nolint:errcheck // it panics
			seen = append(seen, attemptIn(ctx))
			panic("defect")
		})
	}()
	l.db.on.Store(true)
	l.refused(t, k, look(nil), problem.InternalError) // done, but not recorded
	l.db.on.Store(false)
	l.wants(t, k, look(nil), "", false)
	l.wants(t, k, look(nil), "", true)
	if len(seen) != 6 {
		t.Fatalf("%d executions", len(seen))
	}
	for i, a := range seen {
		if a.run != seen[0].run || a.run.Tenant != "acme" || a.mark != seen[0].mark || a.again != (i > 0) {
			t.Errorf("try %d is told %+v, the first %+v", i, a, seen[0])
		}
	}
	if a := attemptIn(t.Context()); a != (attempt{}) {
		t.Errorf("without a key: %+v", a)
	}
}

// blocked begins an operation that stays at work until it is let go.
func (l *lab) blocked(t *testing.T, k Keyed) (release func() error) {
	begun, gate, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		_, _, err := l.Once(t.Context(), ann, k, func(context.Context) (store.Outcome, error) {
			close(begun)
			<-gate
			return store.Outcome{Status: 200, Header: []byte("{}"), Body: []byte("first")}, nil
		})
		done <- err
	}()
	<-begun
	return func() error { close(gate); return <-done }
}

func TestInFlight(t *testing.T) {
	t.Parallel()
	c := newClock(defaultWait)
	l := open(t, t.TempDir(), c)
	k, n := keyedBy(aKey, "d"), 0
	release := l.blocked(t, k)
	// Another digest does not wait.
	l.refused(t, keyedBy(aKey, "other"), said(&n, "late"), problem.IdempotencyKeyMismatch)
	<-c.waits
	// Another tenant's key is another key.
	bob := asCaller("other", "runs:create")
	if out, again, err := l.Once(t.Context(), bob, k, said(&n, "bob's")); err != nil || again || string(out.Body) != "bob's" {
		t.Fatalf("%q %v %v", out.Body, again, err)
	}
	// The same digest waits, but not for ever.
	failed := make(chan error, 1)
	go func() { _, _, err := l.Once(t.Context(), ann, k, said(&n, "late")); failed <- err }()
	<-c.waits
	c.Advance(defaultWait)
	err := <-failed
	if p := problem.From(err); p.Code != problem.IdempotencyInFlight || p.RetryAfter <= 0 {
		t.Fatalf("%v", err)
	}
	// A caller who goes away waits no longer.
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _, _, err := l.Once(ctx, ann, k, said(&n, "late")); failed <- err }()
	<-c.waits
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	// Whoever waits long enough is given the first one's answer.
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			out, again, err := l.Once(t.Context(), ann, k, said(new(int), "late"))
			if err != nil || !again || string(out.Body) != "first" {
				t.Errorf("%q %v %v", out.Body, again, err)
			}
		})
		<-c.waits
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if n != 1 {
		t.Errorf("%d executions, want that of the other tenant", n)
	}
}

// TestBesideAFailure: of requests sent beside each other one happens, even if it
// comes to nothing that lasts. Those sent afterwards are tries of their own.
func TestBesideAFailure(t *testing.T) {
	t.Parallel()
	c := newClock(defaultWait)
	l := open(t, t.TempDir(), c)
	for key, refusal := range map[string]*problem.Error{
		aKey + "1": problem.New(problem.InternalError, "no"), aKey + "2": problem.Invalid("tags", "no"),
	} {
		begun, gate, errs := make(chan struct{}), make(chan struct{}), make(chan error, 2)
		go func() {
			_, _, err := l.Once(t.Context(), ann, keyedBy(key, "d"), func(context.Context) (store.Outcome, error) {
				close(begun)
				<-gate
				return store.Outcome{}, refusal
			})
			errs <- err
		}()
		<-begun
		n := 0
		go func() { _, _, err := l.Once(t.Context(), ann, keyedBy(key, "d"), said(&n, "late")); errs <- err }()
		<-c.waits
		close(gate)
		codes := map[problem.Code]int{}
		for range 2 {
			codes[problem.From(<-errs).Code]++
		}
		if codes[refusal.Code] != 1 || codes[problem.IdempotencyInFlight] != 1 || n != 0 {
			t.Errorf("%v, %d executions beside", codes, n)
		}
		l.wants(t, keyedBy(key, "d"), said(&n, "done"), "done", false)
	}
}

// TestCallerGoesAway: what was begun for a caller is finished and recorded.
func TestCallerGoesAway(t *testing.T) {
	t.Parallel()
	l := open(t, t.TempDir(), nil)
	ctx, cancel := context.WithCancel(t.Context())
	out, _, err := l.Once(ctx, ann, keyedBy(aKey, "d"), func(ctx context.Context) (store.Outcome, error) {
		cancel()
		return store.Outcome{Status: 200, Header: []byte("{}"), Body: []byte("done")}, ctx.Err()
	})
	if err != nil || string(out.Body) != "done" {
		t.Fatal(err)
	}
	l.wants(t, keyedBy(aKey, "d"), said(new(int), "late"), "done", true)
}

// TestOnceAuthorizes: nobody is told a recorded answer who might not ask for it.
func TestOnceAuthorizes(t *testing.T) {
	t.Parallel()
	l := open(t, t.TempDir(), nil)
	n := 0
	l.wants(t, keyedBy(aKey, "d"), said(&n, "done"), "done", false)
	k := keyedBy(aKey, "d")
	for scope, c := range map[string]identity.Caller{
		"runs:create": asCaller("acme", "runs:read"), "runs:create runs:read": ann, "": asCaller(""),
	} {
		k.Scope = scope
		if _, _, err := l.Once(t.Context(), c, k, said(&n, "late")); !problem.Is(err, problem.Forbidden) && !problem.Is(err, problem.Unauthenticated) {
			t.Errorf("scope %q: %v", scope, err)
		}
	}
	if n != 1 {
		t.Errorf("%d executions", n)
	}
}

// TestTakeover: a claim of a process that died is the next one's, with its run.
func TestTakeover(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir, nil)
	k := keyedBy(aKey, "d")
	var first attempt
	stuck := func(ctx context.Context) (store.Outcome, error) {
		first = attemptIn(ctx)
		if err := l.db.Close(); err != nil { // the process ends here, for all the store knows
			t.Error(err)
		}
		return store.Outcome{Status: 201, Header: []byte("{}")}, nil
	}
	if _, _, err := l.Once(t.Context(), ann, k, stuck); !errors.Is(err, store.ErrClosed) {
		t.Fatal(err)
	}
	next := open(t, dir, nil)
	next.refused(t, keyedBy(aKey, "other"), stuck, problem.IdempotencyKeyMismatch)
	next.wants(t, k, func(ctx context.Context) (store.Outcome, error) {
		if a := attemptIn(ctx); a.run != first.run || !a.again || a.mark != first.mark {
			t.Errorf("the next process is told %+v, the first %+v", a, first)
		}
		return store.Outcome{Status: 201, Header: []byte("{}"), Body: []byte("done")}, nil
	}, "done", false)
	// The process that was thought dead is refused.
	next.eng.Stop(context.Background()) //nolint:errcheck // whatever it says
	next.refused(t, k, stuck, problem.ServiceUnavailable)
}

// TestRetention: a record outlives a day, whatever the setting, and no longer
// than its retention and one look of the sweeper.
func TestRetention(t *testing.T) {
	t.Parallel()
	c := newClock(sweepEvery)
	l := open(t, t.TempDir(), c)
	if l.Limits().KeyRetention != 48*time.Hour || New(Config{Store: l.db, Limits: Limits{KeyRetention: time.Hour}}).Limits().KeyRetention != 24*time.Hour {
		t.Fatal("a record is kept for less than a day")
	}
	n := 0
	for i := range 2*sweepBatch + 1 {
		k := keyedBy(aKey+string(rune('0'+i%10))+string(rune('a'+i/10%26))+string(rune('a'+i/260)), "d")
		l.wants(t, k, said(&n, "done"), "done", false)
	}
	sample := keyedBy(aKey+"0aa", "d")
	ran := l.eng.NewID("acme")
	_, _, err := l.db.Effects().Claim(t.Context(), store.EffectClaim{
		Tenant: "acme", ID: "effect-0123456789", Run: ran, NodeID: "n", Keying: "activity-recipe",
		Instance: l.eng.Instance(), At: c.Now(), ExpiresAt: c.Now().Add(30 * 24 * time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	attempts := func() int {
		list, err := l.db.Effects().Attempts(t.Context(), ran, 0, 0)
		if err != nil {
			t.Error(err)
		}
		return len(list)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); l.Sweep(ctx) }()
	<-c.waits
	c.Advance(48*time.Hour - time.Millisecond)
	<-c.waits
	executed := n
	l.wants(t, sample, said(&n, "late"), "done", true)
	c.Advance(sweepEvery)
	<-c.waits // it has looked, in as many batches as it took
	if left, err := l.db.Idempotency().Purge(t.Context(), c.Now(), 0); err != nil || left != 0 {
		t.Errorf("%d records are left: %v", left, err)
	}
	l.wants(t, sample, said(&n, "anew"), "anew", false)
	if n != executed+1 {
		t.Errorf("%d executions", n-executed)
	}
	if attempts() != 1 {
		t.Error("an effect was forgotten with the requests")
	}
	c.Advance(30 * 24 * time.Hour)
	<-c.waits
	if attempts() != 0 {
		t.Error("an effect is kept for ever")
	}
	cancel()
	<-ended
}
