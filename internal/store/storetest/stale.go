package storetest

import (
	"errors"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/store"
)

func staleSteps(e *env) {
	l := e.create(e.id("acme"), func(a *store.Append) { a.Row.Epoch = 3 })
	l.grow(notes(3)...)
	for name, spoil := range map[string]func(a *store.Append){
		"an older epoch": func(a *store.Append) { a.Epoch-- },
		"a newer epoch":  func(a *store.Append) { a.Epoch++ },
	} {
		for _, drafts := range [][]event.Draft{nil, notes(2)} {
			a := l.next(drafts...)
			a.Row.Status = "failed"
			spoil(a)
			if err := e.s.Runs().Append(e.ctx, a); err == nil {
				e.Fatalf("a step of %s was written", name)
			} else {
				e.fails(err, store.ErrStale)
			}
			l.check()
		}
	}
	// Prepared before and after what the log holds.
	behind, ahead := *l, *l
	behind.row.Seq--
	ahead.row.Seq++
	for _, other := range []*log{&behind, &ahead} {
		e.fails(e.s.Runs().Append(e.ctx, other.next(note("lost"))), store.ErrStale)
		e.fails(e.s.Runs().Append(e.ctx, other.next()), store.ErrStale)
		l.check()
	}
	// A run that is not there is no stale one.
	gone := *l
	gone.row.ID = e.id("acme")
	e.fails(e.s.Runs().Append(e.ctx, gone.next(note("lost"))), store.ErrNotFound)
	e.fails(e.s.Runs().Append(e.ctx, gone.next()), store.ErrNotFound)
	l.grow(note("still alive"))
	l.check()
}

func createTwice(e *env) {
	id := e.id("acme")
	l := e.create(id)
	l.grow(note("mine"))
	again := &log{e: e, row: e.newRow(id)}
	again.row.WorkflowID = "other"
	a := again.next(note("theirs"))
	a.Create = true
	a.Opened = []store.Interrupt{{ID: e.id("acme").Opaque, Run: id, Kind: "approval", CreatedAt: e.now}}
	e.fails(again.write(a), store.ErrExists)
	l.check()
	e.noInterrupts("acme")

	// Without any event, too: a run may be created before it starts.
	empty := &log{e: e, row: e.newRow(e.id("acme"))}
	a = empty.next()
	a.Create = true
	e.ok(empty.write(a))
	empty.check()
	e.fails(e.s.Runs().Append(e.ctx, a), store.ErrExists)
	empty.grow(note("first"))
	empty.check()
}

// rowOnlySteps change the row and leave the log alone.
func rowOnlySteps(e *env) {
	l := e.create(e.id("acme"))
	a := l.next()
	a.Row.Status, a.Row.Instance, a.Row.Epoch = "waiting-external", "host-1", 4
	a.Row.WakeAt = e.tick()
	e.ok(l.write(a))
	l.check()
	e.fails(e.s.Runs().Append(e.ctx, a), store.ErrStale) // the epoch has moved
	a = l.next()
	a.Row.Instance = ""
	e.ok(l.write(a))
	l.grow(notes(2)...)
	l.check()
}

// reversedCommitOrder: of two steps prepared on the same state, the one that is
// written first wins, whichever was prepared first; the other leaves no trace.
func reversedCommitOrder(e *env) {
	child := e.create(e.id("acme"), func(a *store.Append) { a.Row.Notify = true })
	l := e.create(e.id("acme"))
	l.grow(note("common"))
	first, second := l.next(note("first")), l.next(note("second"), note("second"))
	first.Row.Status = "failed"
	first.Opened = []store.Interrupt{{ID: e.id("acme").Opaque, Run: l.row.ID, Kind: "approval", CreatedAt: e.now}}
	first.Checkpoint = &store.Checkpoint{Seq: 1, State: []byte("first")}
	first.Settled = []store.Settled{{Child: child.row.ID, Seq: child.row.Seq}}
	started := &log{e: e, row: e.newRow(e.id("acme"))}
	also := started.next(note("child"))
	also.Create = true
	first.Also = []*store.Append{also}

	e.ok(l.write(second))
	e.fails(e.s.Runs().Append(e.ctx, first), store.ErrStale)
	l.check()
	child.check()
	e.noInterrupts("acme")
	loaded, err := e.s.Runs().Load(e.ctx, l.row.ID)
	e.ok(err)
	same(e, "checkpoint", loaded.Checkpoint, nil)
	_, err = e.s.Runs().Get(e.ctx, started.row.ID)
	e.fails(err, store.ErrNotFound)
}

