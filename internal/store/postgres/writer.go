package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/jackc/pgx/v5"
)

// Bounds of one transaction. The first is also how many requests may wait.
const (
	maxBatch      = 512
	maxBatchBytes = 8 << 20
)

// A request is waiting until a writer takes it, unless its caller gives up first;
// after that only the outcome counts.
const (
	waiting int32 = iota
	taken
	abandoned
)

// request is one caller's write: steps that belong together, and news of children
// that are settled.
type request struct {
	steps   []step
	settled []store.Settled
	size    int
	drafts  []*store.Draft // audit entries that become durable with it

	state atomic.Int32
	done  chan error

	// Of the transaction under way.
	err     error   // why the request is refused
	lost    ids.Run // the run that was not where it was expected
	changed bool    // a row has been changed for it
	// maybe: an earlier transaction with it was cut off while it was committed.
	maybe bool
}

func newRequest() *request { return &request{done: make(chan error, 1)} }

// writer writes all requests that wait at one moment in one transaction. Several do
// so at once: while one waits for its commit, the next one gathers.
type writer struct {
	s     *Store
	queue chan *request
	ended sync.WaitGroup

	// mu is held for reading while a request is put into the queue, so that close
	// knows when the last one is in.
	mu     sync.RWMutex
	closed bool
}

func startWriter(s *Store, n int) *writer {
	w := &writer{s: s, queue: make(chan *request, maxBatch)}
	for range n {
		w.ended.Go(w.loop)
	}
	return w
}

// close lets what is in the queue finish.
func (w *writer) close() {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		close(w.queue)
	}
	w.mu.Unlock()
	w.ended.Wait()
}

// submit has a request written and returns its durable outcome. A request whose ctx
// ends before it was taken is not executed.
func (w *writer) submit(ctx context.Context, r *request) error {
	r.drafts = store.Drafts(ctx)
	if err := w.enqueue(ctx, r); err != nil {
		return err
	}
	select {
	case err := <-r.done:
		if err == nil {
			store.Keep(r.drafts)
		}
		return err
	case <-ctx.Done():
		if r.state.CompareAndSwap(waiting, abandoned) {
			return ctx.Err()
		}
		err := <-r.done
		if err == nil {
			store.Keep(r.drafts)
		}
		return err
	}
}

func (w *writer) enqueue(ctx context.Context, r *request) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closed {
		return store.ErrClosed
	}
	if err := ctx.Err(); err != nil { // or the select might not notice
		return err
	}
	select {
	case w.queue <- r:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *writer) loop() {
	for r := range w.queue {
		w.commit(w.collect(r))
	}
}

// collect takes first and everything that waits behind it, up to the bounds.
func (w *writer) collect(first *request) (batch []*request) {
	bytes := 0
	for r := first; ; {
		if r.state.CompareAndSwap(waiting, taken) {
			batch = append(batch, r)
			bytes += r.size
		}
		if len(batch) == maxBatch || bytes >= maxBatchBytes {
			return batch
		}
		select {
		case next, ok := <-w.queue:
			if !ok {
				return batch
			}
			r = next
		default:
			return batch
		}
	}
}

// errSplit says that one request of a batch has gone wrong after it changed
// something, so that the transaction was given up for all of them.
var errSplit = errors.New("a request of the batch has failed")

// commit writes a batch and answers it. If one request spoils the transaction, each
// gets its own, so that the others do not suffer.
func (w *writer) commit(batch []*request) {
	for try, late := 0, 0; len(batch) > 0; try++ {
		ctx, done := context.WithTimeout(context.Background(), w.s.timeout)
		committing, err := w.attempt(ctx, batch)
		if w.s.late(ctx, context.Background(), err) {
			late++
		}
		done()
		switch {
		case err == nil:
			for _, r := range batch {
				r.done <- w.resolve(r)
			}
			w.s.hint(batch)
			return
		case committing && broken(err):
			for _, r := range batch {
				r.maybe = true
			}
			fallthrough
		case w.s.again(err, try):
			if try >= contestedTries {
				break
			}
			pause(context.Background(), try+2)
			if !broken(err) || try < brokenTries && late < lateTries {
				continue
			}
		}
		if len(batch) == 1 {
			r := batch[0]
			if r.err == nil || !errors.Is(err, errSplit) {
				r.err = w.s.verdict(context.Background(), err)
			}
			r.done <- w.resolve(r)
			return
		}
		if broken(err) { // not of any request's making
			for _, r := range batch {
				r.done <- w.s.verdict(context.Background(), err)
			}
			return
		}
		for i := range batch {
			w.commit(batch[i : i+1])
		}
		return
	}
}

