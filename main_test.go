package fermata_test

import (
	"fmt"
	"net/http"
	"os"
	"testing"

	"github.com/fermata-run/fermata/internal/pgtest"
	"go.uber.org/goleak"
)

// TestMain fails the package if a test leaves a goroutine behind.
func TestMain(m *testing.M) {
	code := pgtest.Run(m)
	http.DefaultClient.CloseIdleConnections()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "goroutines were left behind:", err)
			code = 1
		}
	}
	os.Exit(code)
}
