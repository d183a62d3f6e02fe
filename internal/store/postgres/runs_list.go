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
	// Most runs are completed, so an index of those is not worth its price: they are found
	// among all. The others are few, and have one.
	listBothCompleted = `SELECT ` + runColumns + ` FROM runs
		WHERE tenant = $1 AND run_id < $2 AND workflow = $4 AND status = 'completed' ORDER BY run_id DESC LIMIT $3`
	listBoth = `SELECT ` + runColumns + ` FROM runs
		WHERE tenant = $1 AND run_id < $2 AND workflow = $4 AND status = $5 AND status <> 'completed' ORDER BY run_id DESC LIMIT $3`
	// One statement for each set of filters: a filter that may be none spoils the plan.
	ofWorkspace   = ` FROM runs WHERE tenant = $1 AND run_id < $2 AND workspace = $4`
	newestFirst   = ` ORDER BY run_id DESC LIMIT $3`
	listWorkspace = `SELECT ` + runColumns + ofWorkspace + newestFirst

	listWorkspaceCompleted = `SELECT ` + runColumns + ofWorkspace + ` AND status = 'completed'` + newestFirst
	listWorkspaceStatus    = `SELECT ` + runColumns + ofWorkspace + ` AND status = $5 AND status <> 'completed'` + newestFirst
	listWorkspaceWorkflow  = `SELECT ` + runColumns + ofWorkspace + ` AND workflow = $5` + newestFirst

	listWorkspaceBothCompleted = `SELECT ` + runColumns + ofWorkspace + ` AND workflow = $5 AND status = 'completed'` + newestFirst
	listWorkspaceBoth          = `SELECT ` + runColumns + ofWorkspace + ` AND workflow = $5 AND status = $6 AND status <> 'completed'` + newestFirst

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
	sql, more := listOf(&q)
	args := append([]any{q.Tenant, before, bound(q.Limit)}, more...)
	err = r.s.read(ctx, func(q querier) error {
		out, err = list(ctx, q, scanRun, sql, args...)
		return err
	})
	return out, wrap("list runs", err)
}

// listOf is the statement for a query's filters, and their arguments.
func listOf(q *store.ListQuery) (sql string, args []any) {
	workspace, workflow := []byte(q.Workspace), []byte(q.WorkflowID)
	type filters struct{ workspace, workflow, completed, status bool }
	switch (filters{q.Workspace != "", q.WorkflowID != "", q.Status == "completed", q.Status != "" && q.Status != "completed"}) {
	case filters{workflow: true, completed: true}:
		return listBothCompleted, []any{workflow}
	case filters{workflow: true, status: true}:
		return listBoth, []any{workflow, q.Status}
	case filters{workflow: true}:
		return listWorkflow, []any{workflow}
	case filters{completed: true}:
		return listCompleted, nil
	case filters{status: true}:
		return listStatus, []any{q.Status}
	case filters{workspace: true, workflow: true, completed: true}:
		return listWorkspaceBothCompleted, []any{workspace, workflow}
	case filters{workspace: true, workflow: true, status: true}:
		return listWorkspaceBoth, []any{workspace, workflow, q.Status}
	case filters{workspace: true, workflow: true}:
		return listWorkspaceWorkflow, []any{workspace, workflow}
	case filters{workspace: true, completed: true}:
		return listWorkspaceCompleted, []any{workspace}
	case filters{workspace: true, status: true}:
		return listWorkspaceStatus, []any{workspace, q.Status}
	case filters{workspace: true}:
		return listWorkspace, []any{workspace}
	}
	return listAll, nil
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
