package storetest

import (
	"github.com/fermata-run/fermata/internal/store"
)

// activeRuns counts the runs of a tenant that are under way, and no others: not
// those that are over, not another tenant's, and not those that a run has started.
func activeRuns(e *env) {
	want := func(tenant string, most, n int) {
		e.Helper()
		got, err := e.s.Runs().CountActive(e.ctx, tenant, most)
		if e.ok(err); got != n {
			e.Errorf("%d active runs of %s, at most %d: want %d", got, tenant, most, n)
		}
	}
	put := func(tenant, status string, change func(*store.Append)) *log {
		l := &log{e: e, row: e.newRow(e.id(tenant))}
		a := l.next(note("begun"))
		a.Create, a.Row.Status = true, status
		if change != nil {
			change(a)
		}
		e.ok(l.write(a))
		return l
	}
	want("acme", 10, 0)
	active := []string{"pending", "running", "paused", "waiting-approval", "waiting-input", "waiting-external", "cancelling"}
	var runs []*log
	for _, status := range active {
		runs = append(runs, put("acme", status, nil))
	}
	for _, status := range []string{"completed", "failed", "cancelled"} {
		put("acme", status, nil)
		put("acmeb", status, nil)
	}
	put("beta", "running", nil)
	put("acme", "running", func(a *store.Append) { a.Row.Parent, a.Row.ParentNode = runs[0].row.ID, "n" })
	want("acme", 0, len(active))
	want("acme", 3, 3)
	want("beta", 10, 1)
	want("acmeb", 10, 0)
	for i, l := range runs {
		over := l.next(note("over"))
		over.Row.Status = []string{"completed", "failed", "cancelled"}[i%3]
		e.ok(l.write(over))
		want("acme", 100, len(active)-i-1)
	}
	e.reopen()
	want("acme", 100, 0)
	want("beta", 100, 1)
}
