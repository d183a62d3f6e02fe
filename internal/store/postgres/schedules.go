package postgres

import (
	"context"
	"time"

	"github.com/fermata-run/fermata/internal/store"
	"github.com/jackc/pgx/v5"
)

// schedules implements store.Schedules.
type schedules struct{ s *Store }

const (
	scheduleColumns = `tenant, workflow, trigger_id, version, spec, owner, next_at, due_at, last_at, last_run, revision`
	oneSchedule     = ` WHERE tenant = $1 AND workflow = $2 AND trigger_id = $3`

	// Who changes the schedules of a workflow holds its turn (lockWorkflow).
	workflowSchedules = `SELECT ` + scheduleColumns + ` FROM schedules WHERE tenant = $1 AND workflow = $2 FOR UPDATE`
	insertSchedule    = `INSERT INTO schedules (` + scheduleColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, NULL, '', 1)`
	adoptSchedule     = `UPDATE schedules SET version = $4, spec = $5, owner = $6, next_at = $7, due_at = $8, revision = revision + 1` + oneSchedule
	dropSchedule      = `DELETE FROM schedules` + oneSchedule
	dropSchedules     = `DELETE FROM schedules WHERE tenant = $1 AND workflow = $2`

	dueSchedules = `SELECT ` + scheduleColumns + ` FROM schedules WHERE due_at <= $1 ORDER BY due_at LIMIT $2 FOR UPDATE SKIP LOCKED`
	nextPunctual = `SELECT tenant, due_at FROM schedules WHERE tenant > $1 AND due_at IS NOT NULL ORDER BY tenant, due_at LIMIT 1`
	punctualOf   = `SELECT ` + scheduleColumns + ` FROM schedules WHERE tenant = $1 AND due_at <= $2 ORDER BY due_at LIMIT $3 FOR UPDATE SKIP LOCKED`

	claimSchedule = `UPDATE schedules SET due_at = $4, revision = revision + 1` + oneSchedule
	nextSchedule  = `SELECT due_at FROM schedules WHERE due_at IS NOT NULL ORDER BY due_at LIMIT 1`
	moveSchedule  = `UPDATE schedules SET next_at = $5, due_at = $6, last_at = $7, last_run = $8, revision = revision + 1` + oneSchedule + ` AND revision = $4`
	listSchedules = `SELECT ` + scheduleColumns + ` FROM schedules
		WHERE tenant = $1 AND (workflow, trigger_id) > ($2, $3) ORDER BY workflow, trigger_id LIMIT $4`
)

// Schedules implements store.Store.
func (s *Store) Schedules() store.Schedules { return schedules{s} }

func scanSchedule(row pgx.CollectableRow) (x store.Schedule, err error) {
	err = row.Scan(&x.Tenant, (*raw)(&x.Workflow), (*raw)(&x.Trigger), (*raw)(&x.Version), &x.Spec, &x.Owner,
		(*stamp)(&x.NextAt), (*stamp)(&x.DueAt), (*stamp)(&x.LastAt), &x.LastRun, &x.Revision)
	return x, err
}

// keepSchedules makes a workflow's schedules those of the version that is put.
func keepSchedules(ctx context.Context, q querier, f *store.Workflow) error {
	there, err := list(ctx, q, scanSchedule, workflowSchedules, f.Tenant, []byte(f.ID))
	if err != nil {
		return err
	}
	plan := store.PlanSchedules(f, there)
	key := func(x *store.Schedule) []any { return []any{f.Tenant, []byte(f.ID), []byte(x.Trigger)} }
	for i := range plan.Drop {
		if _, err := q.Exec(ctx, dropSchedule, key(&plan.Drop[i])...); err != nil {
			return err
		}
	}
	for sql, rows := range map[string][]store.Schedule{adoptSchedule: plan.Adopt, insertSchedule: plan.Insert} {
		for i := range rows {
			x := &rows[i]
			args := append(key(x), []byte(f.Version), full(x.Spec), full(x.Owner), millis(x.NextAt), millis(x.DueAt))
			if _, err := q.Exec(ctx, sql, args...); err != nil {
				return err
			}
		}
	}
	return nil
}

// Claim implements store.Schedules. What another replica is claiming at this moment is
// not waited for.
func (x schedules) Claim(ctx context.Context, now, until time.Time, limit int) (out []store.Schedule, err error) {
	err = x.s.tx(ctx, func(q querier) error {
		if out, err = x.pick(ctx, q, now, limit); err != nil {
			return err
		}
		for i := range out {
			s := &out[i]
			if _, err := q.Exec(ctx, claimSchedule, s.Tenant, []byte(s.Workflow), []byte(s.Trigger), millis(until)); err != nil {
				return err
			}
			s.DueAt, s.Revision = until, s.Revision+1
		}
		return nil
	})
	if err != nil {
		out = nil
	}
	return out, wrap("claim schedules", err)
}

// pick reads what is due. If there is more than limit, it reads a share of each tenant.
func (x schedules) pick(ctx context.Context, q querier, now time.Time, limit int) ([]store.Schedule, error) {
	first, err := list(ctx, q, scanSchedule, dueSchedules, now.UnixMilli(), bound(limit))
	if err != nil || limit <= 0 || len(first) < limit {
		return first, err
	}
	tenants, err := x.s.punctual.Tenants(limit, func(after string) (tenant string, ready, found bool, err error) {
		var due time.Time
		found, err = one(ctx, q, nextPunctual, []any{after}, &tenant, (*stamp)(&due))
		return tenant, !due.After(now), found, err
	})
	if err != nil || len(tenants) == 0 {
		return first, err
	}
	var out []store.Schedule
	for _, tenant := range tenants {
		got, err := list(ctx, q, scanSchedule, punctualOf, tenant, now.UnixMilli(), (limit+len(tenants)-1)/len(tenants))
		if err != nil {
			return nil, err
		}
		out = append(out, got...)
	}
	return out[:min(limit, len(out))], nil
}

// NextDue implements store.Schedules.
func (x schedules) NextDue(ctx context.Context) (at time.Time, err error) {
	err = x.s.read(ctx, func(q querier) error {
		_, err := one(ctx, q, nextSchedule, nil, (*stamp)(&at))
		return err
	})
	return at, wrap("find the next schedule", err)
}

// Move implements store.Schedules.
func (x schedules) Move(ctx context.Context, s store.Schedule) error {
	return wrap("move a schedule of "+s.Workflow, x.s.tx(ctx, func(q querier) error {
		n, err := change(ctx, q, moveSchedule, s.Tenant, []byte(s.Workflow), []byte(s.Trigger), s.Revision,
			millis(s.NextAt), millis(s.DueAt), millis(s.LastAt), s.LastRun)
		if err == nil && n == 0 {
			err = store.ErrStale
		}
		return err
	}))
}

// List implements store.Schedules.
func (x schedules) List(ctx context.Context, tenant, workflow, trigger string, limit int) (out []store.Schedule, err error) {
	err = x.s.read(ctx, func(q querier) error {
		out, err = list(ctx, q, scanSchedule, listSchedules, tenant, []byte(workflow), []byte(trigger), bound(limit))
		return err
	})
	return out, wrap("list schedules", err)
}
