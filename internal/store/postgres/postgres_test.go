package postgres

import (
	"os"
	"testing"

	"github.com/fermata-run/fermata/internal/pgtest"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/internal/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

func TestContract(t *testing.T) {
	pgtest.Shared(t)
	storetest.Run(t, func(t *testing.T, dir string) store.Store { return openTest(t, dir, "", Options{}) })
}

// TestContractBehindPoolers: the same without prepared statements, as a pooler that
// hands out a connection per transaction needs it.
func TestContractBehindPoolers(t *testing.T) {
	pgtest.Shared(t)
	if testing.Short() {
		t.Skip("the contract once more")
	}
	modes := []string{"cache_describe"}
	if os.Getenv("FERMATA_LONG") != "" {
		modes = append(modes, "exec", "simple_protocol")
	}
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T, dir string) store.Store {
				return openTest(t, dir, "&default_query_exec_mode="+mode, Options{})
			})
		})
	}
}

// TestContractWithFewConnections: nothing may need two connections at once.
func TestContractWithFewConnections(t *testing.T) {
	pgtest.Shared(t)
	if os.Getenv("FERMATA_LONG") == "" {
		t.Skip("the contract once more: FERMATA_LONG is not set")
	}
	storetest.Run(t, func(t *testing.T, dir string) store.Store {
		return openTest(t, dir, "", Options{Connections: 1, Writers: 1})
	})
}

// openTest opens the database that belongs to a folder. Closing it earlier is fine.
func openTest(t testing.TB, dir, query string, opts Options) *Store {
	t.Helper()
	opts.Migrate = true
	s, err := Open(t.Context(), pgtest.Database(t, dir)+query, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
