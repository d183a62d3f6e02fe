package postgres

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/pgtest"
	"github.com/fermata-run/fermata/internal/store"
)

// TestSilence: a network that swallows everything without ending a connection. What is
// asked ends with ErrUnavailable and not with its caller's patience, nothing that was
// acknowledged is lost or written twice, and once the network is back the store works
// although every connection it had leads nowhere.
func TestSilence(t *testing.T) {
	p, at := through(t, pgtest.Database(t, t.TempDir()))
	s, err := Open(t.Context(), at+"&connect_timeout=1", Options{Migrate: true, Connections: 6, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Ownership().Register(t.Context(), "host-1"); err != nil {
		t.Fatal(err)
	}
	acked := make([]*store.Append, 4)
	var begun, wg sync.WaitGroup
	quit := make(chan struct{})
	for i := range acked {
		begun.Add(1)
		wg.Go(func() { acked[i] = follow(t, s, &begun, quit) })
	}
	begun.Wait()
	p.hole.Store(true)
	var asked sync.WaitGroup
	for what, ask := range map[string]func() error{
		"a read":       func() error { _, err := s.Runs().Get(context.Background(), newStep(1).Row.ID); return err },
		"a step":       func() error { return s.Runs().Append(context.Background(), newStep(1)) },
		"a change":     func() error { return s.Ownership().Register(context.Background(), "host-2") },
		"a heart beat": func() error { return s.Ownership().Heartbeat(context.Background(), "host-1", time.Second) },
		"a claim":      func() error { _, err := s.Ownership().Claim(context.Background(), "host-1", noon, 5); return err },
	} {
		asked.Go(func() {
			if err := ask(); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
	asked.Wait()
	if p.lost.Load() == 0 {
		t.Error("nothing was lost on the way")
	}
	p.hole.Store(false)
	for deadline := time.Now().Add(patience); ; {
		if err = s.Runs().Append(t.Context(), newStep(1)); err == nil || time.Now().After(deadline) {
			break
		}
	}
	if err != nil {
		t.Fatalf("it does not recover: %v", err)
	}
	close(quit)
	wg.Wait()
	whole(t, s, acked)
	if err := s.Ownership().Heartbeat(t.Context(), "host-1", time.Second); err != nil {
		t.Errorf("a heart beat: %v", err)
	}
}

// follow writes a run step by step, and returns the last step that was acknowledged.
func follow(t *testing.T, s *Store, begun *sync.WaitGroup, quit <-chan struct{}) (acked *store.Append) {
	next := newStep(1)
	for {
		err := s.Runs().Append(context.Background(), next)
		switch {
		case err == nil:
			if acked == nil {
				begun.Done()
			}
			acked, next = next, nextStep(next, 2)
		case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrStale), errors.Is(err, store.ErrExists):
			// Perhaps it was written, or is only now: read it, as the engine does.
			run, e := s.Runs().Get(context.Background(), next.Row.ID)
			switch {
			case e == nil && run.Seq == next.Row.Seq:
				if acked == nil {
					begun.Done()
				}
				acked, next = next, nextStep(next, 2)
			case e == nil && !errors.Is(err, store.ErrUnavailable):
				t.Errorf("refused at %d with %v, and the run is at %d", next.ExpectedSeq, err, run.Seq)
				return acked
			}
		default:
			t.Errorf("append: %v", err)
			return acked
		}
		select {
		case <-quit:
			return acked
		default:
		}
	}
}

// whole checks that what was acknowledged is there, without a gap.
func whole(t *testing.T, s *Store, acked []*store.Append) {
	t.Helper()
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
}

// TestStandstill: a server that is stopped and goes on later has not lost what it was
// asked: what it does when nobody waits any more is written once, or not at all.
func TestStandstill(t *testing.T) {
	c := pgtest.New(t)
	s, err := Open(t.Context(), c.Address("postgres"), Options{Migrate: true, Connections: 6, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	acked := make([]*store.Append, 4)
	var begun, wg sync.WaitGroup
	quit := make(chan struct{})
	for i := range acked {
		begun.Add(1)
		wg.Go(func() { acked[i] = follow(t, s, &begun, quit) })
	}
	begun.Wait()
	if err := c.Stand(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	_, err = s.Runs().Get(context.Background(), newStep(1).Row.ID)
	if !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a read: %v", err)
	}
	if err := c.Stand(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); ; {
		if err = s.Runs().Append(t.Context(), newStep(1)); err == nil || time.Now().After(deadline) {
			break
		}
	}
	if err != nil {
		t.Fatalf("it does not recover: %v", err)
	}
	close(quit)
	wg.Wait()
	whole(t, s, acked)
}

// TestSlowCommits: a commit that takes longer than anybody waits for its answer. The
// step is written once, by that commit or by the one that was tried after it.
func TestSlowCommits(t *testing.T) {
	dir := t.TempDir()
	p, at := through(t, pgtest.Database(t, dir))
	s, err := Open(t.Context(), at, Options{Migrate: true, Connections: 1, Writers: 1, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	// Once before, so that the connection knows what a commit looks like.
	if err := s.Runs().Append(t.Context(), newStep(1)); err != nil {
		t.Fatal(err)
	}
	p.slow.Store(int64(1500 * time.Millisecond))
	a := newStep(2)
	err = s.Runs().Append(t.Context(), a)
	if p.slowed.Load() == 0 {
		t.Error("no commit was slow")
	}
	if err != nil && !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("append: %v", err)
	}
	for deadline := time.Now().Add(patience); count(t, s, a.Row.ID) != 2; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d events; the step was answered with %v", count(t, s, a.Row.ID), err)
		}
	}
}
