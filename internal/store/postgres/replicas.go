package postgres

import (
	"context"
	"time"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/jackc/pgx/v5"
)

const (
	tell     = `INSERT INTO told (tenant, run_id, instance) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`
	takeTold = `DELETE FROM told WHERE (tenant, run_id, instance) IN (
		SELECT tenant, run_id, instance FROM told WHERE instance = $1 LIMIT $2 FOR UPDATE SKIP LOCKED) RETURNING tenant, run_id`
	// What was told to instances that are gone; their runs are claimed anyway.
	dropTold     = `DELETE FROM told WHERE NOT EXISTS (SELECT 1 FROM instances i WHERE i.id = told.instance)`
	endOfRun     = `SELECT seq FROM runs` + oneRun
	databaseTime = `SELECT now()`
)

var _ store.Replicas = (*Store)(nil)

// Told implements store.Replicas.
func (s *Store) Told(ctx context.Context, instance string, limit int) (out []ids.Run, err error) {
	err = s.tx(ctx, func(q querier) error {
		out, err = list(ctx, q, func(row pgx.CollectableRow) (id ids.Run, err error) {
			err = row.Scan(&id.Tenant, &id.Opaque)
			return id, err
		}, takeTold, instance, bound(limit))
		return err
	})
	return out, wrap("read what others have done", err)
}

// Ends implements store.Replicas, in one round trip.
func (s *Store) Ends(ctx context.Context, runs []ids.Run) (out map[ids.Run]int64, err error) {
	err = s.read(ctx, func(q querier) error {
		out = make(map[ids.Run]int64, len(runs))
		b := &pgx.Batch{}
		for _, id := range runs {
			b.Queue(endOfRun, id.Tenant, id.Opaque)
		}
		res := q.SendBatch(ctx, b)
		for _, id := range runs {
			var seq int64
			there, err := found(res.QueryRow().Scan(&seq))
			if err != nil {
				res.Close() //nolint:errcheck // the first failure counts
				return err
			}
			if there {
				out[id] = seq
			}
		}
		return res.Close()
	})
	return out, wrap("read the ends of logs", err)
}

// Now implements store.Replicas.
func (s *Store) Now(ctx context.Context) (at time.Time, err error) {
	err = s.read(ctx, func(q querier) error {
		_, err := one(ctx, q, databaseTime, nil, &at)
		return err
	})
	return at, wrap("read the time", err)
}
