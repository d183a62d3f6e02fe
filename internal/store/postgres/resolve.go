package postgres

import (
	"context"
	"errors"

	"github.com/fermata-run/fermata/internal/store"
)

const selectMark = `SELECT mark FROM events WHERE tenant = $1 AND run_id = $2 AND seq = $3`

// resolve is the answer to a request after its last transaction. A request that was
// refused because its run has moved on may have moved it itself, if an earlier
// commit was cut off: then what is in the database says so.
func (w *writer) resolve(r *request) error {
	err := r.err
	if err == nil {
		return nil
	}
	ctx, done := context.WithTimeout(context.Background(), 3*w.s.timeout)
	defer done()
	moved := errors.Is(err, store.ErrStale) || errors.Is(err, store.ErrExists)
	if r.maybe && moved {
		ours := false
		e := w.s.read(ctx, func(q querier) (err error) {
			ours, err = r.isThere(ctx, q)
			return err
		})
		if e != nil {
			return errors.Join(store.ErrUnavailable, e)
		}
		if ours {
			return nil
		}
	}
	if r.lost.Opaque != "" && errors.Is(err, store.ErrStale) {
		return w.why(ctx, r)
	}
	if r.maybe && !moved && !errors.Is(err, store.ErrClosed) {
		return errors.Join(err, errUnknown)
	}
	return err
}

// why tells a run that has moved on from one that is not there.
func (w *writer) why(ctx context.Context, r *request) error {
	err := w.s.read(ctx, func(q querier) error {
		var yes int
		there, err := one(ctx, q, runIsThere, []any{r.lost.Tenant, r.lost.Opaque}, &yes)
		if err == nil && !there {
			err = missing(ctx, q, r.lost)
		}
		return err
	})
	if err != nil {
		return err
	}
	return r.err
}

// isThere says whether what a request would write is in the database. Its mark
// tells: no other step has the same one. A step without any is told by its row.
func (r *request) isThere(ctx context.Context, q querier) (bool, error) {
	for i := range r.steps {
		s := &r.steps[i]
		if len(s.segments) == 0 {
			continue
		}
		var mark int64
		there, err := one(ctx, q, selectMark, []any{s.Row.ID.Tenant, s.Row.ID.Opaque, s.segments[0].Seq}, &mark)
		return there && mark == s.mark, err
	}
	if len(r.steps) == 0 {
		return false, nil
	}
	want := &r.steps[0].Row
	is, err := getRun(ctx, q, want.ID)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil && is.Epoch == want.Epoch && is.Seq == want.Seq && is.Status == want.Status &&
		is.Instance == want.Instance && is.WakeAt.UnixMilli() == want.WakeAt.UnixMilli(), err
}
