package kill

import (
	"os"
	"testing"

	"github.com/fermata-run/fermata/internal/pgtest"
)

// backend are the flags that put a host on the backend that was asked for: with
// FERMATA_TEST_BACKEND=postgres on a database that belongs to its folder.
func backend(t testing.TB, dir string, flags []string) []string {
	t.Helper()
	if os.Getenv("FERMATA_TEST_BACKEND") != "postgres" {
		return flags
	}
	for _, f := range flags {
		if f == "--store" {
			return flags
		}
	}
	return append([]string{"--store", pgtest.Database(t, dir), "--lease", "1s"}, flags...)
}
