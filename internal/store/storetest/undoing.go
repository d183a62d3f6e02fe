package storetest

import (
	"time"

	"github.com/fermata-run/fermata/internal/store"
)

// undoing gives a run that is being created its end and the state of its undoing.
func undoing(status, compensation string) func(a *store.Append) {
	return func(a *store.Append) { a.Row.Status, a.Row.Compensation = status, compensation }
}

// ends is every end a run can have, and states whether its effects are being undone.
var (
	ends   = []string{"completed", "failed", "cancelled"}
	states = map[string]bool{
		"": false, "pending": true, "running": true, "completed": false, "partial": false, "failed": false, "manual": false,
	}
)

// claimUndoing: a run that has ended is worked on while its effects are being
// undone, and only then.
func claimUndoing(e *env) {
	e.register("m-old")
	var lost, due []*log
	for _, status := range ends {
		for compensation, busy := range states {
			a := e.create(e.id("acme"), owned("m-old"), undoing(status, compensation))
			b := e.create(e.id("acme"), asleep(e.now), undoing(status, compensation))
			if busy {
				lost, due = append(lost, a), append(due, b)
			}
		}
	}
	e.lose("m-old")
	e.register("n-new")
	e.claimed("n-new", e.claim("n-new", 0), append(lost, due...)...)
	e.claimed("n-new", e.claim("n-new", 0))

	// Of two owners of one undoing, one can write.
	l := lost[0]
	former := *l
	former.row.Epoch--
	e.fails(e.s.Runs().Append(e.ctx, former.next(note("undo"))), store.ErrStale)
	l.grow(note("undo"))
	behind := *l
	behind.row.Seq--
	e.fails(e.s.Runs().Append(e.ctx, behind.next(note("undo"))), store.ErrStale)

	// Undone, it is over for good.
	a := l.next(note("undone"))
	a.Row.Compensation = "completed"
	e.ok(l.write(a))
	l.check()
	e.lose("n-new")
	e.register("o-next")
	e.claimed("o-next", e.claim("o-next", 0), append(lost[1:], due...)...)
}

// wakeUndoing: an undoing has timers, and they are seen while it goes on.
func wakeUndoing(e *env) {
	at := e.now.Add(time.Hour)
	e.register("host-1")
	for _, status := range ends {
		for compensation, busy := range states {
			wake := at
			if !busy {
				wake = at.Add(-time.Minute)
			}
			e.create(e.id("acme"), asleep(wake), undoing(status, compensation))
		}
	}
	got, err := e.s.Ownership().NextWake(e.ctx)
	e.ok(err)
	if !got.Equal(at) {
		e.Fatalf("next wake is %v, want %v", got, at)
	}
}

// undoingRow: a row tells how far its undoing has come, wherever it is read.
func undoingRow(e *env) {
	l := e.create(e.id("acme"), undoing("failed", "running"))
	check := func() {
		e.Helper()
		l.check()
		e.sameRun(e.get(l.row.ID), l.row)
		rows := e.listed(store.ListQuery{Tenant: "acme", Limit: 10, Status: "failed"})
		same(e, "rows", len(rows), 1)
		e.sameRun(rows[0], l.row)
	}
	check()
	a := l.next(note("half"))
	a.Row.Compensation = "partial"
	e.ok(l.write(a))
	check()
	e.reopen()
	check()
	a = l.next()
	a.Row.Compensation = ""
	e.ok(l.write(a))
	check()
}
