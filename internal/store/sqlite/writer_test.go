package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/go-json-experiment/json/jsontext"
)

var (
	noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	mint ids.Minter
)

// newStep is the first step of a new run, with n events.
func newStep(n int) *store.Append {
	id := ids.Run{Tenant: "acme", Opaque: mint.Next(noon)}
	a := &store.Append{Create: true, Row: store.Run{ID: id, WorkflowID: "greet", Status: "running", Seq: -1, CreatedAt: noon}}
	extend(a, n)
	return a
}

// nextStep is the step after a, with n events.
func nextStep(a *store.Append, n int) *store.Append {
	b := &store.Append{Epoch: a.Row.Epoch, ExpectedSeq: a.Row.Seq, Row: a.Row}
	extend(b, n)
	return b
}

func extend(a *store.Append, n int) {
	for range n {
		a.Row.Seq++
		a.Events = append(a.Events, event.Event{
			Run: a.Row.ID, Seq: a.Row.Seq, Type: event.LogAppended, NodeID: "first", Time: noon, Causation: -1,
			Payload: jsontext.Value(fmt.Sprintf(`{"level":"info","message":"this is event number %d of its run"}`, a.Row.Seq)),
		})
	}
}

// hold keeps the writer busy until release is called, so that what is submitted
// meanwhile ends up in one batch.
func hold(t *testing.T, s *Store) (release func()) {
	t.Helper()
	in, out := make(chan struct{}), make(chan struct{})
	go s.writer.submit(context.Background(), 0, func(*conn) error { close(in); <-out; return nil })
	<-in
	return sync.OnceFunc(func() { close(out) })
}

// gather submits all of do into one batch and returns their outcomes.
func gather(t *testing.T, s *Store, do ...func(ctx context.Context) error) []error {
	t.Helper()
	release := hold(t, s)
	defer release()
	errs := make([]error, len(do))
	var wg sync.WaitGroup
	for i, f := range do {
		wg.Go(func() { errs[i] = f(t.Context()) })
		for len(s.writer.queue) <= i { // in this order
			time.Sleep(time.Millisecond)
		}
	}
	release()
	wg.Wait()
	return errs
}

func appending(s *Store, a *store.Append) func(ctx context.Context) error {
	return func(ctx context.Context) error { return s.Runs().Append(ctx, a) }
}

// count is how many events a run has, -1 if it is not there.
func count(t *testing.T, s *Store, id ids.Run) int {
	t.Helper()
	l, err := s.Runs().Load(t.Context(), id)
	if errors.Is(err, store.ErrNotFound) {
		return -1
	}
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(l.Tail)) != l.Run.Seq+1 {
		t.Fatalf("row at %d, %d events", l.Run.Seq, len(l.Tail))
	}
	return len(l.Tail)
}

// countCommits counts from now on; it may be read once all requests are answered.
func countCommits(s *Store) *int {
	n := new(int)
	s.writer.conn.db.CommitHook(func() bool { *n++; return true })
	return n
}

func TestBatchIsOneTransaction(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	commits := countCommits(s)
	var do []func(context.Context) error
	var steps []*store.Append
	for range 50 {
		a := newStep(2)
		steps = append(steps, a)
		do = append(do, appending(s, a), appending(s, nextStep(a, 3)))
	}
	for i, err := range gather(t, s, do...) {
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
	}
	if *commits != 2 { // hold's is the other
		t.Fatalf("%d commits", *commits)
	}
	for _, a := range steps {
		if n := count(t, s, a.Row.ID); n != 5 {
			t.Fatalf("%d events", n)
		}
	}
}

// TestRefusedRequestHarmsNobody: a stale step costs its batch nothing.
func TestRefusedRequestHarmsNobody(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	commits := countCommits(s)
	a, b := newStep(1), newStep(1)
	stale := nextStep(a, 1)
	stale.Epoch++
	again := newStep(1)
	again.Row.ID, again.Events[0].Run = a.Row.ID, a.Row.ID
	errs := gather(t, s, appending(s, a), appending(s, again), appending(s, stale), appending(s, b))
	if errs[0] != nil || !errors.Is(errs[1], store.ErrExists) || !errors.Is(errs[2], store.ErrStale) || errs[3] != nil {
		t.Fatalf("outcomes: %v", errs)
	}
	if count(t, s, a.Row.ID) != 1 || count(t, s, b.Row.ID) != 1 || *commits != 2 {
		t.Fatalf("%d commits", *commits)
	}
}

