package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/jackc/pgx/v5"
)

// retention implements store.Retention.
type retention struct{ s *Store }

const (
	// One look at the index finds the next tenant, however many runs each has.
	nextTenant = `SELECT tenant FROM runs WHERE tenant > $1 ORDER BY tenant LIMIT 1`

	selectEnded = `SELECT ` + runColumns + ` FROM runs WHERE tenant = $1 AND completed_at IS NOT NULL
		AND (completed_at, run_id) > ($2, $3) AND (completed_at, run_id) <= ($4, $5)
		ORDER BY completed_at, run_id LIMIT $6`
	endOf = `SELECT completed_at, run_id FROM runs WHERE tenant = $1 AND completed_at IS NOT NULL
		ORDER BY completed_at DESC, run_id DESC LIMIT 1 OFFSET $2`

	needingChild = `SELECT 1 FROM runs WHERE parent_tenant = $1 AND parent_id = $2 AND (notify OR ` + going + `) LIMIT 1`
	goingRun     = `SELECT 1 FROM runs` + oneRun + ` AND ` + going
	queuedOf     = `SELECT 1 FROM deliveries` + oneRun + ` LIMIT 1`

	lockRun        = selectRun + ` FOR UPDATE`
	deleteRun      = `DELETE FROM runs` + oneRun
	insertExpired  = `INSERT INTO expired (tenant, run_id, expired_at, pending) VALUES ($1, $2, $3, true)`
	hideInterrupts = `UPDATE interrupts SET open = false, data = NULL` + oneRun + ` AND open`

	selectClock = `SELECT trusted, since FROM retention_clock WHERE id = 1`
	firstClock  = `INSERT INTO retention_clock (id) VALUES (1) ON CONFLICT DO NOTHING`
	lockClock   = selectClock + ` FOR UPDATE`
	putClock    = `UPDATE retention_clock SET trusted = $1, since = $2 WHERE id = 1`
)

// Tenants implements store.Retention.
func (r retention) Tenants(ctx context.Context, after string, limit int) (out []string, err error) {
	err = r.s.read(ctx, func(q querier) error {
		out = nil
		for at := after; limit <= 0 || len(out) < limit; {
			found, err := one(ctx, q, nextTenant, []any{at}, &at)
			if err != nil || !found {
				return err
			}
			out = append(out, at)
		}
		return nil
	})
	if err != nil {
		out = nil
	}
	return out, wrap("list tenants", err)
}

// Ended implements store.Retention.
func (r retention) Ended(ctx context.Context, x store.EndedQuery) (out []store.Run, err error) {
	err = r.s.read(ctx, func(q querier) error {
		out, err = list(ctx, q, scanRun, selectEnded, x.Tenant,
			order(x.After.At), x.After.ID, order(x.Until.At), x.Until.ID, bound(x.Limit))
		return err
	})
	return out, wrap("list ended runs", err)
}

// EndOf implements store.Retention.
func (r retention) EndOf(ctx context.Context, tenant string, keep int) (e store.Ending, err error) {
	err = r.s.read(ctx, func(q querier) error {
		_, err := one(ctx, q, endOf, []any{tenant, int64(max(keep, 0))}, (*stamp)(&e.At), &e.ID)
		return err
	})
	return e, wrap("find the end of the newest runs", err)
}

// Needed implements store.Retention.
func (r retention) Needed(ctx context.Context, id ids.Run) (is bool, err error) {
	err = r.s.read(ctx, func(q querier) error {
		run, err := getRun(ctx, q, id)
		if err == nil {
			is, err = needed(ctx, q, &run)
		}
		return err
	})
	return is, wrapRun("look at run", id, err)
}

// needed is the one place that knows what in the database still needs a run that is
// over. A table whose rows must outlive no run, or must keep one, adds its question
// here.
func needed(ctx context.Context, q querier, r *store.Run) (bool, error) {
	if r.Notify || r.Compensation == "pending" || r.Compensation == "running" {
		return true, nil
	}
	questions := []statement{
		{needingChild, []any{r.ID.Tenant, r.ID.Opaque}},
		{queuedOf, []any{r.ID.Tenant, r.ID.Opaque}},
	}
	if !r.Parent.IsZero() {
		questions = append(questions, statement{goingRun, []any{r.Parent.Tenant, r.Parent.Opaque}})
	}
	for _, x := range questions {
		var yes int
		if found, err := one(ctx, q, x.sql, x.args, &yes); err != nil || found {
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
	err = r.s.tx(ctx, func(q querier) error {
		gone = nil
		for i := range runs {
			ok, err := expire(ctx, q, at, &runs[i])
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

func expire(ctx context.Context, q querier, at time.Time, want *store.Run) (bool, error) {
	is, err := scanOne(ctx, q, scanRun, lockRun, want.ID.Tenant, want.ID.Opaque)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil || is.Epoch != want.Epoch || is.Seq != want.Seq || is.Instance != "" || !over(is.Status) {
		return false, err
	}
	if keep, err := needed(ctx, q, &is); err != nil || keep {
		return false, err
	}
	b := &pgx.Batch{}
	b.Queue(deleteRun, is.ID.Tenant, is.ID.Opaque)
	b.Queue(insertExpired, is.ID.Tenant, is.ID.Opaque, at.UnixMilli())
	b.Queue(hideInterrupts, is.ID.Tenant, is.ID.Opaque)
	return true, q.SendBatch(ctx, b).Close()
}

// Clock implements store.Retention.
func (r retention) Clock(ctx context.Context) (out store.Clock, err error) {
	err = r.s.read(ctx, func(q querier) error {
		_, err := one(ctx, q, selectClock, nil, (*stamp)(&out.Trusted), (*stamp)(&out.Since))
		return err
	})
	return out, wrap("read the clock of retention", err)
}

// SetClock implements store.Retention.
func (r retention) SetClock(ctx context.Context, old, new store.Clock) error {
	return wrap("set the clock of retention", r.s.tx(ctx, func(q querier) error {
		if _, err := q.Exec(ctx, firstClock); err != nil {
			return err
		}
		var is store.Clock
		if _, err := one(ctx, q, lockClock, nil, (*stamp)(&is.Trusted), (*stamp)(&is.Since)); err != nil {
			return err
		}
		if !is.Trusted.Equal(old.Trusted) || !is.Since.Equal(old.Since) {
			return store.ErrStale
		}
		_, err := q.Exec(ctx, putClock, millis(new.Trusted), millis(new.Since))
		return err
	}))
}
