package sqlite

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-run/fermata/internal/ids"
	"go.uber.org/goleak"
)

// killFolder tells a child process of TestKill where to write.
const killFolder = "FERMATA_TEST_KILL_FOLDER"

// TestKill kills a process in the middle of its writes, again and again on one
// folder, and finds every step that was acknowledged in a log without gaps.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	acked := map[ids.Run]int64{}
	for round := range 3 {
		killOne(t, dir, 150+100*round, acked)
		// Opens at once: the lock died with its holder.
		s, err := Open(filepath.Join(dir, "fermata.db"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		for id, seq := range acked {
			if n := count(t, s, id); int64(n) <= seq {
				t.Errorf("run %s has %d events, but %d was acknowledged", id, n, seq)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(acked) == 0 {
		t.Fatal("nothing was acknowledged")
	}
}

// killOne starts a child, kills it after some acknowledgements, and keeps all
// that it has sent.
func killOne(t *testing.T, dir string, after int, acked map[ids.Run]int64) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), killFolder+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		if n == after {
			cmd.Process.Kill()
		}
		var id ids.Run
		var seq int64
		tenant, rest, _ := strings.Cut(lines.Text(), "/")
		if _, err := fmt.Sscanf(rest, "%s %d.", &id.Opaque, &seq); err != nil || !strings.HasSuffix(rest, ".") {
			continue // the last line may be cut short
		}
		id.Tenant = tenant
		acked[id] = max(acked[id], seq)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the child ended by itself")
	}
}

// TestMain lets the test binary be the process that TestKill kills, and checks
// that no goroutine outlives the tests.
func TestMain(m *testing.M) {
	if dir := os.Getenv(killFolder); dir != "" {
		fmt.Fprintln(os.Stderr, writeForEver(dir))
		os.Exit(1)
	}
	if dir := os.Getenv(killSweep); dir != "" {
		fmt.Fprintln(os.Stderr, sweepForEver(dir))
		os.Exit(1)
	}
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// writeForEver has eight writers grow one run after another, and say so after
// each step.
func writeForEver(dir string) error {
	s, err := Open(filepath.Join(dir, "fermata.db"), Options{})
	if err != nil {
		return err
	}
	failed := make(chan error)
	for range 8 {
		go func() {
			for {
				failed <- writeRun(s)
			}
		}()
	}
	for err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}

func writeRun(s *Store) error {
	a := newStep(1)
	for range 20 {
		if err := s.Runs().Append(context.Background(), a); err != nil {
			return err
		}
		// One write, so that lines do not mix.
		os.Stdout.WriteString(fmt.Sprintf("%s %d.\n", a.Row.ID, a.Row.Seq))
		a = nextStep(a, 1+int(a.Row.Seq)%4)
	}
	return nil
}
