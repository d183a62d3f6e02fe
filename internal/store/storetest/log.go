package storetest

import (
	"bytes"
	"fmt"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// log is one run as its only writer sees it: what the store must give back.
type log struct {
	e      *env
	row    store.Run
	events []event.Event
}

// newRow is the row of a fresh run.
func (e *env) newRow(id ids.Run) store.Run {
	return store.Run{
		ID: id, WorkflowID: "greet", WorkflowVersion: "1", Status: "running", Seq: -1,
		CreatedAt: e.now, StartedAt: e.now, CurrentNode: "first",
		Owner: []byte(`{"tenant":"` + id.Tenant + `"}`),
	}
}

// create makes a run with one event. change alters the step before it is
// written.
func (e *env) create(id ids.Run, change ...func(a *store.Append)) *log {
	e.Helper()
	l := &log{e: e, row: e.newRow(id)}
	a := l.next(event.Draft{Type: event.RunStarted, Causation: -1, Payload: jsontext.Value(`{"workflowId":"greet"}`)})
	a.Create = true
	for _, f := range change {
		f(a)
	}
	e.ok(l.write(a))
	return l
}

// note is an event that says something.
func note(text string) event.Draft {
	quoted, _ := jsontext.AppendQuote(nil, text)
	return raw(`{"level":"info","message":` + string(quoted) + `}`)
}

// raw is an event with the given payload.
func raw(payload string) event.Draft {
	return event.Draft{Type: event.LogAppended, NodeID: "first", Causation: -1, Payload: jsontext.Value(payload)}
}

// notes is n events that can be told apart.
func notes(n int) []event.Draft {
	out := make([]event.Draft, n)
	for i := range out {
		out[i] = note(fmt.Sprintf("note %d", i))
	}
	return out
}

// next prepares a step at the log's end. Nothing is written yet.
func (l *log) next(drafts ...event.Draft) *store.Append {
	a := &store.Append{Epoch: l.row.Epoch, ExpectedSeq: l.row.Seq, Row: l.row}
	for _, d := range drafts {
		a.Row.Seq++
		a.Events = append(a.Events, event.Event{
			Run: l.row.ID, Seq: a.Row.Seq, Type: d.Type, NodeID: d.NodeID, Time: l.e.now,
			Causation: d.Causation, Payload: d.Payload, Sealed: d.Sealed,
		})
	}
	return a
}

// write appends a step and, if that works, takes it over.
func (l *log) write(a *store.Append) error {
	err := l.e.s.Runs().Append(l.e.ctx, a)
	if err == nil {
		l.took(a)
	}
	return err
}

// took takes over a step that was written.
func (l *log) took(a *store.Append) {
	l.row = a.Row
	l.events = append(l.events, a.Events...)
}

// grow appends drafts as one step, which must work.
func (l *log) grow(drafts ...event.Draft) {
	l.e.Helper()
	l.e.ok(l.write(l.next(drafts...)))
}

// check compares the log with what every way of reading it gives back.
func (l *log) check() {
	e := l.e
	e.Helper()
	e.sameRun(e.get(l.row.ID), l.row)
	run, events := e.read(l.row.ID, -1, 0, 0)
	e.sameRun(run, l.row)
	e.sameEvents(events, l.events)
	loaded, err := e.s.Runs().Load(e.ctx, l.row.ID)
	e.ok(err)
	e.sameRun(loaded.Run, l.row)
	tail := l.events
	if loaded.Checkpoint != nil {
		tail = tail[loaded.Checkpoint.Seq+1:]
	}
	e.sameEvents(loaded.Tail, tail)
}

func (e *env) get(id ids.Run) store.Run {
	e.Helper()
	r, err := e.s.Runs().Get(e.ctx, id)
	e.ok(err)
	return r
}

func (e *env) read(id ids.Run, after int64, limit, maxBytes int) (store.Run, []event.Event) {
	e.Helper()
	// Not positive means no bound; a number keeps backends from having to agree.
	if limit == 0 {
		limit = 1 << 20
	}
	if maxBytes == 0 {
		maxBytes = 1 << 30
	}
	r, events, err := e.s.Runs().Events(e.ctx, id, after, limit, maxBytes)
	e.ok(err)
	return r, events
}

func (e *env) sameRun(got, want store.Run) {
	e.Helper()
	if d := cmp.Diff(want, got); d != "" {
		e.Fatalf("row differs (-want +got):\n%s", d)
	}
}

func (e *env) sameEvents(got, want []event.Event) {
	e.Helper()
	if len(got) != len(want) {
		e.Fatalf("%d events, want %d", len(got), len(want))
	}
	for i := range want {
		if err := sameEvent(&got[i], &want[i]); err != nil {
			e.Fatalf("event %d of %d: %v", i, len(want), err)
		}
	}
}

func sameEvent(g, w *event.Event) error {
	switch {
	case g.Run != w.Run, g.Seq != w.Seq, g.Type != w.Type, g.NodeID != w.NodeID,
		g.Causation != w.Causation, !g.Time.Equal(w.Time):
		return fmt.Errorf("envelope is %v %d %q %q %d %v, want %v %d %q %q %d %v",
			g.Run, g.Seq, g.Type, g.NodeID, g.Causation, g.Time,
			w.Run, w.Seq, w.Type, w.NodeID, w.Causation, w.Time)
	case !bytes.Equal(g.Doc(), w.Doc()):
		return fmt.Errorf("document is %.300q, want %.300q", g.Doc(), w.Doc())
	case !bytes.Equal(g.Payload, w.Payload):
		return fmt.Errorf("payload is %.300q, want %.300q", g.Payload, w.Payload)
	case !bytes.Equal(g.Sealed, w.Sealed) || (g.Sealed == nil) != (w.Sealed == nil):
		return fmt.Errorf("sealed payload is %.300q, want %.300q", g.Sealed, w.Sealed)
	}
	return nil
}

// runIDs is the ids of rows, in their order.
func runIDs(rows []store.Run) []ids.Run {
	out := make([]ids.Run, len(rows))
	for i, r := range rows {
		out[i] = r.ID
	}
	return out
}

// same compares anything that go-cmp can.
func same[T any](e *env, what string, got, want T) {
	e.Helper()
	if d := cmp.Diff(want, got); d != "" {
		e.Fatalf("%s differs (-want +got):\n%s", what, d)
	}
}
