package sqlite

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/store"
)

// TestReadIsInterrupted: a read ends with its context, and its connection can be
// used again.
func TestReadIsInterrupted(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{Readers: 1})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := s.readers.snapshot(ctx, func(c *conn) error {
		const endless = `WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n`
		_, err := c.prep(endless).one(func(*row) {})
		return err
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("an endless read: %v", err)
	}
	a := newStep(2)
	if err := s.Runs().Append(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if count(t, s, a.Row.ID) != 2 || len(s.readers.idle) != 1 {
		t.Fatal("the connection is not what it was")
	}
}

// TestReadersAreBounded: who finds all connections in use waits, until there is
// one, or until there is a reason not to.
func TestReadersAreBounded(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{Readers: 2})
	one, err := s.readers.acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	two, err := s.readers.acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	outcome := make(chan error)
	go func() { outcome <- s.Ping(ctx) }()
	go func() { outcome <- s.Ping(context.Background()) }()
	cancel()
	if err := <-outcome; !errors.Is(err, context.Canceled) {
		t.Fatalf("a reader that gave up: %v", err)
	}
	s.readers.release(one)
	if err := <-outcome; err != nil {
		t.Fatal(err)
	}
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	<-s.readers.closed
	if err := s.Ping(t.Context()); !errors.Is(err, store.ErrClosed) {
		t.Fatalf("a read while closing: %v", err)
	}
	select {
	case <-closed:
		t.Fatal("closed under a reader")
	default:
	}
	s.readers.release(two)
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
}
