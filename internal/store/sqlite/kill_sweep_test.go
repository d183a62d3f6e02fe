package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
)

// killSweep tells a child process of TestKillDuringSweep where to sweep.
const killSweep = "FERMATA_TEST_KILL_SWEEP"

// TestKillDuringSweep kills a process that lets go of runs, again and again. Each
// run is whole, or has expired as far as anybody can see; what was announced as
// expired stays so; and in the end nothing is left behind.
func TestKillDuringSweep(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{})
	events := map[ids.Run]int{}
	for i := range 500 {
		a := newStep(1 + i%4)
		a.Row.Status, a.Row.CompletedAt = "completed", noon
		for n := 0; ; n++ {
			if err := s.Runs().Append(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			if n == 5 {
				break
			}
			a = nextStep(a, 3)
			a.Checkpoint = &store.Checkpoint{Seq: a.Row.Seq, State: []byte("state")}
		}
		events[a.Row.ID] = int(a.Row.Seq) + 1
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	gone := map[ids.Run]bool{}
	for round := range 6 {
		sweepAndKill(t, dir, 8+7*round, gone)
		s := openTest(t, dir, Options{})
		for id, n := range events {
			row, log, err := s.Runs().Events(t.Context(), id, -1, 0, 0)
			var x store.Expired
			switch {
			case errors.As(err, &x):
				gone[id] = true // committed, if not announced
			case err != nil || len(log) != n || int(row.Seq) != n-1:
				t.Errorf("run %s has %d of %d events: %v", id, len(log), n, err)
			case gone[id]:
				t.Errorf("run %s is back", id)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(gone) == 0 || len(gone) == len(events) {
		t.Fatalf("%d of %d runs were swept: the kills prove nothing", len(gone), len(events))
	}
	s = openTest(t, dir, Options{})
	for more := true; more; {
		var err error
		if more, err = s.Retention().Clear(t.Context(), 50, 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	err := s.readers.read(t.Context(), func(c *conn) error {
		for table, key := range map[string]string{"events": "e", "checkpoints": "e"} {
			n, err := c.pragma(`SELECT count(*) FROM ` + table + ` e WHERE NOT EXISTS
				(SELECT 1 FROM runs r WHERE r.tenant = ` + key + `.tenant AND r.run_id = ` + key + `.run_id)`)
			if err != nil || n != 0 {
				t.Errorf("%d rows of expired runs are left in %s: %v", n, table, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// sweepAndKill starts a child, kills it after some announcements, and keeps what
// it has announced.
func sweepAndKill(t *testing.T, dir string, after int, gone map[ids.Run]bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), killSweep+"="+dir)
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
		if name, ok := strings.CutSuffix(lines.Text(), "."); ok && strings.Contains(name, "/") {
			tenant, opaque, _ := strings.Cut(name, "/")
			gone[ids.Run{Tenant: tenant, Opaque: opaque}] = true
		}
	}
	cmd.Wait() //nolint:errcheck // killed, or through with what there was
}

// sweepForEver lets go of one run after another, and says so after each.
func sweepForEver(dir string) error {
	s, err := Open(filepath.Join(dir, "fermata.db"), Options{})
	if err != nil {
		return err
	}
	ctx, r := context.Background(), s.Retention()
	q := store.EndedQuery{Tenant: "acme", Until: store.Ending{At: noon, ID: "\x7f"}, Limit: 3}
	for {
		rows, err := r.Ended(ctx, q)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return errors.New("there is nothing left to sweep")
		}
		gone, err := r.Expire(ctx, time.Now(), rows)
		if err != nil {
			return err
		}
		for _, id := range gone {
			os.Stdout.WriteString(fmt.Sprintf("%s.\n", id))
		}
		if _, err := r.Clear(ctx, 7, 1<<20); err != nil {
			return err
		}
	}
}
