package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/audit"
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/pgtest"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/go-json-experiment/json/jsontext"
)

var (
	noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	mint ids.Minter
)

// newStep creates a run with some events.
func newStep(events int) *store.Append {
	id := ids.Run{Tenant: "acme", Opaque: mint.Next(time.Now())}
	a := &store.Append{Create: true, Row: store.Run{ID: id, WorkflowID: "w", WorkflowVersion: "1", Status: "running", Epoch: 1, Seq: -1, CreatedAt: noon}}
	grow(a, events)
	return a
}

func grow(a *store.Append, events int) {
	a.Events = nil
	for range events {
		a.Row.Seq++
		a.Events = append(a.Events, event.Event{
			Run: a.Row.ID, Seq: a.Row.Seq, Type: event.LogAppended, NodeID: "first", Time: noon, Causation: -1,
			Payload: jsontext.Value(`{"level":"info","message":"an event"}`),
		})
	}
}

// nextStep follows a step.
func nextStep(a *store.Append, events int) *store.Append {
	n := &store.Append{Epoch: a.Row.Epoch, ExpectedSeq: a.Row.Seq, Row: a.Row}
	grow(n, events)
	return n
}

func count(t *testing.T, s *Store, id ids.Run) int {
	t.Helper()
	_, events, err := s.Runs().Events(t.Context(), id, -1, 0, 0)
	if errors.Is(err, store.ErrNotFound) {
		return -1
	}
	if err != nil {
		t.Fatal(err)
	}
	return len(events)
}

