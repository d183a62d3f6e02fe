package sqlite

import (
	"context"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
)

// Each combination of filters has the index that it should use written into it:
// the planner cannot know that almost all runs are completed.
const (
	listAll = `SELECT ` + runColumns + ` FROM runs
		WHERE tenant = ?1 AND run_id < ?2 ORDER BY run_id DESC LIMIT ?5`
	listCompleted = `SELECT ` + runColumns + ` FROM runs
		WHERE tenant = ?1 AND run_id < ?2 AND status = ?4 ORDER BY run_id DESC LIMIT ?5`
	listStatus = `SELECT ` + runColumns + ` FROM runs INDEXED BY runs_status
		WHERE tenant = ?1 AND run_id < ?2 AND status = ?4 AND status <> 'completed'
		AND (?3 = '' OR workflow = ?3) ORDER BY run_id DESC LIMIT ?5`
	listWorkflow = `SELECT ` + runColumns + ` FROM runs INDEXED BY runs_workflow
		WHERE tenant = ?1 AND run_id < ?2 AND workflow = ?3
		AND (?4 = '' OR status = ?4) ORDER BY run_id DESC LIMIT ?5`

	// Each status that is not final is a stretch of the index.
	// One row for each active run. Each status that is not final is a stretch of the index.
	countActive = `SELECT 1 FROM runs INDEXED BY runs_status
		WHERE tenant = ?1 AND status <> 'completed' AND parent_id IS NULL AND status IN
		('pending', 'running', 'paused', 'waiting-approval', 'waiting-input', 'waiting-external', 'cancelling')
		LIMIT ?2`

	selectChildren = `SELECT ` + runColumns + ` FROM runs
		WHERE parent_tenant = ? AND parent_id = ? ORDER BY run_id`
)

// afterAll sorts behind every opaque segment: their last character is ~.
const afterAll = "\x7f"

// List implements store.Runs.
func (r runs) List(ctx context.Context, q store.ListQuery) (out []store.Run, err error) {
	sql := listAll
	switch {
	case q.Status != "" && q.Status != "completed":
		sql = listStatus
	case q.WorkflowID != "":
		sql = listWorkflow
	case q.Status != "":
		sql = listCompleted
	}
	before := q.Before
	if before == "" {
		before = afterAll
	}
	err = r.s.readers.read(ctx, func(c *conn) error {
		out, err = scanRuns(c.prep(sql).text(q.Tenant).text(before).
			text(q.WorkflowID).text(q.Status).bound(q.Limit))
		return err
	})
	return out, wrap("list runs", err)
}

// Children implements store.Runs.
func (r runs) Children(ctx context.Context, parent ids.Run) (out []store.Run, err error) {
	err = r.s.readers.read(ctx, func(c *conn) error {
		out, err = scanRuns(c.prep(selectChildren).text(parent.Tenant).text(parent.Opaque))
		return err
	})
	return out, wrapRun("list children of run", parent, err)
}

// CountActive implements store.Runs.
func (r runs) CountActive(ctx context.Context, tenant string, most int) (n int, err error) {
	err = r.s.readers.read(ctx, func(c *conn) error {
		n = 0
		return c.prep(countActive).text(tenant).bound(most).each(func(*row) (bool, error) {
			n++
			return true, nil
		})
	})
	return n, wrap("count active runs", err)
}
