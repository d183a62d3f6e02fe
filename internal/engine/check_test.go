package engine

import (
	"context"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
)

// sound checks what holds of every log: contiguous sequences, causes that lie
// before their effects, at most one end and nothing behind it, a row that agrees
// with the fold.
func (l *lab) sound(id ids.Run) *run.State {
	l.t.Helper()
	row, ends := l.row(id), 0
	events := l.log(id)
	for i, e := range events {
		if e.Seq != int64(i) {
			l.t.Fatalf("event %d of %s has sequence %d", i, id, e.Seq)
		}
		if e.Type.Terminal() {
			ends++
			if i != len(events)-1 {
				l.t.Errorf("%s is followed by %s", e.Type, events[i+1].Type)
			}
		}
		if e.Causation >= e.Seq {
			l.t.Errorf("event %d is caused by event %d", e.Seq, e.Causation)
		}
	}
	s, err := l.e.Read(context.Background(), id)
	if err != nil {
		l.t.Fatal(err)
	}
	if s.Seq != row.Seq || s.Status() != row.Status || ends > 1 || run.Terminal(row.Status) != (ends == 1) {
		l.t.Errorf("run %s: row %s at %d, fold %s at %d, %d ends", id, row.Status, row.Seq, s.Status(), s.Seq, ends)
	}
	return s
}

// orphan writes a run that an instance nobody knows of executes.
func (l *lab) orphan(workflow string) ids.Run {
	l.t.Helper()
	ctx := context.Background()
	wf, err := l.e.defs.Get(ctx, "acme", workflow, "")
	if err != nil {
		l.t.Fatal(err)
	}
	tn := newTurn(l.e, run.New(l.e.NewID("acme"), wf), store.Run{})
	if err := tn.begin(start()); err != nil {
		l.t.Fatal(err)
	}
	ap := tn.append()
	ap.Create, ap.Row.Instance = true, "i-gone"
	if err := l.db.Store.Runs().Append(ctx, ap); err != nil {
		l.t.Fatal(err)
	}
	return ap.Row.ID
}

// together has messages meet in one mail of a run that has an actor.
func (l *lab) together(id ids.Run, mail ...message) {
	l.t.Helper()
	sh := l.e.actors.shard(id)
	sh.Lock()
	defer sh.Unlock()
	a := sh.m[id]
	if a == nil {
		l.t.Fatalf("run %s has no actor", id)
	}
	a.inbox = append(a.inbox, mail...)
	if !a.running {
		a.running = true
		l.e.actors.busy.add()
		go a.loop()
	}
}
