package sqlite

import (
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
)

// runs implements store.Runs; its methods are in the files named runs_*.go and
// in interrupts.go.
type runs struct{ s *Store }

// runColumns are the columns that scanRun reads, in its order.
const runColumns = `tenant, run_id, workflow, workflow_version, status, seq, epoch, instance, wake_at,
	created_at, started_at, completed_at, current_node, parent_tenant, parent_id, parent_node,
	notify, tags, owner, error, compensation, fork_mode, fork_tenant, fork_id, fork_seq, fork_options`

func scanRun(r *row) store.Run {
	var run store.Run
	run.ID.Tenant = r.text()
	run.ID.Opaque = r.text()
	run.WorkflowID = r.text()
	run.WorkflowVersion = r.text()
	run.Status = r.text()
	run.Seq = r.int()
	run.Epoch = r.int()
	run.Instance = r.text()
	run.WakeAt = r.time()
	run.CreatedAt = r.time()
	run.StartedAt = r.time()
	run.CompletedAt = r.time()
	run.CurrentNode = r.text()
	run.Parent.Tenant = r.text()
	run.Parent.Opaque = r.text()
	run.ParentNode = r.text()
	run.Notify = r.bool()
	run.Tags = r.blob()
	run.Owner = r.blob()
	run.Error = r.blob()
	run.Compensation = r.text()
	run.ForkMode = r.text()
	run.ForkSource.Tenant = r.text()
	run.ForkSource.Opaque = r.text()
	run.ForkSeq = r.int()
	run.ForkOptions = r.blob()
	return run
}

// scanRuns reads all rows of a query.
func scanRuns(q *query) ([]store.Run, error) {
	var out []store.Run
	err := q.each(func(r *row) (bool, error) {
		out = append(out, scanRun(r))
		return true, nil
	})
	return out, err
}

const (
	insertRun = `INSERT INTO runs (` + runColumns + `, scope)
		VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING`
	activeInScope = `SELECT run_id FROM runs WHERE tenant = ? AND scope = ?
		AND status NOT IN ('completed', 'failed', 'cancelled') LIMIT 1`
	updateRun = `UPDATE runs SET status = ?, seq = ?, epoch = ?, instance = ?, wake_at = ?,
		started_at = ?, completed_at = ?, current_node = ?, notify = ?, error = ?, compensation = ?
		WHERE tenant = ? AND run_id = ? AND epoch = ? AND seq = ?`
	runIsThere = `SELECT 1 FROM runs WHERE tenant = ? AND run_id = ?`
)

// putRun writes the row of a step, if the run is where the step expects it.
func putRun(c *conn, a *store.Append) error {
	r := &a.Row
	if a.Create {
		if a.Alone && a.Scope != "" {
			other := store.Active{Run: ids.Run{Tenant: r.ID.Tenant}}
			found, err := c.prep(activeInScope).text(r.ID.Tenant).text(a.Scope).one(func(r *row) { other.Run.Opaque = r.text() })
			if err != nil {
				return err
			}
			if found && other.Run != r.ID {
				return other
			}
		}
		// The id of a run that has expired is not given to another one.
		gone, err := c.prep(selectExpired).id(r.ID).one(func(*row) {})
		if err != nil {
			return err
		}
		if gone {
			return store.ErrExists
		}
		n, err := c.prep(insertRun).text(r.ID.Tenant).text(r.ID.Opaque).
			text(r.WorkflowID).text(r.WorkflowVersion).text(r.Status).int(r.Seq).int(r.Epoch).
			optional(r.Instance).time(r.WakeAt).time(r.CreatedAt).time(r.StartedAt).time(r.CompletedAt).
			text(r.CurrentNode).optional(r.Parent.Tenant).optional(r.Parent.Opaque).text(r.ParentNode).
			bool(r.Notify).blob(r.Tags).blob(r.Owner).blob(r.Error).optional(r.Compensation).
			optional(r.ForkMode).optional(r.ForkSource.Tenant).optional(r.ForkSource.Opaque).int(r.ForkSeq).blob(r.ForkOptions).
			optional(a.Scope).change()
		if err == nil && n == 0 {
			return store.ErrExists
		}
		if err == nil && a.Staged {
			return unstageFor(c, a)
		}
		return err
	}
	n, err := c.prep(updateRun).text(r.Status).int(r.Seq).int(r.Epoch).optional(r.Instance).
		time(r.WakeAt).time(r.StartedAt).time(r.CompletedAt).text(r.CurrentNode).bool(r.Notify).blob(r.Error).optional(r.Compensation).
		text(r.ID.Tenant).text(r.ID.Opaque).int(a.Epoch).int(a.ExpectedSeq).change()
	if err != nil || n == 1 {
		return err
	}
	found, err := c.prep(runIsThere).text(r.ID.Tenant).text(r.ID.Opaque).one(func(*row) {})
	if err == nil && !found {
		return missing(c, r.ID)
	}
	if err == nil {
		return store.ErrStale
	}
	return err
}
