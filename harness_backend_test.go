package fermata_test

import (
	"os"
	"testing"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/internal/pgtest"
)

// onPostgres says whether the tests of the wire run on the shared backend: with
// FERMATA_TEST_BACKEND=postgres each of them has a database of its own.
func onPostgres() bool { return os.Getenv("FERMATA_TEST_BACKEND") == "postgres" }

// backend puts a host under test on the backend that was asked for.
func backend(t testing.TB, cfg *fermata.Config) {
	t.Helper()
	if onPostgres() && cfg.Store == "" {
		cfg.Store = pgtest.Database(t, cfg.DataDir)
		cfg.StoreConnections = 8
	}
}
