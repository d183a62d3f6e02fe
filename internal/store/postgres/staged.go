package postgres

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/internal/store/segment"
	"github.com/jackc/pgx/v5"
)

const (
	stagedCount = `SELECT n FROM staged` + oneRun + ` FOR UPDATE`
	putStaged   = `INSERT INTO staged (tenant, run_id, n, created_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (tenant, run_id) DO UPDATE SET n = excluded.n, created_at = excluded.created_at`
	// A run that comes into being takes what is staged, if its own log continues it.
	takeStaged   = `DELETE FROM staged` + oneRun + ` AND n > 0 AND n = $3`
	voidStaged   = `UPDATE staged SET n = 0` + oneRun
	dropStaged   = `DELETE FROM staged` + oneRun
	oldestStaged = `SELECT tenant, run_id FROM staged WHERE created_at < $1 ORDER BY created_at LIMIT 1 FOR UPDATE SKIP LOCKED`
	dropSegments = `DELETE FROM events` + oneRun
	dropSome     = `DELETE FROM events WHERE tenant = $1 AND run_id = $2 AND seq IN (
		SELECT seq FROM events WHERE tenant = $1 AND run_id = $2 LIMIT $3)`
)

// Stage implements store.Runs.
func (r runs) Stage(ctx context.Context, id ids.Run, at time.Time, events []event.Event) error {
	if len(events) == 0 {
		return nil
	}
	err := store.CheckStaged(id, events)
	if err == nil {
		segments := segment.Cut(events)
		err = r.s.tx(ctx, func(q querier) error { return stage(ctx, q, id, at, segments, len(events)) })
	}
	return wrapRun("stage the log of run", id, err)
}

func stage(ctx context.Context, q querier, id ids.Run, at time.Time, segments []segment.Segment, n int) error {
	var yes, gone, have int64
	there, err := one(ctx, q, runIsThere, []any{id.Tenant, id.Opaque}, &yes)
	if err == nil && !there {
		// What has expired is being cleared away, and its id is not given again.
		there, err = one(ctx, q, selectExpired, []any{id.Tenant, id.Opaque}, &gone)
	}
	if err == nil && there {
		err = store.ErrExists
	}
	if err == nil {
		_, err = one(ctx, q, stagedCount, []any{id.Tenant, id.Opaque}, &have)
	}
	first := segments[0].Seq
	if err == nil && first > 0 && have != first {
		err = store.ErrStale
	}
	if err != nil {
		return err
	}
	b, mark := &pgx.Batch{}, rand.Int64()
	b.Queue(putStaged, id.Tenant, id.Opaque, first+int64(n), at.UnixMilli())
	if first == 0 {
		b.Queue(dropSegments, id.Tenant, id.Opaque)
	}
	queueSegments(b, id, segments, mark)
	return q.SendBatch(ctx, b).Close()
}

func queueSegments(b *pgx.Batch, id ids.Run, segments []segment.Segment, mark int64) {
	for i := range segments {
		g := &segments[i]
		b.Queue(insertSegment, id.Tenant, id.Opaque, g.Seq, g.N, g.Body, g.Sealed, mark)
	}
}

// Unstage implements store.Runs: one log at a time, in bounded parts.
func (r runs) Unstage(ctx context.Context, before time.Time, limit int) (n int, err error) {
	err = r.s.tx(ctx, func(q querier) error {
		n = 0
		var id ids.Run
		found, err := one(ctx, q, oldestStaged, []any{before.UnixMilli()}, &id.Tenant, &id.Opaque)
		if err != nil || !found {
			return err
		}
		n = 1
		// From here on nobody can make a run of it.
		if _, err := q.Exec(ctx, voidStaged, id.Tenant, id.Opaque); err != nil {
			return err
		}
		gone, err := change(ctx, q, dropSome, id.Tenant, id.Opaque, bound(limit))
		if err != nil || limit > 0 && gone == int64(limit) {
			return err // there may be more of it
		}
		_, err = q.Exec(ctx, dropStaged, id.Tenant, id.Opaque)
		return err
	})
	return n, wrap("drop staged logs", err)
}
