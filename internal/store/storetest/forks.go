package storetest

import (
	"strings"
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
)

// forkRows: where a fork comes from is kept as given, through every way of
// reading a row, and no later step changes it.
func forkRows(e *env) {
	source := e.create(e.id("acme"))
	plain := e.get(source.row.ID)
	if plain.ForkMode != "" || !plain.ForkSource.IsZero() || plain.ForkSeq != 0 || plain.ForkOptions != nil || plain.Replay() {
		e.Fatalf("a run that is no fork: %+v", plain)
	}
	for _, mode := range []string{"replay", "branch"} {
		fork := e.create(e.id("acme"), func(a *store.Append) {
			a.Row.ForkMode, a.Row.ForkSource, a.Row.ForkSeq = mode, source.row.ID, 7
			a.Row.ForkOptions = []byte(`{"tags":["a"]}`)
		})
		if fork.row.Replay() != (mode == "replay") {
			e.Errorf("%s is a replay: %v", mode, fork.row.Replay())
		}
		if !fork.row.History(6) || fork.row.History(7) != (mode == "replay") || plain.History(0) {
			e.Errorf("%s: what is history is not", mode)
		}
		next := fork.next(note("more"))
		next.Row.ForkMode, next.Row.ForkSeq, next.Row.ForkOptions = "branch", 1, nil // not among what changes
		e.ok(e.s.Runs().Append(e.ctx, next))
		fork.events, fork.row.Seq = append(fork.events, next.Events...), next.Row.Seq
		fork.check()
		e.reopen()
		fork.check()
	}
	source.check()
}

// stagedLog stages n events of a run in stretches of the given length.
func (e *env) stagedLog(id ids.Run, n, stretch int) []event.Event {
	e.Helper()
	l := &log{e: e, row: e.newRow(id)}
	all := l.next(notes(n)...).Events
	for from := 0; from < n; from += stretch {
		e.ok(e.s.Runs().Stage(e.ctx, id, e.now, all[from:min(from+stretch, n)]))
	}
	return all
}

// stagedLogs: a log comes in stretches, and the run of it into being in one step
// or not at all.
func stagedLogs(e *env) {
	id := e.id("acme")
	before := e.stagedLog(id, 100, 30)
	_, err := e.s.Runs().Get(e.ctx, id)
	e.fails(err, store.ErrNotFound)
	_, _, err = e.s.Runs().Events(e.ctx, id, -1, 10, 1000)
	e.fails(err, store.ErrNotFound)
	_, err = e.s.Runs().Load(e.ctx, id)
	e.fails(err, store.ErrNotFound)
	e.reopen() // a process may die in between

	l := &log{e: e, row: e.newRow(id), events: before}
	l.row.Seq = 99
	step := l.next(notes(2)...)
	step.Create, step.Staged = true, true
	gap := *step
	gap.Events, gap.Row.Seq = nil, 98
	e.fails(e.s.Runs().Append(e.ctx, &gap), store.ErrStale)
	_, err = e.s.Runs().Get(e.ctx, id)
	e.fails(err, store.ErrNotFound)
	e.ok(l.write(step))
	l.check()
	e.fails(e.s.Runs().Append(e.ctx, step), store.ErrExists)
	e.fails(e.s.Runs().Stage(e.ctx, id, e.now, before[:1]), store.ErrExists)
	l.grow(notes(3)...)
	l.check()
	n, err := e.s.Runs().Unstage(e.ctx, e.now.Add(time.Hour), 1000)
	e.ok(err)
	if n != 0 {
		e.Errorf("a log that belongs to a run was taken for an abandoned one")
	}
	l.check()
}

// stagedAlone: letting go of runs, a fork's source among them, leaves what is staged.
func stagedAlone(e *env) {
	source, id := e.over("acme"), e.id("acme")
	events := e.stagedLog(id, 40, 15)
	e.expire(source)
	e.cleared(1, 1)
	e.gone(source, e.now)
	e.reopen()
	l := &log{e: e, row: e.newRow(id), events: events}
	l.row.Seq = 39
	step := l.next(notes(1)...)
	step.Create, step.Staged = true, true
	step.Row.ForkMode, step.Row.ForkSource, step.Row.ForkSeq = "branch", source.row.ID, 40
	e.ok(l.write(step))
	l.check()
}

// stagedAgain: the first stretch replaces what an earlier try has left, a later
// one must continue it, and nothing is staged for another tenant's run.
func stagedAgain(e *env) {
	id := e.id("acme")
	e.stagedLog(id, 50, 50)
	all := e.stagedLog(id, 20, 20)
	other := ids.Run{Tenant: "other", Opaque: id.Opaque}
	mine := &log{e: e, row: e.newRow(id)}
	mine.row.Seq = 24
	e.fails(e.s.Runs().Stage(e.ctx, id, e.now, mine.next(notes(5)...).Events), store.ErrStale)
	l := &log{e: e, row: e.newRow(other)}
	l.row.Seq = 19
	step := l.next(notes(1)...)
	step.Create, step.Staged = true, true
	e.fails(e.s.Runs().Append(e.ctx, step), store.ErrStale)

	mine = &log{e: e, row: e.newRow(id), events: all}
	mine.row.Seq = 19
	step = mine.next(notes(1)...)
	step.Create, step.Staged = true, true
	e.ok(mine.write(step))
	mine.check()
}

// stagedMalformed: what would not read back is refused before it is staged.
func stagedMalformed(e *env) {
	id := e.id("acme")
	good := (&log{e: e, row: e.newRow(id)}).next(notes(3)...).Events
	gap := append(good[:1:1], good[2])
	foreign := append([]event.Event(nil), good...)
	foreign[1].Run.Tenant = "other"
	broken := append(good[:2:2], event.Event{Run: id, Seq: 2, Type: event.LogAppended, Time: e.now, Causation: -1, Payload: []byte("{")})
	for name, events := range map[string][]event.Event{"a gap": gap, "another run's": foreign, "no JSON": broken} {
		if e.s.Runs().Stage(e.ctx, id, e.now, events) == nil {
			e.Errorf("%s was staged", name)
		}
	}
	l := &log{e: e, row: e.newRow(id)}
	l.row.Seq = 4
	step := l.next(notes(1)...)
	step.Create = true
	if err := l.write(step); err == nil || !strings.Contains(err.Error(), "begins at") {
		e.Errorf("a log without its beginning: %v", err)
	}
}

// unstaging: only what is old goes, in bounded parts, and whole in the end.
func unstaging(e *env) {
	old, fresh := e.id("acme"), e.id("acme")
	e.stagedLog(old, 60, 10)
	cut := e.tick()
	e.tick()
	events := e.stagedLog(fresh, 5, 5)
	rounds := 0
	for ; rounds < 100; rounds++ {
		n, err := e.s.Runs().Unstage(e.ctx, cut, 2)
		e.ok(err)
		if n == 0 {
			break
		}
	}
	if rounds == 0 || rounds == 100 {
		e.Fatalf("an abandoned log was removed in %d rounds", rounds)
	}
	l := &log{e: e, row: e.newRow(old)}
	l.row.Seq = 59
	step := l.next(notes(1)...)
	step.Create, step.Staged = true, true
	e.fails(l.write(step), store.ErrStale)

	l = &log{e: e, row: e.newRow(fresh), events: events}
	l.row.Seq = 4
	step = l.next(notes(1)...)
	step.Create, step.Staged = true, true
	e.ok(l.write(step))
	l.check()
	e.create(old).check() // its id is free
}
