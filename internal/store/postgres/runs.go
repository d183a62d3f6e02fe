package postgres

import (
	"context"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/internal/store/segment"
	"github.com/jackc/pgx/v5"
)

// runs implements store.Runs; its methods are in the files named runs*.go and in
// interrupts.go.
type runs struct{ s *Store }

// runColumns are the columns that scanRun reads, in its order.
const runColumns = `tenant, run_id, workflow, workflow_version, status, seq, epoch, instance, wake_at,
	created_at, started_at, completed_at, current_node, parent_tenant, parent_id, parent_node,
	notify, tags, owner, error, compensation, fork_mode, fork_tenant, fork_id, fork_seq, fork_options, workspace`

func runFields(r *store.Run) []any {
	return []any{
		&r.ID.Tenant, &r.ID.Opaque, (*raw)(&r.WorkflowID), (*raw)(&r.WorkflowVersion), &r.Status, &r.Seq, &r.Epoch,
		(*opt)(&r.Instance), (*stamp)(&r.WakeAt), (*stamp)(&r.CreatedAt), (*stamp)(&r.StartedAt), (*stamp)(&r.CompletedAt),
		(*raw)(&r.CurrentNode), (*opt)(&r.Parent.Tenant), (*opt)(&r.Parent.Opaque), (*raw)(&r.ParentNode),
		&r.Notify, &r.Tags, &r.Owner, &r.Error, (*opt)(&r.Compensation),
		(*opt)(&r.ForkMode), (*opt)(&r.ForkSource.Tenant), (*opt)(&r.ForkSource.Opaque), &r.ForkSeq, &r.ForkOptions, (*raw)(&r.Workspace),
	}
}

func scanRun(row pgx.CollectableRow) (r store.Run, err error) {
	err = row.Scan(runFields(&r)...)
	return r, err
}

