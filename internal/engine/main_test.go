package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/fermata-run/fermata/internal/pgtest"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/internal/store/postgres"
	"github.com/fermata-run/fermata/internal/store/sqlite"
	"go.uber.org/goleak"
)

// TestMain fails the package if a test leaves a goroutine behind.
func TestMain(m *testing.M) {
	code := pgtest.Run(m)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "goroutines were left behind:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// openStore opens the store that belongs to a folder: with
// FERMATA_TEST_BACKEND=postgres on the shared backend.
func openStore(t testing.TB, dir string) (store.Store, error) {
	if onPostgres() {
		return postgres.Open(t.Context(), pgtest.Database(t, dir), postgres.Options{Migrate: true, Connections: 8})
	}
	return sqlite.Open(filepath.Join(dir, "lab.db"), sqlite.Options{})
}

// size picks the short form of a test, or the long one where FERMATA_LONG is set.
func size(short, long int) int {
	if os.Getenv("FERMATA_LONG") != "" {
		return long
	}
	return short
}

func onPostgres() bool { return os.Getenv("FERMATA_TEST_BACKEND") == "postgres" }
