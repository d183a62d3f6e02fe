package postgres

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/fermata-run/fermata/internal/store"
	"github.com/jackc/pgx/v5"
)

// deliveries implements store.Deliveries.
type deliveries struct{ s *Store }

const (
	oneTarget   = ` WHERE tenant = $1 AND target = $2`
	oneDelivery = oneTarget + ` AND run_id = $3`

	// reschedule says when a target is due from what its entries say.
	reschedule = `UPDATE delivery_targets SET due_at = (SELECT greatest(d.due_at, delivery_targets.resume_at) FROM deliveries d
		WHERE d.tenant = $1 AND d.target = $2 ORDER BY d.due_at LIMIT 1)` + oneTarget

	dueTargets = `SELECT tenant, target, url, due_at, failures FROM delivery_targets
		WHERE due_at IS NOT NULL AND due_at <= $1 AND tenant <> ALL ($2) ORDER BY due_at LIMIT $3`
	nextTarget = `SELECT due_at FROM delivery_targets WHERE due_at IS NOT NULL ORDER BY due_at LIMIT 1`
	takeTarget = `SELECT url, failures, failing_since FROM delivery_targets` + oneTarget + ` AND due_at <= $3 FOR UPDATE`
	dueEntries = `SELECT run_id, next_seq, last_seq, attempts, created_at FROM deliveries` + oneTarget + `
		AND due_at <= $3 ORDER BY due_at LIMIT $4 FOR UPDATE`
	takeEntry = `UPDATE deliveries SET due_at = $4, holder = $5, claim = $6` + oneDelivery

	heldEntry    = `SELECT last_seq FROM deliveries` + oneDelivery + ` AND claim = $4 FOR UPDATE`
	removeEntry  = `DELETE FROM deliveries` + oneDelivery
	moveEntry    = `UPDATE deliveries SET next_seq = $4, attempts = $5, due_at = $6` + oneDelivery
	releaseEntry = `UPDATE deliveries SET next_seq = $4, attempts = $5, due_at = $6, holder = NULL, claim = 0` + oneDelivery
	fareTarget   = `UPDATE delivery_targets SET failures = $3, failing_since = $4, resume_at = $5` + oneTarget
	emptyTarget  = `DELETE FROM delivery_targets` + oneTarget + ` AND url IS NOT NULL AND due_at IS NULL`

	isLost      = `holder IS NOT NULL AND NOT EXISTS (SELECT 1 FROM instances i WHERE i.id = deliveries.holder)`
	lostTargets = `UPDATE delivery_targets SET due_at = greatest($1, resume_at) WHERE (tenant, target) IN (
		SELECT tenant, target FROM deliveries WHERE ` + isLost + `)`
	lostEntries = `UPDATE deliveries SET due_at = $1, holder = NULL, claim = 0 WHERE ` + isLost
)

// Due implements store.Deliveries.
func (d deliveries) Due(ctx context.Context, now time.Time, skip []string, limit int) (out []store.Target, err error) {
	if skip == nil {
		skip = []string{}
	}
	err = d.s.read(ctx, func(q querier) error {
		out, err = list(ctx, q, func(row pgx.CollectableRow) (t store.Target, err error) {
			err = row.Scan(&t.Tenant, &t.ID, (*raw)(&t.URL), (*stamp)(&t.DueAt), &t.Failures)
			return t, err
		}, dueTargets, now.UnixMilli(), skip, bound(limit))
		return err
	})
	return out, wrap("list what is due", err)
}

// NextDue implements store.Deliveries.
func (d deliveries) NextDue(ctx context.Context) (at time.Time, err error) {
	err = d.s.read(ctx, func(q querier) error {
		_, err := one(ctx, q, nextTarget, nil, (*stamp)(&at))
		return err
	})
	return at, wrap("next delivery", err)
}

// Take implements store.Deliveries.
func (d deliveries) Take(ctx context.Context, x store.TakeQuery) (out []store.Delivery, err error) {
	err = d.s.tx(ctx, func(q querier) error {
		out = nil
		if err := alive(ctx, q, x.Instance); err != nil {
			return err
		}
		for _, quota := range x.Quotas {
			got, err := takeFrom(ctx, q, &x, quota)
			if err != nil {
				return err
			}
			out = append(out, got...)
		}
		return nil
	})
	if err != nil {
		return nil, wrap("take deliveries", err)
	}
	return out, nil
}

