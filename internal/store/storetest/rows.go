package storetest

import (
	"slices"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
)

// listed reads every page of a list.
func (e *env) listed(q store.ListQuery) []store.Run {
	e.Helper()
	var out []store.Run
	for {
		rows, err := e.s.Runs().List(e.ctx, q)
		e.ok(err)
		if len(rows) > q.Limit {
			e.Fatalf("%d rows with limit %d", len(rows), q.Limit)
		}
		out = append(out, rows...)
		if len(rows) < q.Limit {
			return out
		}
		q.Before = rows[len(rows)-1].ID.Opaque
	}
}

// listAndFilters compares every combination of filters with a filter in Go.
func listAndFilters(e *env) {
	var all []store.Run // newest last
	for i := range 60 {
		tenant := []string{"acme", "acme", "other"}[i%3]
		l := e.create(e.id(tenant), func(a *store.Append) {
			a.Row.WorkflowID = []string{"greet", "bill"}[i%2]
			a.Row.Status = []string{"completed", "running", "completed", "failed", "waiting-approval"}[i%5]
		})
		all = append(all, l.row)
	}
	slices.Reverse(all)
	for _, tenant := range []string{"acme", "other", "nobody"} {
		for _, workflow := range []string{"", "greet", "bill", "none"} {
			for _, status := range []string{"", "completed", "running", "failed", "waiting-approval", "paused"} {
				var want []store.Run
				for _, r := range all {
					if r.ID.Tenant == tenant && (workflow == "" || r.WorkflowID == workflow) &&
						(status == "" || r.Status == status) {
						want = append(want, r)
					}
				}
				for _, limit := range []int{1, 3, 100} {
					got := e.listed(store.ListQuery{Tenant: tenant, Limit: limit, WorkflowID: workflow, Status: status})
					same(e, tenant+" "+workflow+" "+status, got, want)
				}
			}
		}
	}
	// A status that changes moves the run from list to list.
	l := &log{e: e, row: all[0]}
	a := l.next()
	a.Row.Status = "paused"
	e.ok(l.write(a))
	same(e, "paused", e.listed(store.ListQuery{Tenant: l.row.ID.Tenant, Limit: 9, Status: "paused"}), []store.Run{l.row})
}

// listOrder is the order of bytes, whatever the database's language.
func listOrder(e *env) {
	var want []string
	for _, c := range []string{"~", "z", "a", "_", "Z", "A", "9", "0", ".", "-"} {
		want = append(want, c+"000000000000000")
	}
	for _, i := range []int{3, 1, 9, 0, 7, 5, 2, 8, 6, 4} {
		e.create(ids.Run{Tenant: "acme", Opaque: want[i]})
	}
	for _, limit := range []int{1, 4, 10, 11} {
		var got []string
		for _, r := range e.listed(store.ListQuery{Tenant: "acme", Limit: limit}) {
			got = append(got, r.ID.Opaque)
		}
		same(e, "order", got, want)
	}
}

func children(e *env) {
	parent, other := e.create(e.id("acme")), e.create(e.id("acme"))
	var want []store.Run
	for i := range 9 {
		p := []*log{parent, other, parent}[i%3]
		l := e.create(e.id("acme"), func(a *store.Append) {
			a.Row.Parent, a.Row.ParentNode = p.row.ID, "spawn"
		})
		if p == parent {
			want = append(want, l.row)
		}
	}
	got, err := e.s.Runs().Children(e.ctx, parent.row.ID)
	e.ok(err)
	same(e, "children", got, want)
	for _, id := range []ids.Run{want[0].ID, e.id("acme"), {Tenant: "other", Opaque: parent.row.ID.Opaque}} {
		got, err := e.s.Runs().Children(e.ctx, id)
		e.ok(err)
		same(e, "no children", len(got), 0)
	}
}

// unsettled is the ids of the runs with news, in the order given.
func (e *env) unsettled(limit int) []ids.Run {
	e.Helper()
	rows, err := e.s.Ownership().Unsettled(e.ctx, limit)
	e.ok(err)
	return runIDs(rows)
}

