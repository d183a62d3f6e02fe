package sqlite

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/internal/store/storetest"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T, dir string) store.Store { return openTest(t, dir, Options{}) })
}

// TestContractWithOneReader: nothing may need two connections at once.
func TestContractWithOneReader(t *testing.T) {
	if testing.Short() {
		t.Skip("the contract once more")
	}
	storetest.Run(t, func(t *testing.T, dir string) store.Store { return openTest(t, dir, Options{Readers: 1}) })
}

// openTest opens the database in a folder. Closing it earlier is fine.
func openTest(t testing.TB, dir string, opts Options) *Store {
	t.Helper()
	s, err := Open(filepath.Join(dir, "fermata.db"), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// TestRegisterDeclaresOthersLost: the database belongs to one process, so a new
// instance takes over at once what any other has held, without a clean leave.
func TestRegisterDeclaresOthersLost(t *testing.T) {
	dir := t.TempDir()
	a := newStep(1)
	a.Row.Instance, a.Row.Epoch = "old", 1
	claim := func(s *Store, instance string) {
		t.Helper()
		if err := s.Ownership().Register(t.Context(), instance); err != nil {
			t.Fatal(err)
		}
		got, err := s.Ownership().Claim(t.Context(), instance, noon, 10)
		if err != nil || len(got) != 1 || got[0].ID != a.Row.ID || got[0].Instance != instance {
			t.Fatalf("%s claimed %+v: %v", instance, got, err)
		}
	}
	s := openTest(t, dir, Options{})
	if err := s.Runs().Append(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	claim(s, "one")
	claim(s, "two")
	if err := s.Ownership().Heartbeat(t.Context(), "one", time.Hour); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("a lost instance's heartbeat: %v", err)
	}
	if _, err := s.Ownership().Claim(t.Context(), "one", noon, 10); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("a lost instance's claim: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	claim(openTest(t, dir, Options{}), "three")
}