// stepsOfSeveralRuns: what goes along with a step is written with it or not at
// all.
func stepsOfSeveralRuns(e *env) {
	parent := e.create(e.id("acme"))
	kid := func() (*log, *store.Append) {
		k := &log{e: e, row: e.newRow(e.id("acme"))}
		k.row.Parent = parent.row.ID
		a := k.next(notes(2)...)
		a.Create = true
		return k, a
	}
	one, stepOne := kid()
	two, stepTwo := kid()
	a := parent.next(note("two children"))
	a.Also = []*store.Append{stepOne, stepTwo}
	e.ok(parent.write(a))
	one.took(stepOne)
	two.took(stepTwo)

	// A child that is there already, last in the row, spoils all of it.
	three, stepThree := kid()
	a = parent.next(note("two more"))
	a.Also = []*store.Append{stepThree, stepTwo}
	e.fails(e.s.Runs().Append(e.ctx, a), store.ErrExists)
	_, err := e.s.Runs().Get(e.ctx, three.row.ID)
	e.fails(err, store.ErrNotFound)

	// So does a stale step of a run that is there.
	stale := one.next(note("stale"))
	stale.Epoch++
	a.Also = []*store.Append{stepThree, stale}
	e.fails(e.s.Runs().Append(e.ctx, a), store.ErrStale)

	// It may also go well.
	good := one.next(note("good"))
	a.Also = []*store.Append{stepThree, good}
	e.ok(parent.write(a))
	three.took(stepThree)
	one.took(good)
	e.reopen()
	for _, l := range []*log{parent, one, two, three} {
		l.check()
	}
}

// checkpoints: the newest one counts, and Load reads only what comes after it.
func checkpoints(e *env) {
	l := e.create(e.id("acme"))
	want := func(c *store.Checkpoint) {
		e.Helper()
		l.check()
		loaded, err := e.s.Runs().Load(e.ctx, l.row.ID)
		e.ok(err)
		same(e, "checkpoint", loaded.Checkpoint, c)
	}
	want(nil)
	// Within a step's events, at their end, and below the newest step.
	for _, back := range []int64{3, 0, 6, 1} {
		a := l.next(notes(5)...)
		a.Checkpoint = &store.Checkpoint{Seq: a.Row.Seq - back, State: []byte("state\x00\xff")}
		e.ok(l.write(a))
		want(a.Checkpoint)
	}
	last := &store.Checkpoint{Seq: l.row.Seq, State: []byte("without events")}
	a := l.next()
	a.Checkpoint = last
	e.ok(l.write(a))
	want(last)
	l.grow(notes(300)...)
	e.reopen()
	want(last)
}

// alone is a step that is refused while another run of its scope is not over.
func alone(e *env) {
	create := func(tenant, scope string, alone bool) (*log, *store.Append) {
		l := &log{e: e, row: e.newRow(e.id(tenant))}
		a := l.next(note("begun"))
		a.Create, a.Scope, a.Alone = true, scope, alone
		return l, a
	}
	first, a := create("acme", "order-7", true)
	e.ok(first.write(a))
	_, a = create("acme", "order-7", true)
	err := e.s.Runs().Append(e.ctx, a)
	var active store.Active
	if !errors.As(err, &active) || active.Run != first.row.ID {
		e.Errorf("a second run of the scope: %v", err)
	}
	if _, err := e.s.Runs().Get(e.ctx, a.Row.ID); !errors.Is(err, store.ErrNotFound) {
		e.Errorf("the refused run: %v", err)
	}
	// Another scope, another tenant, no scope, and not asking for it.
	for _, c := range []struct {
		tenant, scope string
		alone         bool
	}{{"acme", "order-8", true}, {"beta", "order-7", true}, {"acme", "", true}, {"acme", "order-7", false}} {
		l, a := create(c.tenant, c.scope, c.alone)
		e.ok(l.write(a))
		over := l.next(note("over"))
		over.Row.Status = "completed"
		e.ok(l.write(over))
	}
	over := first.next(note("over"))
	over.Row.Status = "failed"
	e.ok(first.write(over))
	again, a := create("acme", "order-7", true)
	e.ok(again.write(a))
	again.check()
}
