package kill

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/fermata-run/fermata/internal/pgtest"
)

// builds is the folder of the binary under test; empty until it is needed.
var builds string

func TestMain(m *testing.M) {
	code := pgtest.Run(m)
	if builds != "" {
		os.RemoveAll(builds)
	}
	os.Exit(code)
}

// binary is the path of the binary under test, built once.
func binary(t testing.TB) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("there is no SIGKILL or SIGTERM here")
	}
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var build = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("FERMATA_KILL_BINARY"); path != "" {
		return path, nil
	}
	dir, err := os.MkdirTemp("", "fermata-kill-")
	if err != nil {
		return "", err
	}
	builds = dir
	path := filepath.Join(dir, "fermata")
	cmd := exec.Command("go", "build", "-o", path, "github.com/fermata-run/fermata/cmd/fermata")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is released
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the binary: %w\n%s", err, out)
	}
	return path, nil
})
