package sqlite

import (
	"context"
	"time"

	"github.com/fermata-run/fermata/internal/store"
)

// schedules implements store.Schedules.
type schedules struct{ s *Store }

const (
	scheduleColumns = `tenant, workflow, trigger_id, version, spec, owner, next_at, due_at, last_at, last_run, revision`

	workflowSchedules = `SELECT ` + scheduleColumns + ` FROM schedules WHERE tenant = ? AND workflow = ?`
	insertSchedule    = `INSERT INTO schedules (` + scheduleColumns + `) VALUES (?,?,?,?,?,?,?,?,NULL,'',1)`
	adoptSchedule     = `UPDATE schedules SET version = ?, owner = ?, spec = ?, next_at = ?, due_at = ?, revision = revision + 1
		WHERE tenant = ? AND workflow = ? AND trigger_id = ?`
	dropSchedule  = `DELETE FROM schedules WHERE tenant = ? AND workflow = ? AND trigger_id = ?`
	dropSchedules = `DELETE FROM schedules WHERE tenant = ? AND workflow = ?`

	dueSchedules = `SELECT ` + scheduleColumns + ` FROM schedules INDEXED BY schedules_due WHERE due_at <= ? ORDER BY due_at LIMIT ?`
	nextPunctual = `SELECT tenant, due_at FROM schedules INDEXED BY schedules_tenant
		WHERE tenant > ? AND due_at IS NOT NULL ORDER BY tenant, due_at LIMIT 1`
	dueSchedulesOf = `SELECT ` + scheduleColumns + ` FROM schedules INDEXED BY schedules_tenant
		WHERE tenant = ? AND due_at <= ? ORDER BY due_at LIMIT ?`
	claimSchedule = `UPDATE schedules SET due_at = ?, revision = revision + 1 WHERE tenant = ? AND workflow = ? AND trigger_id = ?`
	nextSchedule  = `SELECT due_at FROM schedules INDEXED BY schedules_due WHERE due_at IS NOT NULL ORDER BY due_at LIMIT 1`
	moveSchedule  = `UPDATE schedules SET next_at = ?, due_at = ?, last_at = ?, last_run = ?, revision = revision + 1
		WHERE tenant = ? AND workflow = ? AND trigger_id = ? AND revision = ?`
	listSchedules = `SELECT ` + scheduleColumns + ` FROM schedules
		WHERE tenant = ? AND (workflow, trigger_id) > (?, ?) ORDER BY workflow, trigger_id LIMIT ?`
)

// Schedules implements store.Store.
func (s *Store) Schedules() store.Schedules { return schedules{s} }

func scanSchedules(q *query) (out []store.Schedule, err error) {
	err = q.each(func(r *row) (bool, error) {
		out = append(out, store.Schedule{
			Tenant: r.text(), Workflow: r.text(), Trigger: r.text(), Version: r.text(), Spec: r.blob(), Owner: r.blob(),
			NextAt: r.time(), DueAt: r.time(), LastAt: r.time(), LastRun: r.text(), Revision: r.int(),
		})
		return true, nil
	})
	return out, err
}

// keepSchedules makes a workflow's schedules those of the version that is put.
func keepSchedules(c *conn, f *store.Workflow) error {
	there, err := scanSchedules(c.prep(workflowSchedules).text(f.Tenant).text(f.ID))
	if err != nil {
		return err
	}
	plan := store.PlanSchedules(f, there)
	for _, x := range plan.Drop {
		if err := c.prep(dropSchedule).text(f.Tenant).text(f.ID).text(x.Trigger).run(); err != nil {
			return err
		}
	}
	for _, x := range plan.Adopt {
		err := c.prep(adoptSchedule).text(f.Version).blob(full(x.Owner)).blob(full(x.Spec)).time(x.NextAt).time(x.DueAt).
			text(f.Tenant).text(f.ID).text(x.Trigger).run()
		if err != nil {
			return err
		}
	}
	for _, x := range plan.Insert {
		err := c.prep(insertSchedule).text(f.Tenant).text(f.ID).text(x.Trigger).text(f.Version).
			blob(full(x.Spec)).blob(full(x.Owner)).time(x.NextAt).time(x.DueAt).run()
		if err != nil {
			return err
		}
	}
	return nil
}

// Claim implements store.Schedules.
func (x schedules) Claim(ctx context.Context, now, until time.Time, limit int) (out []store.Schedule, err error) {
	err = x.s.writer.submit(ctx, 0, func(c *conn) error {
		if out, err = x.pick(c, now, limit); err != nil {
			return err
		}
		for i := range out {
			s := &out[i]
			if err := c.prep(claimSchedule).time(until).text(s.Tenant).text(s.Workflow).text(s.Trigger).run(); err != nil {
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
func (x schedules) pick(c *conn, now time.Time, limit int) ([]store.Schedule, error) {
	first, err := scanSchedules(c.prep(dueSchedules).time(now).bound(limit))
	if err != nil || limit <= 0 || len(first) < limit {
		return first, err
	}
	tenants, err := x.s.punctual.Tenants(limit, func(after string) (tenant string, ready, found bool, err error) {
		found, err = c.prep(nextPunctual).text(after).one(func(r *row) { tenant, ready = r.text(), !r.time().After(now) })
		return tenant, ready, found, err
	})
	if err != nil || len(tenants) == 0 {
		return first, err
	}
	var out []store.Schedule
	for _, tenant := range tenants {
		got, err := scanSchedules(c.prep(dueSchedulesOf).text(tenant).time(now).bound((limit + len(tenants) - 1) / len(tenants)))
		if err != nil {
			return nil, err
		}
		out = append(out, got...)
	}
	return out[:min(limit, len(out))], nil
}

// NextDue implements store.Schedules.
func (x schedules) NextDue(ctx context.Context) (at time.Time, err error) {
	err = x.s.readers.read(ctx, func(c *conn) error {
		_, err := c.prep(nextSchedule).one(func(r *row) { at = r.time() })
		return err
	})
	return at, wrap("find the next schedule", err)
}

// Move implements store.Schedules.
func (x schedules) Move(ctx context.Context, s store.Schedule) error {
	return wrap("move a schedule of "+s.Workflow, x.s.writer.submit(ctx, 0, func(c *conn) error {
		n, err := c.prep(moveSchedule).time(s.NextAt).time(s.DueAt).time(s.LastAt).text(s.LastRun).
			text(s.Tenant).text(s.Workflow).text(s.Trigger).int(s.Revision).change()
		if err == nil && n == 0 {
			err = store.ErrStale
		}
		return err
	}))
}

// List implements store.Schedules.
func (x schedules) List(ctx context.Context, tenant, workflow, trigger string, limit int) (out []store.Schedule, err error) {
	err = x.s.readers.read(ctx, func(c *conn) error {
		out, err = scanSchedules(c.prep(listSchedules).text(tenant).text(workflow).text(trigger).bound(limit))
		return err
	})
	return out, wrap("list schedules", err)
}