// TestBrokenRequestHarmsNobody: a request that fails in the middle of its writes
// loses them, and those before and after it in its batch keep theirs.
func TestBrokenRequestHarmsNobody(t *testing.T) {
	broken := errors.New("broken")
	half := newStep(1)
	begun := func(c *conn) error { return putRun(c, half) }
	for name, do := range map[string][]func(c *conn) error{
		"own error":   {begun, func(*conn) error { return broken }},
		"SQL error":   {begun, func(c *conn) error { return c.prep(`INSERT INTO nowhere VALUES (1)`).run() }},
		"constraint":  {begun, func(c *conn) error { return c.prep(`INSERT INTO keys (id) VALUES (NULL)`).run() }},
		"wrong value": {begun, func(c *conn) error { return c.prep(`UPDATE runs SET seq = 'x'`).run() }},
		"lost batch":  {begun, func(c *conn) error { c.rollback(); return broken }},
		"lost others": {func(c *conn) error { c.rollback(); return broken }},
	} {
		t.Run(name, func(t *testing.T) {
			s := openTest(t, t.TempDir(), Options{})
			a, b := newStep(2), newStep(2)
			spoil := func(ctx context.Context) error {
				return s.writer.submit(ctx, 0, func(c *conn) error {
					for _, f := range do {
						if err := f(c); err != nil {
							return err
						}
					}
					return nil
				})
			}
			errs := gather(t, s, appending(s, a), spoil, appending(s, b), appending(s, nextStep(a, 1)))
			if errs[0] != nil || errs[1] == nil || errs[2] != nil || errs[3] != nil {
				t.Fatalf("outcomes: %v", errs)
			}
			got := []int{count(t, s, a.Row.ID), count(t, s, half.Row.ID), count(t, s, b.Row.ID)}
			if got[0] != 3 || got[1] != -1 || got[2] != 2 {
				t.Fatalf("events: %v", got)
			}
		})
	}
}

// TestGivingUp: a request whose caller has given up before it was taken is not
// written; one that was taken is finished, and its caller learns how.
func TestGivingUp(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	release := hold(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	a, b := newStep(1), newStep(1)
	gaveUp := make(chan error, 1)
	go func() { gaveUp <- s.Runs().Append(ctx, a) }()
	for len(s.writer.queue) < 1 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-gaveUp; !errors.Is(err, context.Canceled) {
		t.Fatalf("outcome: %v", err)
	}
	release()
	if err := s.Runs().Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if count(t, s, a.Row.ID) != -1 {
		t.Fatal("an abandoned request was written")
	}

	ctx, cancel = context.WithCancel(t.Context())
	err := s.writer.submit(ctx, 0, func(c *conn) error {
		cancel() // taken by now
		return putRun(c, a)
	})
	if err != nil {
		t.Fatalf("a request that was taken: %v", err)
	}
}

// TestCloseFinishesWhatWaits: what was accepted before Close is durable.
func TestCloseFinishesWhatWaits(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{})
	release := hold(t, s)
	var steps []*store.Append
	outcome := make(chan error, 20)
	for i := range 20 {
		a := newStep(1)
		steps = append(steps, a)
		go func() { outcome <- s.Runs().Append(context.Background(), a) }()
		for len(s.writer.queue) <= i {
			time.Sleep(time.Millisecond)
		}
	}
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	release()
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	for range steps {
		if err := <-outcome; err != nil {
			t.Fatal(err)
		}
	}
	s = openTest(t, dir, Options{})
	for _, a := range steps {
		if count(t, s, a.Row.ID) != 1 {
			t.Fatal("an accepted step is lost")
		}
	}
}
