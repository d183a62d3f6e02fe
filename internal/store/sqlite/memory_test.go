package sqlite

import (
	"strings"
	"testing"

	"github.com/fermata-run/fermata/internal/store"
	"github.com/go-json-experiment/json/jsontext"
)

// TestLargestValues: what is just allowed works, also several times in one step,
// and what is just too large is refused; neither ends the process.
func TestLargestValues(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	quoted := func(n int) jsontext.Value { return jsontext.Value(`"` + strings.Repeat("x", n-2) + `"`) }
	large := quoted(store.MaxValue - 1000) // leaves room for the envelope
	a := newStep(2)
	for i := range a.Events {
		a.Events[i].Payload, a.Events[i].Sealed = large, large
	}
	a.Checkpoint = &store.Checkpoint{Seq: -1, State: large}
	if err := s.Runs().Append(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if n := count(t, s, a.Row.ID); n != 2 {
		t.Fatalf("%d events", n)
	}
	for name, spoil := range map[string]func(a *store.Append){
		"payload":    func(a *store.Append) { a.Events[0].Payload = quoted(store.MaxValue) },
		"sealed":     func(a *store.Append) { a.Events[0].Sealed = quoted(store.MaxValue + 1) },
		"checkpoint": func(a *store.Append) { a.Checkpoint = &store.Checkpoint{State: quoted(store.MaxValue + 1)} },
		"owner":      func(a *store.Append) { a.Row.Owner = quoted(store.MaxValue + 1) },
		"interrupt":  func(a *store.Append) { a.Opened = []store.Interrupt{{ID: "x", Data: quoted(store.MaxValue + 1)}} },
	} {
		b := newStep(1)
		spoil(b)
		if err := s.Runs().Append(t.Context(), b); err == nil {
			t.Fatalf("a %s that is too large was written", name)
		}
	}
	if _, err := s.Workflows().Put(t.Context(), store.Workflow{Definition: quoted(store.MaxValue + 1)}); err == nil {
		t.Fatal("a definition that is too large was written")
	}
}

// TestHeavyConnectionsAreReplaced: the memory that a large value takes inside a
// connection goes with the connection.
func TestHeavyConnectionsAreReplaced(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{Readers: 1})
	small, large := newStep(1), newStep(1)
	large.Events[0].Payload = jsontext.Value(`"` + strings.Repeat("x", heavy) + `"`)
	for _, a := range []*store.Append{small, large, newStep(1)} {
		if err := s.Runs().Append(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	err := s.writer.submit(t.Context(), 0, func(c *conn) error {
		if c.grown {
			t.Error("the writer keeps a heavy connection")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, read := range []struct {
		a    *store.Append
		idle int
	}{{small, 1}, {large, 0}, {small, 1}} {
		count(t, s, read.a.Row.ID)
		if n := len(s.readers.idle); n != read.idle {
			t.Errorf("%d idle readers, want %d", n, read.idle)
		}
	}
}