func takeFrom(ctx context.Context, q querier, x *store.TakeQuery, of store.Quota) (out []store.Delivery, err error) {
	t := store.Delivery{Tenant: of.Tenant, Target: of.Target}
	found, err := one(ctx, q, takeTarget, []any{of.Tenant, of.Target, x.Now.UnixMilli()}, (*raw)(&t.URL), &t.Failures, (*stamp)(&t.FailingSince))
	if err != nil || !found {
		return nil, err
	}
	out, err = list(ctx, q, func(row pgx.CollectableRow) (store.Delivery, error) {
		e := t
		e.Run.Tenant, e.Claim = of.Tenant, 1+rand.Int64N(1<<62)
		err := row.Scan(&e.Run.Opaque, &e.Next, &e.Last, &e.Attempts, (*stamp)(&e.CreatedAt))
		return e, err
	}, dueEntries, of.Tenant, of.Target, x.Now.UnixMilli(), bound(of.Limit))
	if err != nil {
		return nil, err
	}
	b := &pgx.Batch{}
	for i := range out {
		e := &out[i]
		b.Queue(takeEntry, e.Tenant, e.Target, e.Run.Opaque, millis(x.Until), x.Instance, e.Claim)
	}
	// Even if nothing was due: then it is the target that was wrong.
	b.Queue(reschedule, of.Tenant, of.Target)
	return out, q.SendBatch(ctx, b).Close()
}

// Settle implements store.Deliveries.
func (d deliveries) Settle(ctx context.Context, s store.Settlement) error {
	err := s.Check()
	if err == nil {
		err = d.s.tx(ctx, func(q querier) error { return settle(ctx, q, &s) })
	}
	return wrap("settle a delivery", err)
}

func settle(ctx context.Context, q querier, s *store.Settlement) error {
	target := []any{s.Tenant, s.Target}
	key := []any{s.Tenant, s.Target, s.Run.Opaque}
	with := func(args ...any) []any { return append(key[:3:3], args...) }
	if s.Disable != "" { // as whoever changes subscriptions: the turn, then the target
		if _, err := q.Exec(ctx, turnHooks, s.Tenant); err != nil {
			return err
		}
	}
	if _, err := q.Exec(ctx, lockTarget, target...); err != nil {
		return err
	}
	var last int64
	found, err := one(ctx, q, heldEntry, with(s.Claim), &last)
	if err == nil && !found {
		err = store.ErrStale
	}
	if err != nil {
		return err
	}
	do := func(sql string, args ...any) {
		if err == nil {
			_, err = q.Exec(ctx, sql, args...)
		}
	}
	switch {
	case s.Next > last:
		do(removeEntry, key...)
	case s.Next > s.Last: // it has grown
		do(releaseEntry, with(s.Next, 0, millis(s.Now))...)
	case s.Hold:
		do(moveEntry, with(s.Next, s.Attempts, millis(s.DueAt))...)
	default:
		do(releaseEntry, with(s.Next, s.Attempts, millis(s.DueAt))...)
	}
	for i := range s.Letters {
		if err == nil {
			err = putLetter(ctx, q, &s.Letters[i])
		}
	}
	if s.Disable != "" {
		do(disableHook, s.Tenant, s.Target, millis(s.Now), []byte(s.Disable))
	}
	resume := int64(0)
	if !s.ResumeAt.IsZero() {
		resume = s.ResumeAt.UnixMilli()
	}
	do(fareTarget, s.Tenant, s.Target, s.Failures, millis(s.FailingSince), resume)
	do(reschedule, target...)
	if s.Next > last {
		do(emptyTarget, target...)
	}
	return err
}

// Recover implements store.Deliveries.
func (d deliveries) Recover(ctx context.Context, instance string, now time.Time) (n int, err error) {
	err = d.s.tx(ctx, func(q querier) error {
		if _, err := others(ctx, q, instance); err != nil {
			return err
		}
		if _, err := q.Exec(ctx, lostTargets, now.UnixMilli()); err != nil {
			return err
		}
		gone, err := change(ctx, q, lostEntries, now.UnixMilli())
		n = int(gone)
		return err
	})
	if err != nil {
		return 0, wrap("recover deliveries", err)
	}
	return n, nil
}