// attempt writes a batch in one transaction and two round trips. The first changes
// the rows of runs, which is what can refuse a request; the second writes the rest
// of those that were not refused.
func (w *writer) attempt(ctx context.Context, batch []*request) (committing bool, err error) {
	conn, err := w.s.pool.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Release() // which throws a connection away that is inside a transaction
	for _, r := range batch {
		r.err, r.lost, r.changed = nil, ids.Run{}, false
	}
	t := &writing{s: w.s, q: conn.Conn(), batch: batch}
	if err = t.rows(ctx); err == nil {
		err = t.matches(ctx)
	}
	if err == nil {
		committing, err = t.rest(ctx)
	}
	if err != nil && !committing && !broken(err) {
		conn.Exec(ctx, `ROLLBACK`) //nolint:errcheck // see Release
	}
	return committing, err
}

// writing is one transaction of a batch.
type writing struct {
	s     *Store
	q     *pgx.Conn
	batch []*request
	turns map[string]int64      // of the subscriptions of tenants
	out   []queued              // what the steps send
	heads map[string]store.Head // of the audit chains that entries go to, locked
}

// rows begins the transaction and changes the rows of runs.
func (t *writing) rows(ctx context.Context) error {
	ops := rowOps(t.batch)
	turns, tenants := scopeTurns(ops), matched(t.batch)
	b := &pgx.Batch{}
	b.Queue(begin)
	for _, tenant := range tenants {
		b.Queue(selectTurn, tenant)
	}
	for _, x := range turns {
		b.Queue(lockScope, x.tenant, x.bucket)
	}
	for _, o := range ops {
		o.queue(b)
	}
	// After all rows, as every step has it: nobody waits for a row with a head in hand.
	var drafts []*store.Draft
	for _, r := range t.batch {
		drafts = append(drafts, r.drafts...)
	}
	chains := chainsOf(drafts)
	for _, chain := range chains {
		b.Queue(lockHead, chain)
	}
	res := t.q.SendBatch(ctx, b)
	err := t.readRows(res, tenants, len(turns), ops)
	if err == nil {
		err = t.readHeads(res, chains)
	}
	if e := res.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	for _, r := range t.batch {
		if r.err != nil && r.changed {
			return errSplit
		}
	}
	return nil
}

func (t *writing) readRows(res pgx.BatchResults, tenants []string, turns int, ops []*rowOp) error {
	if _, err := res.Exec(); err != nil {
		return err
	}
	t.turns = map[string]int64{}
	for _, tenant := range tenants {
		var turn int64
		there, err := found(res.QueryRow().Scan(&turn))
		if err != nil {
			return err
		}
		if there {
			t.turns[tenant] = turn
		}
	}
	for range turns {
		if _, err := res.Exec(); err != nil {
			return err
		}
	}
	for _, o := range ops {
		if err := o.done(res); err != nil {
			return err
		}
	}
	return nil
}

// readHeads keeps the heads of the chains that have one.
func (t *writing) readHeads(res pgx.BatchResults, chains []string) error {
	t.heads = make(map[string]store.Head, len(chains))
	for _, chain := range chains {
		rows, err := res.Query()
		if err != nil {
			return err
		}
		got, err := collect(rows, scanHead)
		if err != nil {
			return err
		}
		if len(got) > 0 {
			t.heads[chain] = got[0]
		}
	}
	return nil
}

// rest writes everything else and commits.
func (t *writing) rest(ctx context.Context) (committing bool, err error) {
	b := &pgx.Batch{}
	var drafts []*store.Draft
	for _, r := range t.batch {
		for i := range r.steps {
			if r.err == nil {
				r.steps[i].queue(b)
			}
		}
		if r.err == nil {
			drafts = append(drafts, r.drafts...)
		}
	}
	if len(drafts) > 0 {
		if err := place(ctx, t.q, b, drafts, t.heads); err != nil {
			return false, err
		}
	}
	queueDeliveries(b, t.out)
	b.Queue(commit)
	res := t.q.SendBatch(ctx, b)
	for range b.Len() - 1 {
		if _, err = res.Exec(); err != nil {
			res.Close() //nolint:errcheck // the first failure counts
			// The commit was on its way, but behind what failed: the server has not
			// come to it, unless nobody can say what the server has done.
			return broken(err), t.blame(err)
		}
	}
	tag, err := res.Exec()
	if e := res.Close(); err == nil {
		err = e
	}
	if err == nil && tag.String() != commit {
		err = fmt.Errorf("the commit was answered with %s", tag)
	}
	return true, err
}

// blame makes a refusal of a statement that failed, if it is clear whose it is.
func (t *writing) blame(err error) error {
	if !duplicate(err) || len(t.batch) > 1 {
		return err
	}
	t.batch[0].err = fmt.Errorf("%w: %w", store.ErrExists, err)
	return errSplit
}