// TestLostCommits: a commit whose answer is lost, and one that never reached the
// server, both come to one write, whatever the step is made of.
func TestLostCommits(t *testing.T) {
	address := pgtest.Database(t, t.TempDir())
	p, at := through(t, address)
	s, err := Open(t.Context(), at, Options{Migrate: true, Connections: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Ownership().Register(t.Context(), "host-1"); err != nil {
		t.Fatal(err)
	}
	for name, set := range map[string]func(n int32){"before": p.before.Store, "after": p.after.Store} {
		t.Run(name, func(t *testing.T) {
			for cuts := int32(1); cuts <= 2; cuts++ {
				want := func(what string, err error) {
					t.Helper()
					if err != nil {
						t.Errorf("%s, cut %d times: %v", what, cuts, err)
					}
				}
				before := p.cuts.Load()
				a := newStep(3)
				set(cuts)
				want("create", s.Runs().Append(t.Context(), a))
				b := nextStep(a, 2)
				set(cuts)
				want("append", s.Runs().Append(t.Context(), b))
				c := nextStep(b, 0)
				c.Row.Epoch, c.Row.Instance, c.Row.Status = 2, "host-1", "paused"
				set(cuts)
				want("row", s.Runs().Append(t.Context(), c))
				c = nextStep(c, 1)
				kid := newStep(1)
				c.Also = []*store.Append{kid}
				set(cuts)
				want("append with a child", s.Runs().Append(t.Context(), c))
				set(0)
				if n := count(t, s, a.Row.ID); n != 6 {
					t.Errorf("%d events", n)
				}
				if n := count(t, s, kid.Row.ID); n != 1 {
					t.Errorf("%d events of the child", n)
				}
				if p.cuts.Load() == before {
					t.Error("nothing was cut off")
				}
				// A step that changes nothing by which it could be told, with an entry of
				// the audit log: there is one entry.
				d := &store.Draft{Chain: "acme", Fact: audit.Fact{At: noon, Action: "run.looked", Outcome: "success"}}
				head, err := s.Audit().Head(t.Context(), "acme")
				want("the audit log", err)
				same := nextStep(c, 0)
				set(cuts)
				want("row with an entry", s.Runs().Append(store.Audited(t.Context(), d), same))
				set(0)
				if now, err := s.Audit().Head(t.Context(), "acme"); err != nil || now.Sequence != head.Sequence+1 || !d.Written() {
					t.Errorf("%d entries of one step: %v", now.Sequence-head.Sequence, err)
				}
				// A step that was prepared on an old state is refused, cut or not.
				stale := nextStep(a, 2)
				set(cuts)
				if err := s.Runs().Append(t.Context(), stale); !errors.Is(err, store.ErrStale) {
					t.Errorf("a stale step: %v", err)
				}
				set(0)
				finishes(t, s, set, cuts)
			}
		})
	}
}

// finishes ends an effect and a request whose commits are cut off.
func finishes(t *testing.T, s *Store, set func(int32), cuts int32) {
	t.Helper()
	run := ids.Run{Tenant: "acme", Opaque: mint.Next(time.Now())}
	k := store.EffectClaim{
		Tenant: "acme", ID: mint.Next(time.Now()), Run: run, NodeID: "n", Keying: "activity-recipe", ProviderKey: "k",
		Instance: "host-1", At: noon, ExpiresAt: noon.Add(time.Hour),
	}
	x, mine, err := s.Effects().Claim(t.Context(), k)
	if err != nil || !mine {
		t.Fatal(mine, err)
	}
	x.State, x.Outcome, x.At = store.EffectCompleted, []byte(`1`), noon
	set(cuts)
	err = s.Effects().Finish(t.Context(), x)
	set(0)
	if err != nil {
		t.Errorf("finish an effect: %v", err)
	}
	r := store.Record{
		Tenant: "acme", Endpoint: "op", Key: make([]byte, 32), Digest: make([]byte, 32), Instance: "host-1",
		CreatedAt: noon, ExpiresAt: noon.Add(time.Hour),
	}
	copy(r.Key, run.Opaque)
	if r, _, err = s.Idempotency().Claim(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	r.Outcome = &store.Outcome{Status: 201, Header: []byte(`{}`), Body: []byte(`{}`)}
	set(cuts)
	err = s.Idempotency().Finish(t.Context(), r)
	set(0)
	if err != nil {
		t.Errorf("finish a request: %v", err)
	}
}

// TestOutages: while the server ends its connections, is restarted, crashes or lets
// nobody write, calls succeed or fail with ErrUnavailable; nothing that was
// acknowledged is lost and nothing is half done; and the store goes on by itself.
func TestOutages(t *testing.T) {
	c := pgtest.New(t)
	s, err := Open(t.Context(), c.Address("postgres"), Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	restart := func(sig syscall.Signal) func() error {
		return func() error {
			c.Stop(sig)
			return c.Start()
		}
	}
	for name, outage := range map[string]func() error{
		"terminated": func() error {
			return c.Exec(context.Background(), "postgres", `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND application_name = 'fermata'`)
		},
		"restarted": restart(syscall.SIGINT),
		"crashed":   restart(syscall.SIGQUIT),
		"read only": func() error {
			err := c.Exec(context.Background(), "postgres", `ALTER DATABASE postgres SET default_transaction_read_only = on;
				SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND application_name = 'fermata'`)
			time.Sleep(100 * time.Millisecond)
			return errors.Join(err, c.Exec(context.Background(), "template1", `ALTER DATABASE postgres RESET default_transaction_read_only`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			quit := make(chan struct{})
			var wg sync.WaitGroup
			acked := make([]*store.Append, 6)
			for i := range acked {
				wg.Go(func() {
					last := newStep(1)
					next := last
					for {
						err := s.Runs().Append(context.Background(), next)
						switch {
						case err == nil:
							last, acked[i] = next, next
							next = nextStep(last, 2)
						case errors.Is(err, store.ErrUnavailable):
							// Perhaps it was written: read it, as the engine does.
							time.Sleep(5 * time.Millisecond)
							if run, err := s.Runs().Get(context.Background(), next.Row.ID); err == nil && run.Seq == next.Row.Seq {
								last, acked[i] = next, next
								next = nextStep(last, 2)
							}
						default:
							t.Errorf("append: %v", err)
							return
						}
						select {
						case <-quit:
							return
						default:
						}
					}
				})
			}
			time.Sleep(50 * time.Millisecond)
			if err := outage(); err != nil {
				t.Error(err)
			}
			time.Sleep(50 * time.Millisecond)
			close(quit)
			wg.Wait()
			for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
				if err = s.Runs().Append(t.Context(), newStep(1)); err == nil || time.Now().After(deadline) {
					break
				}
			}
			if err != nil {
				t.Fatalf("it does not recover: %v", err)
			}
			for i, a := range acked {
				if a == nil {
					t.Errorf("writer %d has written nothing", i)
					continue
				}
				run, events, err := s.Runs().Events(t.Context(), a.Row.ID, -1, 0, 0)
				if err != nil || int64(len(events)) != run.Seq+1 || run.Seq < a.Row.Seq {
					t.Errorf("run at %d with %d events, acknowledged up to %d: %v", run.Seq, len(events), a.Row.Seq, err)
				}
			}
		})
	}
}

// TestAway: with no server at all, calls fail soon and say what it is.
func TestAway(t *testing.T) {
	c := pgtest.New(t)
	s, err := Open(t.Context(), c.Address("postgres"), Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c.Stop(syscall.SIGINT)
	a := newStep(1)
	_, getErr := s.Runs().Get(t.Context(), a.Row.ID)
	for what, err := range map[string]error{
		"append": s.Runs().Append(t.Context(), a), "get": getErr, "ping": s.Ping(t.Context()),
		"heartbeat": s.Ownership().Heartbeat(t.Context(), "i", time.Second),
	} {
		if !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if err := s.Runs().Append(t.Context(), a); err != nil {
		t.Error(err)
	}
	if n := count(t, s, a.Row.ID); n != 1 {
		t.Error(fmt.Sprint(n, " events"))
	}
}

// TestDamageIsNoOutage: a row that makes no sense is a defect and not a database that
// is not there.
func TestDamageIsNoOutage(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, "", Options{})
	a := newStep(2)
	if err := s.Runs().Append(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if _, err := s.pool.Exec(t.Context(), `UPDATE events SET body = 'x'`); err != nil {
		t.Fatal(err)
	}
	_, loadErr := s.Runs().Load(t.Context(), a.Row.ID)
	_, _, eventsErr := s.Runs().Events(t.Context(), a.Row.ID, -1, 0, 0)
	for _, err := range []error{loadErr, eventsErr} {
		if err == nil || errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrNotFound) {
			t.Errorf("a damaged log: %v", err)
		}
	}
}

// TestPingKnowsOfWrites: a database that answers and takes no writes is not ready, and is
// again once it takes a heartbeat.
func TestPingKnowsOfWrites(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, "", Options{})
	c, db, o := pgtest.Shared(t), databaseOf(t, dir), s.Ownership()
	set := func(sql string) {
		t.Helper()
		if err := c.Exec(t.Context(), "postgres", sql); err != nil {
			t.Fatal(err)
		}
		s.pool.Reset() // connections that know of it
	}
	if err := errors.Join(o.Register(t.Context(), "host-1"), o.Heartbeat(t.Context(), "host-1", time.Hour), s.Ping(t.Context())); err != nil {
		t.Fatal(err)
	}
	set(`ALTER DATABASE ` + db + ` SET default_transaction_read_only = on`)
	if err := o.Heartbeat(t.Context(), "host-1", time.Hour); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("a heartbeat: %v", err)
	}
	if err := s.Ping(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("it is said to be ready: %v", err)
	}
	set(`ALTER DATABASE ` + db + ` RESET default_transaction_read_only`)
	if err := errors.Join(o.Heartbeat(t.Context(), "host-1", time.Hour), s.Ping(t.Context())); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestPassword: what an address says is known, however it says it, and a common word
// is left alone.
func TestPassword(t *testing.T) {
	t.Setenv("PGPASSWORD", "from-around")
	for address, want := range map[string]string{
		"postgres://u:of%2Fthe-url@h/d":          "of/the-url",
		"postgres://u@h/d?password=of-the-query": "of-the-query",
		"postgres://u@h/d":                       "from-around",
		"postgres://fermata:fermata@h/d":         "",
		"postgres://someone:someone@h/d":         "",
		"postgres://u:p@h:port/d":                "",
	} {
		if got := Password(address); got != want {
			t.Errorf("%s: %q", address, got)
		}
	}
}
