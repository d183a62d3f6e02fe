package sqlite

import (
	"slices"

	"github.com/fermata-run/fermata/internal/store"
)

// mostProbes bounds how many tenants one claim looks at.
const mostProbes = 1024

// pool is where runs can be claimed from: those of one lost holder, or those that are
// due. The first argument of its statements is the holder, or the time.
type pool struct {
	look string // runs, whosever
	next string // the next tenant that has some, and whether one of them can be had
	of   string // runs of a tenant
}

var (
	lost = pool{lostRuns, nextLost, lostOf}
	due  = pool{dueRuns, nextDue, dueOf}
)

// pick reads candidates from a pool. One look is enough unless there are more than
// limit: then it goes round the tenants, and reads a share of each.
func (o ownership) pick(c *conn, p pool, of func(*query) *query, limit int, skip []string) ([]store.Run, error) {
	first, err := scanRuns(of(c.prep(p.look)).bound(limit))
	if err != nil {
		return nil, err
	}
	full := limit > 0 && len(first) == limit
	first = slices.DeleteFunc(first, func(r store.Run) bool { return slices.Contains(skip, r.ID.Tenant) })
	if !full {
		return first, nil
	}
	tenants, err := o.waiting(c, p, of, limit, skip)
	if err != nil {
		return nil, err
	}
	var out []store.Run
	for _, tenant := range tenants {
		got, err := scanRuns(of(c.prep(p.of)).text(tenant).bound((limit + len(tenants) - 1) / len(tenants)))
		if err != nil {
			return nil, err
		}
		out = append(out, got...)
	}
	for _, r := range first {
		if !slices.Contains(tenants, r.ID.Tenant) {
			out = append(out, r)
		}
	}
	return out, nil
}

// waiting lists up to limit tenants with something in a pool that can be had, from
// behind the one served last, once round. Only the writer's goroutine comes here.
func (o ownership) waiting(c *conn, p pool, of func(*query) *query, limit int, skip []string) (out []string, err error) {
	if o.s.rota == nil {
		o.s.rota = map[string]string{}
	}
	from := o.s.rota[p.look]
	after, wrapped := from, from == ""
	for probes := 0; probes < mostProbes && len(out) < limit; probes++ {
		var tenant string
		var ready bool
		found, err := of(c.prep(p.next)).text(after).one(func(r *row) { tenant, ready = r.text(), r.int() != 0 })
		switch {
		case err != nil:
			return nil, err
		case !found && wrapped:
			o.s.rota[p.look] = ""
			return out, nil
		case !found:
			after, wrapped = "", true
			continue
		case wrapped && from != "" && tenant > from:
			o.s.rota[p.look] = from
			return out, nil
		}
		after = tenant
		if ready && !slices.Contains(skip, tenant) {
			out = append(out, tenant)
		}
	}
	o.s.rota[p.look] = after
	return out, nil
}
