package postgres

import (
	"context"
	"time"

	"github.com/fermata-run/fermata/internal/store"
	"github.com/jackc/pgx/v5"
)

// quiet says whether there is nothing to claim, in one round trip and without a
// transaction: everybody lives who has, and nothing is due. Most looks of most replicas
// find that. It fails if instance does not live.
func (o ownership) quiet(ctx context.Context, instance string, now time.Time) (is bool, err error) {
	err = o.s.read(ctx, func(q querier) error {
		is = true
		b := &pgx.Batch{}
		b.Queue(selectInstances)
		b.Queue(nextWake)
		res := q.SendBatch(ctx, b)
		defer res.Close() //nolint:errcheck // what is read below says what failed
		rows, err := res.Query()
		if err != nil {
			return err
		}
		all, err := collect(rows, scanInstance)
		if err != nil {
			return err
		}
		var living []string
		known := false
		for _, x := range all {
			living = append(living, x.id)
			known = known || x.id == instance
			is = is && (!x.over || x.id == instance)
		}
		if !known {
			return store.ErrNotFound
		}
		var wake time.Time
		there, err := found(res.QueryRow().Scan((*stamp)(&wake)))
		if err != nil {
			return err
		}
		o.s.living.Store(int32(len(living)))
		is = is && !(there && !wake.After(now)) && !o.s.looks.wanted(living)
		return nil
	})
	return is, err
}
