package postgres

import (
	"context"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
)

const (
	listAll = `SELECT ` + runColumns + ` FROM runs
		WHERE tenant = $1 AND run_id < $2 ORDER BY run_id DESC LIMIT $3`
	listCompleted = `SELECT ` + runColumns + ` FROM runs
		WHERE tenant = $1 AND run_id < $2 AND status = 'completed' ORDER BY run_id DESC LIMIT $3`
	listStatus = `SELECT ` + runColumns + ` FROM runs
		WHERE tenant = $1 AND run_id < $2 AND status = $4 AND status <> 'completed' ORDER BY run_id DESC LIMIT $3`
	listWorkflow = `SELECT ` + runColumns + ` FROM runs
		WHERE tenant = $1 AND run_id < $2 AND workflow = $4 ORDER BY run_id DESC LIMIT $3`
	listBoth = `SELECT ` + runColumns + ` FROM runs
		WHERE tenant = $1 AND run_id < $2 AND workflow = $4 AND status = $5 ORDER BY run_id DESC LIMIT $3`
	listWorkspace = `SELECT ` + runColumns + ` FROM runs
		WHERE tenant = $1 AND run_id < $2 AND workspace = $4
		AND (workflow = $5 OR $5 = CAST('' AS bytea)) AND (status = $6 OR $6 = '') ORDER BY run_id DESC LIMIT $3`

	// Each status that is not final is a stretch of the index.
	countActive = `SELECT count(*) FROM (SELECT 1 FROM runs
		WHERE tenant = $1 AND status <> 'completed' AND parent_id IS NULL AND status IN
		('pending', 'running', 'paused', 'waiting-approval', 'waiting-input', 'waiting-external', 'cancelling')
		LIMIT $2) active`

	selectChildren = `SELECT ` + runColumns + ` FROM runs
		WHERE parent_tenant = $1 AND parent_id = $2 ORDER BY run_id`
)

// afterAll sorts behind every opaque segment: their last character is ~.
const afterAll = "\x7f"

// List implements store.Runs.
func (r runs) List(ctx context.Context, q store.ListQuery) (out []store.Run, err error) {
	before := q.Before
	if before == "" {
		before = afterAll
	}
	sql, args := listAll, []any{q.Tenant, before, bound(q.Limit)}
	switch {
	case q.Workspace != "":
		sql, args = listWorkspace, append(args, []byte(q.Workspace), []byte(q.WorkflowID), q.Status)
	case q.WorkflowID != "" && q.Status != "":
		sql, args = listBoth, append(args, []byte(q.WorkflowID), q.Status)
	case q.WorkflowID != "":
		sql, args = listWorkflow, append(args, []byte(q.WorkflowID))
	case q.Status == "completed":
		sql = listCompleted
	case q.Status != "":
		sql, args = listStatus, append(args, q.Status)
	}
	err = r.s.read(ctx, func(q querier) error {
		out, err = list(ctx, q, scanRun, sql, args...)
		return err
	})
	return out, wrap("list runs", err)
}

// CountActive implements store.Runs.
func (r runs) CountActive(ctx context.Context, tenant string, most int) (n int, err error) {
	err = r.s.read(ctx, func(q querier) error {
		_, err := one(ctx, q, countActive, []any{tenant, bound(most)}, &n)
		return err
	})
	return n, wrap("count active runs", err)
}

// Children implements store.Runs.
func (r runs) Children(ctx context.Context, parent ids.Run) (out []store.Run, err error) {
	err = r.s.read(ctx, func(q querier) error {
		out, err = list(ctx, q, scanRun, selectChildren, parent.Tenant, parent.Opaque)
		return err
	})
	return out, wrapRun("list children of run", parent, err)
}
