package sqlite

import (
	"context"
	"errors"
	"time"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
)

// retention implements store.Retention; what removes things is in
// retention_clear.go.
type retention struct{ s *Store }

const (
	// One look at the index finds the next tenant, however many runs each has.
	nextTenant = `SELECT tenant FROM runs WHERE tenant > ? ORDER BY tenant LIMIT 1`

	selectEnded = `SELECT ` + runColumns + ` FROM runs INDEXED BY runs_ended
		WHERE tenant = ?1 AND completed_at IS NOT NULL
		AND (completed_at, run_id) > (?2, ?3) AND (completed_at, run_id) <= (?4, ?5)
		ORDER BY completed_at, run_id LIMIT ?6`
	endOf = `SELECT completed_at, run_id FROM runs INDEXED BY runs_ended
		WHERE tenant = ? AND completed_at IS NOT NULL
		ORDER BY completed_at DESC, run_id DESC LIMIT 1 OFFSET ?`

	needingChild = `SELECT 1 FROM runs WHERE parent_tenant = ? AND parent_id = ? AND (notify = 1 OR ` + going + `) LIMIT 1`
	goingRun     = `SELECT 1 FROM runs WHERE tenant = ? AND run_id = ? AND ` + going

	queuedOf = `SELECT 1 FROM deliveries WHERE tenant = ? AND run_id = ? LIMIT 1`

	selectExpired  = `SELECT expired_at FROM expired WHERE tenant = ? AND run_id = ?`
	deleteRun      = `DELETE FROM runs WHERE tenant = ? AND run_id = ?`
	insertExpired  = `INSERT INTO expired (tenant, run_id, expired_at, pending) VALUES (?,?,?,1)`
	hideInterrupts = `UPDATE interrupts INDEXED BY interrupts_run SET open = 0, data = NULL WHERE tenant = ? AND run_id = ? AND open = 1`

	selectClock = `SELECT trusted, since FROM retention_clock WHERE id = 1`
	putClock    = `INSERT INTO retention_clock (id, trusted, since) VALUES (1,?,?)
		ON CONFLICT DO UPDATE SET trusted = excluded.trusted, since = excluded.since`
)

// id binds the two columns that name a run.
func (q *query) id(id ids.Run) *query { return q.text(id.Tenant).text(id.Opaque) }

// missing is the failure of a method that names a run which has no row.
func missing(c *conn, id ids.Run) error {
	gone := store.Expired{Run: id}
	found, err := c.prep(selectExpired).id(id).one(func(r *row) { gone.At = r.time() })
	switch {
	case err != nil:
		return err
	case found:
		return gone
	}
	return store.ErrNotFound
}

// Tenants implements store.Retention.
func (r retention) Tenants(ctx context.Context, after string, limit int) (out []string, err error) {
	err = r.s.readers.snapshot(ctx, func(c *conn) error {
		for limit <= 0 || len(out) < limit {
			found, err := c.prep(nextTenant).text(after).one(func(r *row) { after = r.text() })
			if err != nil || !found {
				return err
			}
			out = append(out, after)
		}
		return nil
	})
	if err != nil {
		out = nil
	}
	return out, wrap("list tenants", err)
}

// Ended implements store.Retention.
func (r retention) Ended(ctx context.Context, q store.EndedQuery) (out []store.Run, err error) {
	err = r.s.readers.read(ctx, func(c *conn) error {
		out, err = scanRuns(c.prep(selectEnded).text(q.Tenant).
			int(millis(q.After.At)).text(q.After.ID).int(millis(q.Until.At)).text(q.Until.ID).bound(q.Limit))
		return err
	})
	return out, wrap("list ended runs", err)
}

// millis is a time as a number that sorts, the zero time before all others.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return -1 << 63
	}
	return t.UnixMilli()
}

// EndOf implements store.Retention.
func (r retention) EndOf(ctx context.Context, tenant string, keep int) (e store.Ending, err error) {
	err = r.s.readers.read(ctx, func(c *conn) error {
		_, err := c.prep(endOf).text(tenant).int(int64(max(keep, 0))).one(func(r *row) {
			e.At, e.ID = r.time(), r.text()
		})
		return err
	})
	return e, wrap("find the end of the newest runs", err)
}

// Needed implements store.Retention.
func (r retention) Needed(ctx context.Context, id ids.Run) (is bool, err error) {
	err = r.s.readers.snapshot(ctx, func(c *conn) error {
		run, err := getRun(c, id)
		if err == nil {
			is, err = needed(c, &run)
		}
		return err
	})
	return is, wrapRun("look at run", id, err)
}

// needed is the one place that knows what in the database still needs a run that
// is over. A table whose rows must outlive no run, or must keep one, adds its
// question here.
func needed(c *conn, r *store.Run) (bool, error) {
	if r.Notify || r.Compensation == "pending" || r.Compensation == "running" {
		return true, nil
	}
	questions := []*query{c.prep(needingChild).id(r.ID), c.prep(queuedOf).id(r.ID)}
	if !r.Parent.IsZero() {
		questions = append(questions, c.prep(goingRun).id(r.Parent))
	}
	for _, q := range questions {
		if found, err := q.one(func(*row) {}); err != nil || found {
			return found, err
		}
	}
	return false, nil
}

// over says whether a run's status is a last one.
func over(status string) bool {
	return status == "completed" || status == "failed" || status == "cancelled"
}

// Expire implements store.Retention.
func (r retention) Expire(ctx context.Context, at time.Time, runs []store.Run) (gone []ids.Run, err error) {
	err = r.s.writer.submit(ctx, 0, func(c *conn) error {
		gone = nil
		for i := range runs {
			ok, err := expire(c, at, &runs[i])
			if err != nil {
				return err
			}
			if ok {
				gone = append(gone, runs[i].ID)
			}
		}
		return nil
	})
	if err != nil {
		return nil, wrap("expire runs", err)
	}
	return gone, nil
}

func expire(c *conn, at time.Time, want *store.Run) (bool, error) {
	is, err := getRun(c, want.ID)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil || is.Epoch != want.Epoch || is.Seq != want.Seq || is.Instance != "" || !over(is.Status) {
		return false, err
	}
	if keep, err := needed(c, &is); err != nil || keep {
		return false, err
	}
	return true, errors.Join(
		c.prep(deleteRun).id(is.ID).run(),
		c.prep(insertExpired).id(is.ID).int(at.UnixMilli()).run(),
		c.prep(hideInterrupts).id(is.ID).run(),
	)
}

// Clock implements store.Retention.
func (r retention) Clock(ctx context.Context) (out store.Clock, err error) {
	err = r.s.readers.read(ctx, func(c *conn) error {
		out, err = readClock(c)
		return err
	})
	return out, wrap("read the clock of retention", err)
}

func readClock(c *conn) (out store.Clock, err error) {
	_, err = c.prep(selectClock).one(func(r *row) { out.Trusted, out.Since = r.time(), r.time() })
	return out, err
}

// SetClock implements store.Retention.
func (r retention) SetClock(ctx context.Context, old, new store.Clock) error {
	return wrap("set the clock of retention", r.s.writer.submit(ctx, 0, func(c *conn) error {
		is, err := readClock(c)
		if err != nil {
			return err
		}
		if !is.Trusted.Equal(old.Trusted) || !is.Since.Equal(old.Since) {
			return store.ErrStale
		}
		return c.prep(putClock).time(new.Trusted).time(new.Since).run()
	}))
}