const (
	oneRun        = ` WHERE tenant = $1 AND run_id = $2`
	selectRun     = `SELECT ` + runColumns + ` FROM runs` + oneRun
	selectExpired = `SELECT expired_at FROM expired` + oneRun

	selectCheckpoint = `SELECT seq, state FROM checkpoints` + oneRun
	// Segments follow each other without a gap, so the last one that starts at or
	// before a sequence is the one that holds it.
	selectSegments = `SELECT seq, n, body, sealed FROM events
		WHERE tenant = $1 AND run_id = $2 AND seq >= coalesce(
			(SELECT max(seq) FROM events WHERE tenant = $1 AND run_id = $2 AND seq <= $3), $3)
		ORDER BY seq LIMIT $4`
	selectTail = `SELECT seq, n, body, sealed FROM events
		WHERE tenant = $1 AND run_id = $2 AND seq >= coalesce(
			(SELECT max(seq) FROM events WHERE tenant = $1 AND run_id = $2 AND seq <=
				(SELECT c.seq + 1 FROM checkpoints c WHERE c.tenant = $1 AND c.run_id = $2)), 0)
		ORDER BY seq`

	beginSnapshot = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`
	begin         = `BEGIN`
	commit        = `COMMIT`
)

// segmentsAtOnce is how many segments one query reads: a page is mostly one.
const segmentsAtOnce = 64

// missing is the failure of a method that names a run which has no row.
func missing(ctx context.Context, q querier, id ids.Run) error {
	gone := store.Expired{Run: id}
	found, err := one(ctx, q, selectExpired, []any{id.Tenant, id.Opaque}, (*stamp)(&gone.At))
	switch {
	case err != nil:
		return err
	case found:
		return gone
	}
	return store.ErrNotFound
}

func getRun(ctx context.Context, q querier, id ids.Run) (r store.Run, err error) {
	found, err := one(ctx, q, selectRun, []any{id.Tenant, id.Opaque}, runFields(&r)...)
	if err == nil && !found {
		err = missing(ctx, q, id)
	}
	return r, err
}

// Get implements store.Runs.
func (r runs) Get(ctx context.Context, id ids.Run) (run store.Run, err error) {
	err = r.s.read(ctx, func(q querier) error {
		run, err = getRun(ctx, q, id)
		return err
	})
	return run, wrapRun("get run", id, err)
}

// Load implements store.Runs: one round trip, as of one moment.
func (r runs) Load(ctx context.Context, id ids.Run) (l store.Loaded, err error) {
	err = r.s.read(ctx, func(q querier) error {
		l = store.Loaded{}
		b := &pgx.Batch{}
		b.Queue(beginSnapshot)
		b.Queue(selectRun, id.Tenant, id.Opaque)
		b.Queue(selectCheckpoint, id.Tenant, id.Opaque)
		b.Queue(selectTail, id.Tenant, id.Opaque)
		b.Queue(commit)
		res := q.SendBatch(ctx, b)
		there, err := readLoaded(res, id, &l)
		if e := res.Close(); err == nil {
			err = e
		}
		if err == nil && !there {
			err = missing(ctx, q, id)
		}
		return err
	})
	if err != nil {
		l = store.Loaded{}
	}
	return l, wrapRun("load run", id, err)
}

func readLoaded(res pgx.BatchResults, id ids.Run, l *store.Loaded) (there bool, err error) {
	if _, err = res.Exec(); err != nil {
		return false, err
	}
	if there, err = found(res.QueryRow().Scan(runFields(&l.Run)...)); err != nil || !there {
		return false, err
	}
	p := segment.Page{Run: id, After: -1}
	var c store.Checkpoint
	has, err := found(res.QueryRow().Scan(&c.Seq, &c.State))
	if err != nil {
		return true, err
	}
	if has {
		l.Checkpoint, p.After = &c, c.Seq
	}
	rows, err := res.Query()
	if err == nil {
		_, err = fill(rows, &p)
	}
	l.Tail = p.Events
	return true, err
}

// fill reads segments into a page and says how many there were.
func fill(rows pgx.Rows, p *segment.Page) (n int, err error) {
	defer rows.Close()
	for rows.Next() {
		var g segment.Segment
		if err := rows.Scan(&g.Seq, &g.N, &g.Body, &g.Sealed); err != nil {
			return n, err
		}
		if n++; p.Full() {
			continue
		}
		if err := p.Add(g.Seq, g.N, g.Body, g.Sealed); err != nil {
			return n, damage(err)
		}
	}
	return n, rows.Err()
}

// Events implements store.Runs. The row is read first: what is appended after it is
// left out, so that both are as of one moment.
func (r runs) Events(ctx context.Context, id ids.Run, after int64, limit, maxBytes int) (run store.Run, events []event.Event, err error) {
	err = r.s.read(ctx, func(q querier) error {
		run, events, err = readEvents(ctx, q, id, after, limit, maxBytes)
		return err
	})
	if err != nil {
		run, events = store.Run{}, nil
	}
	return run, events, wrapRun("read events of run", id, err)
}

func readEvents(ctx context.Context, q querier, id ids.Run, after int64, limit, maxBytes int) (run store.Run, _ []event.Event, err error) {
	p := segment.Page{Run: id, After: max(after, -1), Limit: limit, MaxBytes: maxBytes}
	b := &pgx.Batch{}
	b.Queue(selectRun, id.Tenant, id.Opaque)
	b.Queue(selectSegments, id.Tenant, id.Opaque, p.After+1, segmentsAtOnce)
	res := q.SendBatch(ctx, b)
	there, err := found(res.QueryRow().Scan(runFields(&run)...))
	n := 0
	if err == nil && there && p.After < run.Seq {
		var rows pgx.Rows
		if rows, err = res.Query(); err == nil {
			n, err = fill(rows, &p)
		}
	}
	if e := res.Close(); err == nil {
		err = e
	}
	if err == nil && !there {
		return run, nil, missing(ctx, q, id)
	}
	for err == nil && n == segmentsAtOnce && !p.Full() {
		p.After = p.Events[len(p.Events)-1].Seq
		if p.After >= run.Seq {
			break
		}
		var rows pgx.Rows
		if rows, err = q.Query(ctx, selectSegments, id.Tenant, id.Opaque, p.After+1, segmentsAtOnce); err == nil {
			n, err = fill(rows, &p)
		}
	}
	for len(p.Events) > 0 && p.Events[len(p.Events)-1].Seq > run.Seq {
		p.Events = p.Events[:len(p.Events)-1]
	}
	return run, p.Events, err
}

func wrapRun(what string, id ids.Run, err error) error {
	if err == nil {
		return nil
	}
	return wrap(what+" "+id.String(), err)
}
