package sqlite

import (
	"time"

	"github.com/ncruces/go-sqlite3"
)

// query binds the parameters of one statement in order, and keeps the first
// error until the statement runs.
type query struct {
	c   *conn
	s   *sqlite3.Stmt
	n   int
	err error
	big bool // a bound value is worth giving back at once
}

func (q *query) bind(err error) *query {
	if q.err == nil {
		q.err = err
	}
	return q
}

// next is the position of the next parameter; ok is false after an error.
func (q *query) next() (n int, ok bool) {
	q.n++
	return q.n, q.err == nil
}

func (q *query) text(v string) *query {
	n, ok := q.next()
	if !ok {
		return q
	}
	return q.bind(q.s.BindText(n, v))
}

// optional binds a text that is NULL if it is empty.
func (q *query) optional(v string) *query {
	if v == "" {
		return q.null()
	}
	return q.text(v)
}

func (q *query) int(v int64) *query {
	n, ok := q.next()
	if !ok {
		return q
	}
	return q.bind(q.s.BindInt64(n, v))
}

func (q *query) bool(v bool) *query {
	if v {
		return q.int(1)
	}
	return q.int(0)
}

func (q *query) blob(v []byte) *query {
	n, ok := q.next()
	if !ok {
		return q
	}
	if len(v) > 64<<10 {
		q.big = true
		q.c.grown = q.c.grown || len(v) > heavy
	}
	return q.bind(q.s.BindBlob(n, v))
}

// time binds unix milliseconds, or NULL for the zero time.
func (q *query) time(v time.Time) *query {
	if v.IsZero() {
		return q.null()
	}
	return q.int(v.UnixMilli())
}

func (q *query) null() *query {
	n, ok := q.next()
	if !ok {
		return q
	}
	return q.bind(q.s.BindNull(n))
}

// bound binds a limit; none means no limit.
func (q *query) bound(limit int) *query {
	if limit <= 0 {
		return q.int(-1)
	}
	return q.int(int64(limit))
}

// run executes a statement that returns no rows.
func (q *query) run() error {
	if q.err != nil {
		return q.err
	}
	err := q.s.Exec()
	if q.big {
		q.s.ClearBindings()
	}
	return err
}

// change executes a statement and says how many rows it changed.
func (q *query) change() (int64, error) {
	if err := q.run(); err != nil {
		return 0, err
	}
	return q.c.db.Changes(), nil
}

// each calls fn for every row, until it returns false.
func (q *query) each(fn func(r *row) (more bool, err error)) error {
	if q.err != nil {
		return q.err
	}
	// A statement that is not reset keeps its read transaction open.
	defer q.s.Reset()
	r := row{q: q}
	for q.s.Step() {
		r.i = 0
		more, err := fn(&r)
		if err != nil || !more {
			return err
		}
	}
	return q.s.Err()
}

// one calls fn for the first row and says whether there was one.
func (q *query) one(fn func(r *row)) (found bool, err error) {
	err = q.each(func(r *row) (bool, error) {
		found = true
		fn(r)
		return false, nil
	})
	return found, err
}

// row reads the columns of one row in order.
type row struct {
	q *query
	i int
}

func (r *row) col() int {
	r.i++
	return r.i - 1
}

func (r *row) text() string { return r.q.s.ColumnText(r.col()) }
func (r *row) int() int64   { return r.q.s.ColumnInt64(r.col()) }
func (r *row) bool() bool   { return r.int() != 0 }

// raw is a blob in SQLite's own memory: valid until the next step.
func (r *row) raw() []byte {
	b := r.q.s.ColumnRawBlob(r.col())
	r.q.c.grown = r.q.c.grown || len(b) > heavy
	return b
}

func (r *row) blob() []byte {
	b := r.raw()
	if b == nil {
		return nil
	}
	return append(make([]byte, 0, len(b)), b...)
}

func (r *row) time() time.Time {
	i := r.col()
	if r.q.s.ColumnType(i) == sqlite3.NULL {
		return time.Time{}
	}
	return time.UnixMilli(r.q.s.ColumnInt64(i)).UTC()
}
