package postgres

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/fermata-run/fermata/internal/store"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Bounds of what is tried again. A transaction that others are in the way of is
// tried often and soon; a database that cannot be reached, until a moment has
// passed: then the caller hears of it, who may be told to come back.
const (
	contestedTries = 12
	brokenTries    = 4
	lateTries      = 2 // a server that is silent has kept everybody waiting
)

// querier is what statements are executed on: a pool, or a transaction.
type querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// pause waits before another try, longer each time and never as long as others.
func pause(ctx context.Context, try int) {
	d := time.Duration(1<<min(try, 7)) * time.Millisecond
	t := time.NewTimer(d/2 + rand.N(d))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// read executes fn, which changes nothing and may run more than once.
func (s *Store) read(ctx context.Context, fn func(q querier) error) error {
	return s.readWithin(ctx, s.timeout, fn)
}

// readWithin bounds each try.
func (s *Store) readWithin(ctx context.Context, d time.Duration, fn func(q querier) error) error {
	for try, late := 0, false; ; try++ {
		if err := s.open(ctx); err != nil {
			return err
		}
		own, done := context.WithTimeout(ctx, d)
		err := fn(timed{s.pool, own})
		again := !late // once: who waits wants to know
		late = s.late(own, ctx, err)
		done()
		if err == nil || ctx.Err() != nil || !s.again(err, try) || late && !again {
			return s.verdict(ctx, err)
		}
		pause(ctx, try)
	}
}

// errAgain says that what a transaction was about has changed under it.
var errAgain = errors.New("somebody else was quicker")

// again says whether what has failed, and left nothing behind, is tried again.
func (s *Store) again(err error, try int) bool {
	return (contested(err) || errors.Is(err, errAgain)) && try < contestedTries || broken(err) && try < brokenTries && !s.closed.Load()
}

// verdict is fault, where the store may have been closed meanwhile.
func (s *Store) verdict(ctx context.Context, err error) error {
	if err != nil && s.closed.Load() && !sentinel(err) {
		return store.ErrClosed
	}
	if code(err) == readOnly {
		s.pool.Reset() // another connection may lead to a server that takes writes
	}
	return fault(ctx, err)
}

// errUnknown marks an outcome that nobody knows: the connection was lost while the
// statement or the commit was under way.
var errUnknown = errors.New("whether it was written is not known")

// tx executes fn in one transaction. fn may run more than once, each time in a fresh
// transaction. What ctx has to be audited goes into it: every change but a step comes
// by here, so none can be without. If the outcome is not known the error is errUnknown, too.
func (s *Store) tx(ctx context.Context, fn func(q querier) error) error {
	drafts := store.Drafts(ctx)
	for try, late := 0, false; ; try++ {
		if err := s.open(ctx); err != nil {
			return err
		}
		own, done := context.WithTimeout(ctx, s.timeout)
		committing, err := s.once(own, drafts, fn)
		again := !late
		late = s.late(own, ctx, err)
		done()
		switch {
		case err == nil:
			store.Keep(drafts)
			return nil
		case committing && broken(err):
			return errors.Join(s.verdict(ctx, err), errUnknown)
		case ctx.Err() != nil || !s.again(err, try) || late && !again:
			return s.verdict(ctx, err)
		}
		pause(ctx, try)
	}
}

func (s *Store) once(ctx context.Context, drafts []*store.Draft, fn func(q querier) error) (committing bool, err error) {
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return false, err
	}
	if err = fn(timed{tx, ctx}); err == nil && len(drafts) > 0 {
		b := &pgx.Batch{}
		if err = place(ctx, tx, b, drafts, nil); err == nil {
			err = tx.SendBatch(ctx, b).Close()
		}
	}
	if err != nil {
		// Not with ctx: a transaction that is not ended costs the connection.
		end, done := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer done()
		tx.Rollback(end) //nolint:errcheck // the pool throws the connection away then
		return false, err
	}
	return true, tx.Commit(ctx)
}

// sure executes fn in a transaction and, if its outcome is not known, again, until it
// is. is says whether the database is as fn would leave it.
func (s *Store) sure(ctx context.Context, fn func(q querier) error, is func(q querier) (bool, error)) error {
	unknown := false
	for try := 0; ; try++ {
		err := s.tx(ctx, fn)
		if err == nil || errors.Is(err, errUnknown) && try >= brokenTries {
			return err
		}
		if errors.Is(err, errUnknown) {
			unknown = true
			pause(ctx, try+3)
			continue
		}
		if unknown {
			var done bool
			if e := s.read(ctx, func(q querier) (err error) { done, err = is(q); return err }); e == nil && done {
				store.Keep(store.Drafts(ctx))
				return nil
			}
		}
		return err
	}
}

// change executes a statement and says how many rows it changed.
func change(ctx context.Context, q querier, sql string, args ...any) (int64, error) {
	tag, err := q.Exec(ctx, sql, args...)
	return tag.RowsAffected(), err
}

// one reads the first row of a query and says whether there was one.
func one(ctx context.Context, q querier, sql string, args []any, into ...any) (bool, error) {
	return found(q.QueryRow(ctx, sql, args...).Scan(into...))
}

func found(err error) (bool, error) {
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// list reads all rows of a query.
func list[T any](ctx context.Context, q querier, scan func(pgx.CollectableRow) (T, error), sql string, args ...any) ([]T, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return collect(rows, scan)
}

func collect[T any](rows pgx.Rows, scan func(pgx.CollectableRow) (T, error)) ([]T, error) {
	out, err := pgx.CollectRows(rows, scan)
	if err != nil || len(out) == 0 {
		return nil, err
	}
	return out, nil
}
