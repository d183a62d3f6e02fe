package conformance_test

import (
	"os"
	"testing"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/internal/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

// backend is the database of a host that belongs to a folder, and its master key:
// with FERMATA_TEST_BACKEND=postgres; else both are empty.
func backend(t *testing.T, dir string) (address, master string) {
	t.Helper()
	if os.Getenv("FERMATA_TEST_BACKEND") != "postgres" {
		return "", ""
	}
	return pgtest.Database(t, dir), fermata.NewMasterKey()
}
