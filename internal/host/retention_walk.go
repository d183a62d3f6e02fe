package host

import (
	"context"
	"time"

	"github.com/fermata-run/fermata/internal/store"
)

// How much one look and one transaction of retention takes, so that no other
// write waits long and memory stays the same however many runs there are.
const (
	walkTenants = 100
	walkRuns    = 100
	clearRows   = 500
	clearBytes  = 4 << 20
)

// walk visits the runs that are to be let go of, tenant by tenant, in the order
// of their ends.
type walk struct {
	store   store.Retention
	bounds  func(tenant string) Bounds
	cut     func(b Bounds, end store.Ending) store.Ending
	tenants []string // still to visit
	last    string   // the tenant read last; all are read once it is done
	done    bool

	query store.EndedQuery // of the tenant being visited; zero for none
}

// newWalk begins a walk over one tenant, or over all if it is empty.
func newWalk(s store.Retention, only string, bounds func(string) Bounds, cut func(Bounds, store.Ending) store.Ending) *walk {
	w := &walk{store: s, bounds: bounds, cut: cut}
	if only != "" {
		w.tenants, w.done = []string{only}, true
	}
	return w
}

// next reads the next runs, all of one tenant; none at the end of the walk.
func (w *walk) next(ctx context.Context) ([]store.Run, error) {
	for {
		if w.query.Tenant == "" {
			if more, err := w.enter(ctx); err != nil || !more {
				return nil, err
			}
			continue
		}
		rows, err := w.store.Ended(ctx, w.query)
		if err != nil {
			return nil, err
		}
		if len(rows) < w.query.Limit {
			w.query = store.EndedQuery{}
		} else {
			end := &rows[len(rows)-1]
			w.query.After = store.Ending{At: end.CompletedAt, ID: end.ID.Opaque}
		}
		if len(rows) > 0 {
			return rows, nil
		}
	}
}

// enter goes on to the next tenant; it reports false after the last one.
func (w *walk) enter(ctx context.Context) (bool, error) {
	if len(w.tenants) == 0 && !w.done {
		names, err := w.store.Tenants(ctx, w.last, walkTenants)
		if err != nil {
			return false, err
		}
		w.tenants, w.done = names, len(names) < walkTenants
	}
	if len(w.tenants) == 0 {
		return false, nil
	}
	tenant := w.tenants[0]
	b := w.bounds(tenant)
	var end store.Ending
	if b.MaxRuns > 0 {
		var err error
		if end, err = w.store.EndOf(ctx, tenant, b.MaxRuns); err != nil {
			return false, err
		}
	}
	w.tenants, w.last = w.tenants[1:], tenant
	if cut := w.cut(b, end); cut != (store.Ending{}) {
		w.query = store.EndedQuery{Tenant: tenant, Until: cut, Limit: walkRuns}
	}
	return true, nil
}

// pace waits about as long as the work since begun took, so that retention never
// has more than half of the store. The wait is of the machine's time.
func pace(ctx context.Context, begun time.Time) error {
	t := time.NewTimer(min(max(time.Since(begun), time.Millisecond), time.Second))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
