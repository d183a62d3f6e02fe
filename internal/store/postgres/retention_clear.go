package postgres

import (
	"context"
	"time"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/jackc/pgx/v5"
)

const (
	selectPending = `SELECT tenant, run_id FROM expired WHERE pending ORDER BY expired_at LIMIT $1`
	measureEvents = `SELECT seq, octet_length(body) + coalesce(octet_length(sealed), 0) FROM events
		WHERE tenant = $1 AND run_id = $2 ORDER BY seq LIMIT $3`
	deleteEvents     = `DELETE FROM events` + oneRun + ` AND seq <= $3`
	deleteCheckpoint = `DELETE FROM checkpoints` + oneRun
	deleteInterrupts = `DELETE FROM interrupts WHERE (tenant, id) IN (
		SELECT tenant, id FROM interrupts WHERE tenant = $1 AND run_id = $2 LIMIT $3)`
	deleteCounts = `DELETE FROM effect_counts WHERE tenant = $1 AND run_id = $2
		AND NOT EXISTS (SELECT 1 FROM effect_attempts WHERE tenant = $1 AND run_id = $2)`
	clearedRun = `UPDATE expired SET pending = false` + oneRun

	oldExpired    = `SELECT tenant, run_id FROM expired WHERE expired_at <= $1 AND NOT pending ORDER BY expired_at LIMIT $2`
	forgetExpired = `DELETE FROM expired WHERE expired_at <= $1 AND tenant = $2 AND run_id = $3 AND NOT pending`
)

// clearing counts down what one transaction may still remove.
type clearing struct {
	q           querier
	rows, bytes int
}

func (k *clearing) spent() bool { return k.rows <= 0 || k.bytes <= 0 }

// Clear implements store.Retention.
func (r retention) Clear(ctx context.Context, limit, maxBytes int) (more bool, err error) {
	err = r.s.tx(ctx, func(q querier) error {
		pending, err := list(ctx, q, func(row pgx.CollectableRow) (id ids.Run, err error) {
			err = row.Scan(&id.Tenant, &id.Opaque)
			return id, err
		}, selectPending, bound(limit))
		if err != nil {
			return err
		}
		k := &clearing{q, limit, maxBytes}
		more = len(pending) == limit
		for _, id := range pending {
			done := !k.spent()
			if done {
				done, err = k.run(ctx, id)
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

// run removes what an expired run has left behind, as far as that is allowed.
func (k *clearing) run(ctx context.Context, id ids.Run) (done bool, err error) {
	for _, step := range []func(context.Context, ids.Run) (bool, error){k.events, k.rest, k.interrupts} {
		if done, err := step(ctx, id); err != nil || !done {
			return false, err
		}
	}
	k.rows--
	_, err = k.q.Exec(ctx, clearedRun, id.Tenant, id.Opaque)
	return true, err
}

func (k *clearing) events(ctx context.Context, id ids.Run) (done bool, err error) {
	type measured struct {
		seq   int64
		bytes int
	}
	limit := k.rows
	found, err := list(ctx, k.q, func(row pgx.CollectableRow) (m measured, err error) {
		err = row.Scan(&m.seq, &m.bytes)
		return m, err
	}, measureEvents, id.Tenant, id.Opaque, int64(limit))
	if err != nil {
		return false, err
	}
	n := 0
	for n < len(found) && k.bytes > 0 {
		k.bytes -= found[n].bytes
		n++
	}
	if n > 0 {
		_, err = k.q.Exec(ctx, deleteEvents, id.Tenant, id.Opaque, found[n-1].seq)
	}
	k.rows -= n
	return n < limit && k.bytes > 0, err
}

func (k *clearing) rest(ctx context.Context, id ids.Run) (done bool, err error) {
	if _, err = k.q.Exec(ctx, deleteCounts, id.Tenant, id.Opaque); err != nil {
		return false, err
	}
	_, err = k.q.Exec(ctx, deleteCheckpoint, id.Tenant, id.Opaque)
	return true, err
}

func (k *clearing) interrupts(ctx context.Context, id ids.Run) (done bool, err error) {
	limit := max(k.rows, 1)
	n, err := change(ctx, k.q, deleteInterrupts, id.Tenant, id.Opaque, int64(limit))
	k.rows -= int(n)
	return int(n) < limit, err
}

// Forget implements store.Retention.
func (r retention) Forget(ctx context.Context, until time.Time, limit int) (int, error) {
	n, err := r.s.purge(ctx, until, limit, purging{oldExpired, forgetExpired})
	return n, wrap("forget expired runs", err)
}

// Reclaim implements store.Retention: the database gives room back by itself.
func (r retention) Reclaim(ctx context.Context) (more bool, err error) {
	err = r.s.open(ctx)
	return false, wrap("give room back", err)
}

var _ store.Retention = retention{}
