package engine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/builtin"
	"github.com/fermata-run/fermata/internal/clock"
	"github.com/fermata-run/fermata/internal/effect"
	"github.com/fermata-run/fermata/internal/egress"
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/node"
)

// hang is how long anything may take before a test calls it stuck. It guards
// against hanging; nothing is measured by it.
const hang = 60 * time.Second

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// lab is a store on disk with engines on it.
type lab struct {
	t     testing.TB
	dir   string
	types map[string]*node.Type
	db    *faulty
	clock clock.Clock
	limit run.Limits
	seams *effect.Registry
	hints bool    // of a shared lab: engines hear of each other
	e     *Engine // the one that started last
}

func (l *lab) Type(id string) (*node.Type, bool) { t, ok := l.types[id]; return t, ok }

func newLab(t testing.TB, types ...node.Type) *lab {
	t.Helper()
	l := &lab{t: t, dir: t.TempDir(), types: map[string]*node.Type{}, clock: clock.System{}, limit: run.DefaultLimits()}
	guard := egress.New(egress.Options{})
	t.Cleanup(guard.Close)
	for _, n := range append(builtin.All(builtin.Deps{Egress: guard}), types...) {
		l.types[n.ID] = &n
	}
	l.open()
	t.Cleanup(func() { l.db.Close() })
	return l
}

func (l *lab) open() {
	l.t.Helper()
	db, err := openStore(l.t, l.dir)
	if err != nil {
		l.t.Fatal(err)
	}
	l.db = &faulty{Store: db}
}

// engine starts another engine on the store, which makes the ones before it lost.
func (l *lab) engine(change ...func(*Config)) *Engine {
	l.t.Helper()
	cfg := Config{Store: l.db, Catalog: l, Clock: l.clock, Limits: l.limit, Seams: l.seams, ReconcileEvery: 20 * time.Millisecond}
	for _, c := range change {
		c(&cfg)
	}
	e := New(cfg)
	if l.e != nil && l.e.instance.Load() != nil && onPostgres() {
		// Where instances share a database, only a clean leave can be had at once.
		if err := l.db.Store.Ownership().Deregister(l.t.Context(), l.e.Instance()); err != nil && !errors.Is(err, store.ErrClosed) {
			l.t.Fatal(err)
		}
	}
	if err := e.Start(l.t.Context()); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { l.halt(e) })
	l.e = e
	return e
}

// halt ends an engine without letting its calls come to an end.
func (l *lab) halt(e *Engine) {
	l.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	done := make(chan error, 1)
	go func() { done <- e.Stop(ctx) }()
	if err := await(l.t, "the engine to stop", done); err != nil && !errors.Is(err, store.ErrClosed) {
		l.t.Error(err)
	}
}

// restart ends the engine and the store and opens both again.
func (l *lab) restart(change ...func(*Config)) *Engine {
	l.t.Helper()
	l.halt(l.e)
	if err := l.db.Close(); err != nil {
		l.t.Fatal(err)
	}
	l.open()
	return l.engine(change...)
}

func await[T any](t testing.TB, what string, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(hang):
		t.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}

// eventually waits until a condition holds that nothing announces.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(hang); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// register puts a definition of nodes and edges into the catalog of workflows.
func (l *lab) register(id string, nodes, edges []any, extra ...map[string]any) *flow.Workflow {
	l.t.Helper()
	if edges == nil {
		edges = []any{}
	}
	d := map[string]any{
		"id": id, "name": id, "version": "1", "nodes": nodes, "edges": edges, "triggers": []any{},
		"variables": []any{}, "metadata": map[string]any{}, "settings": map[string]any{},
	}
	for _, x := range extra {
		for k, v := range x {
			d[k] = v
		}
	}
	b, err := json.Marshal(d)
	if err != nil {
		l.t.Fatal(err)
	}
	w, err := flow.Load(b, l)
	if err != nil {
		l.t.Fatal(err)
	}
	row := store.Workflow{Tenant: "acme", ID: id, Version: "1", Digest: w.Digest, Definition: b, CreatedAt: noon}
	if _, err := l.db.Workflows().Put(l.t.Context(), row); err != nil {
		l.t.Fatal(err)
	}
	return w
}

func step(id, typeID string, config map[string]any, extra ...map[string]any) map[string]any {
	if config == nil {
		config = map[string]any{}
	}
	n := map[string]any{
		"id": id, "typeId": typeID, "name": id, "position": map[string]any{"x": 0, "y": 0},
		"config": config, "inputs": map[string]any{},
	}
	for _, x := range extra {
		for k, v := range x {
			n[k] = v
		}
	}
	return n
}

func edge(from, to string) map[string]any {
	return map[string]any{"id": from + "-" + to, "sourceNodeId": from, "targetNodeId": to}
}

var owner = event.Owner{Tenant: "acme", Subject: event.Subject{Issuer: "test", SubjectID: "me"}}

func start() run.Start { return run.Start{Owner: owner, Transport: "rest"} }

func (l *lab) create(w *flow.Workflow) ids.Run {
	l.t.Helper()
	id := l.e.NewID("acme")
	if _, err := l.e.Create(l.t.Context(), id, w, start()); err != nil {
		l.t.Fatal(err)
	}
	return id
}

func (l *lab) row(id ids.Run) store.Run {
	l.t.Helper()
	r, err := l.db.Store.Runs().Get(context.Background(), id)
	if err != nil {
		l.t.Fatal(err)
	}
	return r
}

func (l *lab) log(id ids.Run) []event.Event {
	l.t.Helper()
	_, events, err := l.db.Store.Runs().Events(context.Background(), id, -1, 1<<20, 1<<30)
	if err != nil {
		l.t.Fatal(err)
	}
	return events
}

func (l *lab) kinds(id ids.Run) (out []event.Type) {
	for _, e := range l.log(id) {
		out = append(out, e.Type)
	}
	return out
}

// until waits until a run is in one of the given statuses.
func (l *lab) until(id ids.Run, status ...string) store.Run {
	l.t.Helper()
	var r store.Run
	for end := time.Now().Add(hang); ; time.Sleep(time.Millisecond) {
		if r = l.row(id); slices.Contains(status, r.Status) {
			return r
		}
		if time.Now().After(end) || run.Terminal(r.Status) {
			kinds := l.kinds(id)
			l.t.Fatalf("run %s is %s, want %v: %v of %d, %s", id, r.Status, status, kinds[max(0, len(kinds)-50):], len(kinds), r.Error)
		}
	}
}

func (l *lab) do(id ids.Run, c run.Command) Outcome {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	return l.e.Do(ctx, id, c)
}

func (l *lab) must(id ids.Run, c run.Command) Outcome {
	l.t.Helper()
	o := l.do(id, c)
	if o.Err != nil {
		l.t.Fatalf("%T: %v", c, o.Err)
	}
	return o
}

func accept(nodeID string) run.Resolve {
	return run.Resolve{NodeID: nodeID, Value: []byte(`{"action":"accept"}`), Subject: owner.Subject}
}

func refused(t testing.TB, err error, code problem.Code) {
	t.Helper()
	if !problem.Is(err, code) {
		t.Fatalf("refused with %v, want %s", err, code)
	}
}

func send(t testing.TB, what string, ch chan<- struct{}) {
	t.Helper()
	select {
	case ch <- struct{}{}:
	case <-time.After(hang):
		t.Fatalf("waited in vain for %s", what)
	}
}
