package postgres

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/internal/store/segment"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	lockScope = `INSERT INTO scope_turns (tenant, bucket, turn) VALUES ($1, $2, 0)
		ON CONFLICT (tenant, bucket) DO UPDATE SET turn = scope_turns.turn + 1`
	activeInScope = `SELECT run_id FROM runs WHERE tenant = $1 AND scope = $2
		AND status NOT IN ('completed', 'failed', 'cancelled') LIMIT 1`
	// The id of a run that has expired is not given to another one. $28 wants the
	// scope for itself.
	insertRun = `INSERT INTO runs (` + runColumns + `, scope)
		SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21,
		$22, $23, $24, $25, $26, $27, $28
		WHERE NOT EXISTS (SELECT 1 FROM expired WHERE tenant = $1 AND run_id = $2)
		AND NOT ($29 AND EXISTS (SELECT 1 FROM runs WHERE tenant = $1 AND scope = $28
			AND status NOT IN ('completed', 'failed', 'cancelled')))
		ON CONFLICT DO NOTHING`
	updateRun = `UPDATE runs SET status = $5, seq = $6, epoch = $7, instance = $8, wake_at = $9,
		started_at = $10, completed_at = $11, current_node = $12, notify = $13, error = $14, compensation = $15
		WHERE tenant = $1 AND run_id = $2 AND epoch = $3 AND seq = $4`
	runIsThere  = `SELECT 1 FROM runs` + oneRun
	settleChild = `UPDATE runs SET notify = false WHERE tenant = $1 AND run_id = $2 AND seq = $3 AND notify`

	insertSegment = `INSERT INTO events (tenant, run_id, seq, n, body, sealed, mark) VALUES ($1, $2, $3, $4, $5, $6, $7)`
	putCheckpoint = `INSERT INTO checkpoints (tenant, run_id, seq, state) VALUES ($1, $2, $3, $4)
		ON CONFLICT (tenant, run_id) DO UPDATE SET seq = excluded.seq, state = excluded.state`
)

// scopeBuckets bounds the rows by which those who want a scope alone take turns.
const scopeBuckets = 256

// step is an append that has been checked and encoded, in its caller's goroutine.
type step struct {
	*store.Append
	segments []segment.Segment
	mark     int64 // tells its events from those of any other step
}

func (s *step) alone() bool { return s.Create && s.Alone && s.Scope != "" }

// Append implements store.Runs.
func (r runs) Append(ctx context.Context, a *store.Append) error {
	req := newRequest()
	err := req.encode(a)
	if err == nil {
		err = r.s.writer.submit(ctx, req)
	}
	return wrap("append to run "+a.Row.ID.String(), err)
}

// Settle implements store.Runs.
func (r runs) Settle(ctx context.Context, settled []store.Settled) error {
	if len(settled) == 0 {
		return nil
	}
	req := newRequest()
	req.settled = settled
	return wrap("settle", r.s.writer.submit(ctx, req))
}

// encode adds a and the steps that go along with it to a request.
func (r *request) encode(a *store.Append) error {
	if err := a.Check(); err != nil {
		return fmt.Errorf("malformed step: %w", err)
	}
	s := step{Append: a, segments: segment.Cut(a.Events), mark: rand.Int64()}
	for i := range s.segments {
		r.size += len(s.segments[i].Body) + len(s.segments[i].Sealed)
	}
	if a.Checkpoint != nil {
		r.size += len(a.Checkpoint.State)
	}
	r.steps = append(r.steps, s)
	r.settled = append(r.settled, a.Settled...)
	for _, also := range a.Also {
		if err := r.encode(also); err != nil {
			return err
		}
	}
	return nil
}

// rowOp changes the row of one run: a step's, or that of a child whose news are
// taken into account.
type rowOp struct {
	id     ids.Run
	req    *request
	step   *step // nil to settle
	seq    int64
	active string // the run that has the scope, if the step wants it alone
}

// rowOps lists what a batch does to rows of runs, in the order of their keys: whoever
// locks rows in one order is in nobody's way for good.
func rowOps(batch []*request) []*rowOp {
	var out []*rowOp
	for _, r := range batch {
		for i := range r.steps {
			out = append(out, &rowOp{id: r.steps[i].Row.ID, req: r, step: &r.steps[i]})
		}
		for _, n := range r.settled {
			out = append(out, &rowOp{id: n.Child, req: r, seq: n.Seq})
		}
	}
	slices.SortStableFunc(out, func(a, b *rowOp) int {
		return cmp.Or(cmp.Compare(a.id.Tenant, b.id.Tenant), cmp.Compare(a.id.Opaque, b.id.Opaque))
	})
	return out
}

type scopeTurn struct {
	tenant string
	bucket int64
}

// scopeTurns lists the turns that the steps of a batch have to take, in order.
func scopeTurns(ops []*rowOp) []scopeTurn {
	var out []scopeTurn
	for _, o := range ops {
		if o.step != nil && o.step.alone() {
			h := fnv.New32a()
			h.Write([]byte(o.step.Scope)) //nolint:errcheck // never fails
			out = append(out, scopeTurn{o.id.Tenant, int64(h.Sum32() % scopeBuckets)})
		}
	}
	slices.SortFunc(out, func(a, b scopeTurn) int {
		return cmp.Or(cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.bucket, b.bucket))
	})
	return slices.Compact(out)
}

func (o *rowOp) queue(b *pgx.Batch) {
	if o.step == nil {
		b.Queue(settleChild, o.id.Tenant, o.id.Opaque, o.seq)
		return
	}
	r := &o.step.Row
	if !o.step.Create {
		b.Queue(updateRun, r.ID.Tenant, r.ID.Opaque, o.step.Epoch, o.step.ExpectedSeq,
			r.Status, r.Seq, r.Epoch, optional(r.Instance), millis(r.WakeAt), millis(r.StartedAt), millis(r.CompletedAt),
			[]byte(r.CurrentNode), r.Notify, r.Error, optional(r.Compensation))
		return
	}
	var scope []byte
	if o.step.Scope != "" {
		scope = []byte(o.step.Scope)
	}
	if o.step.alone() {
		b.Queue(activeInScope, r.ID.Tenant, scope)
	}
	b.Queue(insertRun, r.ID.Tenant, r.ID.Opaque, []byte(r.WorkflowID), []byte(r.WorkflowVersion), r.Status, r.Seq, r.Epoch,
		optional(r.Instance), millis(r.WakeAt), millis(r.CreatedAt), millis(r.StartedAt), millis(r.CompletedAt),
		[]byte(r.CurrentNode), optional(r.Parent.Tenant), optional(r.Parent.Opaque), []byte(r.ParentNode),
		r.Notify, r.Tags, r.Owner, r.Error, optional(r.Compensation),
		optional(r.ForkMode), optional(r.ForkSource.Tenant), optional(r.ForkSource.Opaque), r.ForkSeq, r.ForkOptions,
		filled([]byte(r.Workspace)), scope, o.step.alone())
	if o.step.Staged {
		b.Queue(takeStaged, r.ID.Tenant, r.ID.Opaque, r.Seq+1-int64(len(o.step.Events)))
	}
}

// done reads what became of a row and lets its request know.
func (o *rowOp) done(res pgx.BatchResults) error {
	if o.step != nil && o.step.alone() {
		if _, err := found(res.QueryRow().Scan(&o.active)); err != nil {
			return err
		}
	}
	tag, err := res.Exec()
	staged := int64(1)
	if err == nil && o.step != nil && o.step.Create && o.step.Staged {
		var took pgconn.CommandTag
		took, err = res.Exec()
		staged = took.RowsAffected()
	}
	switch {
	case err != nil:
		return err
	case tag.RowsAffected() > 0 && staged == 0:
		o.req.changed = true
		o.req.err = fmt.Errorf("what is staged is not where the step begins: %w", store.ErrStale)
	case tag.RowsAffected() > 0:
		o.req.changed = true
	case o.step == nil: // news that are old
	case o.active != "" && o.active != o.id.Opaque:
		o.req.err = store.Active{Run: ids.Run{Tenant: o.id.Tenant, Opaque: o.active}}
	case o.step.Create:
		o.req.err = store.ErrExists
	default:
		o.req.err = store.ErrStale
		o.req.lost = o.id
	}
	return nil
}

// queue writes everything of a step but the row and what it sends out.
func (s *step) queue(b *pgx.Batch) {
	id := s.Row.ID
	queueSegments(b, id, s.segments, s.mark)
	queueInterrupts(b, s.Append)
	if s.Tell != "" {
		b.Queue(tell, id.Tenant, id.Opaque, s.Tell)
	}
	if p := s.Checkpoint; p != nil {
		b.Queue(putCheckpoint, id.Tenant, id.Opaque, p.Seq, full(p.State))
	}
}