// newsOfChildren: Settle takes news away only if no newer ones have come.
func newsOfChildren(e *env) {
	var kids []*log
	var want []ids.Run
	for i := range 6 {
		l := e.create(e.id([]string{"acme", "other"}[i%2]), func(a *store.Append) {
			a.Row.Parent, a.Row.Notify = ids.Run{Tenant: a.Row.ID.Tenant, Opaque: "parent0000000000"}, i != 2
		})
		kids = append(kids, l)
		if i != 2 {
			want = append(want, l.row.ID)
		}
	}
	same(e, "unsettled", e.unsettled(10), want)
	same(e, "first two", e.unsettled(2), want[:2])

	seen := kids[0].row.Seq
	a := kids[0].next(note("newer news"))
	e.ok(kids[0].write(a))
	e.ok(e.s.Runs().Settle(e.ctx, []store.Settled{
		{Child: kids[0].row.ID, Seq: seen}, // stale: stays
		{Child: kids[1].row.ID, Seq: kids[1].row.Seq},
		{Child: kids[2].row.ID, Seq: kids[2].row.Seq},                                    // has none
		{Child: ids.Run{Tenant: "acme", Opaque: kids[3].row.ID.Opaque}, Seq: 0},          // of another tenant
		{Child: kids[4].row.ID, Seq: kids[4].row.Seq + 1}, {Child: e.id("acme"), Seq: 0}, // ahead; nobody
	}))
	want = []ids.Run{kids[0].row.ID, kids[3].row.ID, kids[4].row.ID, kids[5].row.ID}
	same(e, "unsettled", e.unsettled(10), want)
	kids[1].row.Notify = false
	e.reopen()
	same(e, "unsettled after a restart", e.unsettled(10), want)
	for _, k := range kids {
		k.check()
	}
	e.ok(e.s.Runs().Settle(e.ctx, nil))
}

// settleInAStep does the same within a parent's step.
func settleInAStep(e *env) {
	parent := e.create(e.id("acme"))
	kid := e.create(e.id("acme"), func(a *store.Append) { a.Row.Parent, a.Row.Notify = parent.row.ID, true })
	news := []store.Settled{{Child: kid.row.ID, Seq: kid.row.Seq}}

	stale := parent.next(note("stale"))
	stale.Epoch++
	stale.Settled = news
	e.fails(e.s.Runs().Append(e.ctx, stale), store.ErrStale)
	same(e, "unsettled", len(e.unsettled(10)), 1)

	a := parent.next(note("seen"))
	a.Settled = news
	e.ok(parent.write(a))
	same(e, "unsettled", len(e.unsettled(10)), 0)
	kid.row.Notify = false
	kid.check()

	// News that came before the child moved on stay.
	b := kid.next(note("more"))
	b.Row.Notify = true
	e.ok(kid.write(b))
	a = parent.next(note("seen again"))
	a.Settled = news
	e.ok(parent.write(a))
	same(e, "unsettled", len(e.unsettled(10)), 1)
}

// tenants: the id of a run means nothing under another tenant.
func tenants(e *env) {
	mine := e.create(e.id("acme"))
	mine.grow(note("mine"))
	theirs := ids.Run{Tenant: "acme2", Opaque: mine.row.ID.Opaque}
	_, err := e.s.Runs().Get(e.ctx, theirs)
	e.fails(err, store.ErrNotFound)
	_, err = e.s.Runs().Load(e.ctx, theirs)
	e.fails(err, store.ErrNotFound)
	_, _, err = e.s.Runs().Events(e.ctx, theirs, -1, 10, 1<<20)
	e.fails(err, store.ErrNotFound)
	alien := *mine
	alien.row.ID = theirs
	e.fails(e.s.Runs().Append(e.ctx, alien.next(note("alien"))), store.ErrNotFound)
	// The same id may even be used by both.
	other := e.create(theirs)
	other.grow(notes(3)...)
	mine.grow(note("mine"))
	mine.check()
	other.check()
	same(e, "list", runIDs(e.listed(store.ListQuery{Tenant: "acme2", Limit: 10})), []ids.Run{theirs})
}
