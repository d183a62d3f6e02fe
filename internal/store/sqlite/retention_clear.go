package sqlite

import (
	"context"
	"errors"
	"time"

	"github.com/fermata-run/fermata/internal/ids"
)

const (
	selectPending = `SELECT tenant, run_id FROM expired INDEXED BY expired_pending WHERE pending = 1
		ORDER BY expired_at LIMIT ?`
	// The lengths are in the head of a row: a large body is not read for them.
	measureEvents = `SELECT seq, length(body) + coalesce(length(sealed), 0) FROM events
		WHERE tenant = ? AND run_id = ? ORDER BY seq LIMIT ?`
	deleteEvents     = `DELETE FROM events WHERE tenant = ? AND run_id = ? AND seq <= ?`
	deleteCheckpoint = `DELETE FROM checkpoints WHERE tenant = ? AND run_id = ?`
	deleteInterrupts = `DELETE FROM interrupts WHERE (tenant, id) IN (
		SELECT tenant, id FROM interrupts INDEXED BY interrupts_run WHERE tenant = ? AND run_id = ? LIMIT ?)`
	clearedRun = `UPDATE expired SET pending = 0 WHERE tenant = ? AND run_id = ?`

	forgetExpired = `DELETE FROM expired WHERE (tenant, run_id) IN (
		SELECT tenant, run_id FROM expired INDEXED BY expired_at
		WHERE expired_at <= ? AND pending = 0 ORDER BY expired_at LIMIT ?)`
)

// clearing counts down what one transaction may still remove.
type clearing struct {
	c           *conn
	rows, bytes int
}

func (k *clearing) spent() bool { return k.rows <= 0 || k.bytes <= 0 }

// Clear implements store.Retention.
func (r retention) Clear(ctx context.Context, limit, maxBytes int) (more bool, err error) {
	// Most of the time there is nothing, and then no write is made of it.
	pending, err := r.pending(ctx, limit)
	if err != nil || len(pending) == 0 {
		return false, wrap("clear expired runs", err)
	}
	err = r.s.writer.submit(ctx, 0, func(c *conn) error {
		k := &clearing{c, limit, maxBytes}
		more = len(pending) == limit
		for _, id := range pending {
			done := !k.spent()
			if done {
				done, err = k.run(id)
			}
			if err != nil {
				return err
			}
			more = more || !done
		}
		return nil
	})
	return more, wrap("clear expired runs", err)
}

func (r retention) pending(ctx context.Context, limit int) (out []ids.Run, err error) {
	err = r.s.readers.read(ctx, func(c *conn) error {
		return c.prep(selectPending).bound(limit).each(func(r *row) (bool, error) {
			out = append(out, ids.Run{Tenant: r.text(), Opaque: r.text()})
			return true, nil
		})
	})
	return out, err
}

// run removes what an expired run has left behind, as far as that is allowed.
func (k *clearing) run(id ids.Run) (done bool, err error) {
	for _, step := range []func(ids.Run) (bool, error){k.events, k.rest, k.interrupts} {
		if done, err := step(id); err != nil || !done {
			return false, err
		}
	}
	k.rows--
	return true, k.c.prep(clearedRun).id(id).run()
}

func (k *clearing) events(id ids.Run) (done bool, err error) {
	last, n, limit := int64(-1), 0, k.rows
	err = k.c.prep(measureEvents).id(id).int(int64(limit)).each(func(r *row) (bool, error) {
		last = r.int()
		k.bytes -= int(r.int())
		n++
		return k.bytes > 0, nil
	})
	if err == nil && n > 0 {
		err = k.c.prep(deleteEvents).id(id).int(last).run()
	}
	k.rows -= n
	return n < limit && k.bytes > 0, err
}

func (k *clearing) rest(id ids.Run) (done bool, err error) {
	return true, k.c.prep(deleteCheckpoint).id(id).run()
}

func (k *clearing) interrupts(id ids.Run) (done bool, err error) {
	limit := max(k.rows, 1)
	n, err := k.c.prep(deleteInterrupts).id(id).int(int64(limit)).change()
	k.rows -= int(n)
	return int(n) < limit, err
}

// Forget implements store.Retention.
func (r retention) Forget(ctx context.Context, until time.Time, limit int) (n int, err error) {
	err = r.s.writer.submit(ctx, 0, func(c *conn) error {
		gone, err := c.prep(forgetExpired).int(until.UnixMilli()).bound(limit).change()
		n = int(gone)
		return err
	})
	if err != nil {
		return 0, wrap("forget expired runs", err)
	}
	return n, nil
}

// Free pages are used again before the file grows, so a quarter of it may stay
// free; what is beyond goes back to the system, in pieces that keep no other
// write waiting for long.
const (
	spareShare  = 4       // one part in
	leastSpare  = 4 << 10 // pages
	reclaimStep = `PRAGMA incremental_vacuum(256)`
)

// Reclaim implements store.Retention. A database made before it could do that has
// no auto_vacuum and keeps its size.
func (r retention) Reclaim(ctx context.Context) (more bool, err error) {
	err = r.s.writer.submit(ctx, 0, func(c *conn) error {
		more = false
		mode, e1 := c.pragma(`PRAGMA auto_vacuum`)
		free, e2 := c.pragma(`PRAGMA freelist_count`)
		all, e3 := c.pragma(`PRAGMA page_count`)
		if err := errors.Join(e1, e2, e3); err != nil || mode != incremental || !worth(free, all) {
			return err
		}
		more = worth(free-256, all-256)
		return c.prep(reclaimStep).run()
	})
	return more, wrap("give room back", err)
}

func worth(free, all int64) bool { return free > leastSpare && free > all/spareShare }

// pragma reads a setting that is one number.
func (c *conn) pragma(sql string) (n int64, err error) {
	_, err = c.prep(sql).one(func(r *row) { n = r.int() })
	return n, err
}
