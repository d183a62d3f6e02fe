package postgres

import (
	"context"
	"slices"
	"sync"

	"github.com/fermata-run/fermata/internal/store"
	"github.com/jackc/pgx/v5"
)

// mostProbes bounds how many tenants one claim looks at.
const mostProbes = 1024

// pool is where runs can be claimed from: those of one lost holder, or those that are
// due. The first argument of its statements is the holder, or the time.
type pool struct {
	look string // up to $2 runs, whosever
	next string // the next tenant after $2 that has some, and whether one of them can be had
	of   string // up to $3 runs of tenant $2
}

var (
	fromHolder = pool{lostRuns, nextLost, lostOf}
	due        = pool{dueRuns, nextDue, dueOf}
)

// rota remembers whose turn comes next where there are more tenants than one claim
// can serve.
type rota struct {
	mu   sync.Mutex
	last map[string]string // tenant served last, by a pool's look
}

func (r *rota) get(p pool) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last[p.look]
}

func (r *rota) set(p pool, tenant string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		r.last = map[string]string{}
	}
	r.last[p.look] = tenant
}

// pick reads candidates from a pool, and says whether these are all. One look is
// enough unless there are more than limit: then it goes round the tenants, and reads
// a share of each.
func (o ownership) pick(ctx context.Context, q querier, p pool, of any, limit int, skip []string) (out []store.Run, whole bool, err error) {
	first, err := list(ctx, q, scanRun, p.look, of, bound(limit))
	if err != nil {
		return nil, false, err
	}
	full := limit > 0 && len(first) == limit
	first = slices.DeleteFunc(first, func(r store.Run) bool { return slices.Contains(skip, r.ID.Tenant) })
	if !full {
		return first, len(skip) == 0, nil
	}
	tenants, err := o.waiting(ctx, q, p, of, limit, skip)
	if err != nil || len(tenants) == 0 {
		return first, false, err
	}
	b := &pgx.Batch{}
	for _, tenant := range tenants {
		b.Queue(p.of, of, tenant, (limit+len(tenants)-1)/len(tenants))
	}
	res := q.SendBatch(ctx, b)
	defer res.Close() //nolint:errcheck // what is read below says what failed
	for range tenants {
		rows, err := res.Query()
		if err != nil {
			return nil, false, err
		}
		got, err := collect(rows, scanRun)
		if err != nil {
			return nil, false, err
		}
		out = append(out, got...)
	}
	for _, r := range first {
		if !slices.Contains(tenants, r.ID.Tenant) {
			out = append(out, r)
		}
	}
	return out, false, nil
}

// waiting lists up to limit tenants with something in a pool that can be had, from
// behind the one served last, once round.
func (o ownership) waiting(ctx context.Context, q querier, p pool, of any, limit int, skip []string) (out []string, err error) {
	from := o.s.rota.get(p)
	after, wrapped := from, from == ""
	for probes := 0; probes < mostProbes && len(out) < limit; probes++ {
		var tenant string
		var ready bool
		found, err := one(ctx, q, p.next, []any{of, after}, &tenant, &ready)
		switch {
		case err != nil:
			return nil, err
		case !found && wrapped:
			o.s.rota.set(p, "")
			return out, nil
		case !found:
			after, wrapped = "", true
			continue
		case wrapped && from != "" && tenant > from:
			o.s.rota.set(p, from)
			return out, nil
		}
		after = tenant
		if ready && !slices.Contains(skip, tenant) {
			out = append(out, tenant)
		}
	}
	o.s.rota.set(p, after)
	return out, nil
}
