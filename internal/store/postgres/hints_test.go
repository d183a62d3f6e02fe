package postgres

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/pgtest"
	"github.com/fermata-run/fermata/internal/store"
)

const patience = 30 * time.Second

// heard waits for a hint that is wanted.
func heard(t *testing.T, what string, s *Store, want func(store.Hint) bool) {
	t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case h := <-s.Hints():
			if want(h) {
				return
			}
		case <-deadline:
			t.Fatalf("nothing is heard of %s", what)
		}
	}
}

// TestListenersComeSeldom: whose connection is cut off as soon as it is there does not come
// again ten times a second, and whose was good for long does not wait.
func TestListenersComeSeldom(t *testing.T) {
	wait := firstWait
	for range 20 {
		wait = afterward(wait, time.Millisecond)
	}
	if wait != longestWait {
		t.Errorf("cut off again and again: %s", wait)
	}
	if wait = afterward(wait, time.Hour); wait != firstWait {
		t.Errorf("after an hour: %s", wait)
	}
}

// pair is two stores that listen and know of each other.
func pair(t *testing.T, listen string) (a, b *Store) {
	t.Helper()
	dir := t.TempDir()
	address := pgtest.Database(t, dir)
	if listen == "" {
		listen = address
	}
	a, b = openTest(t, dir, "", Options{Listen: listen}), openTest(t, dir, "", Options{Listen: listen})
	for i, s := range []*Store{a, b} {
		if err := s.Ownership().Register(t.Context(), fmt.Sprint("host-", i)); err != nil {
			t.Fatal(err)
		}
	}
	for i, s := range []*Store{a, b} {
		if _, err := s.Ownership().Claim(t.Context(), fmt.Sprint("host-", i), noon, 10); err != nil {
			t.Fatal(err)
		}
	}
	return a, b
}

// TestHints: what one store has done, another one hears of, also after its connection
// was cut.
func TestHints(t *testing.T) {
	a, b := pair(t, "")
	all := func(h store.Hint) bool { return h.All }
	heard(t, "the connection", b, all)
	last := newStep(1)
	step := func(events int, tell string) {
		t.Helper()
		if err := a.Runs().Append(t.Context(), last); err != nil {
			t.Fatal(err)
		}
		last = nextStep(last, events)
		last.Tell = tell
	}
	step(2, "host-1")
	step(1, "")
	run, told := false, false // in any order
	heard(t, "the run, and of who was told", b, func(h store.Hint) bool {
		run, told = run || h.Run == last.Row.ID, told || h.Instance == "host-1"
		return run && told
	})

	if _, err := b.pool.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()`); err != nil {
		t.Fatal(err)
	}
	heard(t, "the connection that was cut", b, all)
	step(1, "")
	heard(t, "the run once more", b, func(h store.Hint) bool { return h.Run == last.Row.ID })
	if err := a.Ownership().Deregister(t.Context(), "host-0"); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	heard(t, "who has left", b, func(h store.Hint) bool { return h.Work })
}

// TestNobodyIsTold: who is alone sends nothing, nor who does not listen.
func TestNobodyIsTold(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, "", Options{Listen: pgtest.Database(t, dir)})
	if err := s.Ownership().Register(t.Context(), "host-0"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Ownership().Claim(t.Context(), "host-0", noon, 10); err != nil {
		t.Fatal(err)
	}
	a := newStep(1)
	for range 3 {
		if err := s.Runs().Append(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		a = nextStep(a, 1)
	}
	if texts := s.hints.take(); len(texts) > 0 {
		t.Errorf("%q would be sent", texts)
	}
	if none := openTest(t, dir, "", Options{}); none.Hints() != nil {
		t.Error("somebody listens who was not asked to")
	}
}

// TestHintsAreBounded: in number, and each notification in bytes; and nothing that
// comes in is trusted.
func TestHintsAreBounded(t *testing.T) {
	h := &hints{from: "me", pending: map[string]bool{}, wake: make(chan struct{}, 1), out: make(chan store.Hint, 8)}
	for i := range 3 * mostHints {
		h.add(string(hintRun) + fmt.Sprintf("acme/%040d", i))
		h.add(string(hintRun) + fmt.Sprintf("acme/%040d", i))
	}
	texts, lines := h.take(), 0
	for _, x := range texts {
		if len(x) > hintBytes || !strings.HasPrefix(x, "me\n") {
			t.Errorf("%d bytes: %.80q", len(x), x)
		}
		lines += strings.Count(x, "\n")
	}
	if lines != mostHints || len(h.take()) != 0 {
		t.Errorf("%d hints", lines)
	}
	for _, x := range append(slices.Clone(texts[:1]), "", "\n", "other", "other\n\n?\nx\ne\neno-run\nq\x00", strings.Repeat("\n", 5000)) {
		h.read(x)
	}
	if len(h.out) > 0 {
		t.Errorf("heard %+v", <-h.out)
	}
	h.read("other\nw" + strings.Repeat("\nw", 5000)) // nobody takes them
	if len(h.out) != cap(h.out) {
		t.Errorf("%d hints are kept", len(h.out))
	}
}

// TestNobodyAnswers: an address where nobody is costs nothing but the hints.
func TestNobodyAnswers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	a, _ := pair(t, "postgres://fermata@"+l.Addr().String()+"/x?sslmode=disable")
	step := newStep(1)
	for range 5 {
		if err := a.Runs().Append(t.Context(), step); err != nil {
			t.Fatal(err)
		}
		step = nextStep(step, 1)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), pgtest.Database(t, t.TempDir()), Options{Migrate: true, Listen: "postgres://%zz"}); err == nil {
		t.Error("a malformed address is taken")
	}
}
