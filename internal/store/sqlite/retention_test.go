package sqlite

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/store"
)

// ended is newStep of a run that is over, with a payload of about n bytes.
func ended(n int) *store.Append {
	a := newStep(1 + n/100)
	a.Row.Status, a.Row.CompletedAt = "completed", time.Now()
	return a
}

// Nothing of an expired run stays but its tombstone, and once enough is free the
// file gets smaller, in pieces.
func TestExpiredRunsLeaveNothing(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{})
	ctx := t.Context()
	var rows []store.Run
	for range 300 {
		a := ended(200_000)
		i := store.Interrupt{ID: a.Row.ID.Opaque, Run: a.Row.ID, NodeID: "n", Kind: "approval", CreatedAt: time.Now()}
		a.Opened, a.Checkpoint = []store.Interrupt{i}, &store.Checkpoint{State: make([]byte, 100_000)}
		if err := s.Runs().Append(ctx, a); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, a.Row)
	}
	size := func() int64 {
		t.Helper()
		if err := s.Close(); err != nil { // takes the write-ahead log back into the file
			t.Fatal(err)
		}
		st, err := os.Stat(filepath.Join(dir, "fermata.db"))
		if err != nil {
			t.Fatal(err)
		}
		return st.Size()
	}
	if gone, err := s.Retention().Expire(ctx, time.Now(), rows); err != nil || len(gone) != len(rows) {
		t.Fatal(len(gone), err)
	}
	steps := 0
	for more := true; more; steps++ {
		var err error
		if more, err = s.Retention().Clear(ctx, 50, 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	if steps < 30 {
		t.Errorf("cleared in %d transactions", steps)
	}
	for _, table := range []string{"runs", "events", "checkpoints", "interrupts"} {
		var n int64
		err := s.readers.read(ctx, func(c *conn) (err error) {
			n, err = c.pragma(`SELECT count(*) FROM ` + table)
			return err
		})
		if err != nil || n != 0 {
			t.Errorf("%d rows are left in %s: %v", n, table, err)
		}
	}
	var before, free int64
	pages := func() {
		t.Helper()
		err := s.readers.read(ctx, func(c *conn) (err error) {
			if before, err = c.pragma(`PRAGMA page_count`); err == nil {
				free, err = c.pragma(`PRAGMA freelist_count`)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	pages()
	if free < 10_000 {
		t.Fatalf("%d of %d pages are free", free, before)
	}
	all := before
	steps = 0
	for more := true; more; steps++ {
		var err error
		if more, err = s.Retention().Reclaim(ctx); err != nil {
			t.Fatal(err)
		}
	}
	pages()
	if steps < 10 || free > leastSpare || before > all/2 {
		t.Errorf("after %d steps %d pages are free of %d, before %d", steps, free, before, all)
	}
	if got := size(); got != before*4096 {
		t.Errorf("the file has %d bytes, and %d pages", got, before)
	}
}
