package archive

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"

	"github.com/fermata-run/fermata/internal/store"
)

// Verify reads an archive and writes nothing.
func Verify(r io.Reader) (Header, Report, error) {
	see := newFollower()
	h, err := Read(r, see.visit)
	if err != nil {
		return h, Report{}, err
	}
	return h, see.end(), nil
}

// Restore makes a store of an archive, in a place with nothing in it: all of it or
// nothing. Before it is done it reads back what it has written.
func Restore(ctx context.Context, r io.Reader, to store.Place) (h Header, out Report, err error) {
	out, err = fill(ctx, to, func(visit store.Visit) error {
		h, err = Read(r, visit)
		return err
	})
	return h, out, err
}

// Copy makes a store of another one, as Restore does. With alone it fails with
// store.ErrInUse if a host uses the store that is copied.
func Copy(ctx context.Context, from, to store.Place, alone bool) (Report, error) {
	return fill(ctx, to, func(visit store.Visit) error { return from.Dump(ctx, alone, visit) })
}

// fill loads a place with what source visits.
func fill(ctx context.Context, to store.Place, source func(visit store.Visit) error) (out Report, err error) {
	see, raise := newFollower(), raise()
	err = to.Load(ctx, func(put store.Visit) error {
		return source(func(t *store.Table, row []store.Value) error {
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			if err := see.visit(t, row); err != nil {
				return err
			}
			return put(t, raise(t, row))
		})
	}, func(read func(store.Visit) error) error {
		out = see.end()
		got := newSummed()
		if err := read(got.visit); err != nil {
			return fmt.Errorf("what was written cannot be read: %w", err)
		}
		return differ(out.Tables, got.list())
	})
	return out, err
}

// raise raises fences by a number that is as good as never the same again: a host that
// has known the store before, at the same address and further on, must not take a run
// of the new one for its own, and neither may one that has known another copy. The
// values of a row are changed in place.
func raise() func(t *store.Table, row []store.Value) []store.Value {
	by := 1<<32 + rand.Int64N(1<<44)
	return func(t *store.Table, row []store.Value) []store.Value {
		for i := range t.Columns {
			if t.Columns[i].Fence {
				row[i].Int += by
			}
		}
		return row
	}
}
