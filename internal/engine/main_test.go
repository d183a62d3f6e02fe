package engine

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails the package if a test leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// size picks the short form of a test, or the long one where FERMATA_LONG is set.
func size(short, long int) int {
	if os.Getenv("FERMATA_LONG") != "" {
		return long
	}
	return short
}
