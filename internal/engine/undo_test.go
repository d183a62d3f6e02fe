package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/node"
)

// undoer is a node type that undoes, and remembers who asked it for what.
type undoer struct {
	mu    sync.Mutex
	calls []string            // by order of their coming: "node key"
	keys  map[string][]string // by node, without repetitions
}

func (u *undoer) typ() node.Type {
	return node.Type{ID: "test.undo", Run: func(_ context.Context, in *node.Input) (node.Result, error) {
		u.mu.Lock()
		defer u.mu.Unlock()
		name := fmt.Sprintf("%s/%d", in.NodeID, in.Visit)
		u.calls = append(u.calls, name)
		if u.keys == nil {
			u.keys = map[string][]string{}
		}
		if !slices.Contains(u.keys[name], in.EffectKey) {
			u.keys[name] = append(u.keys[name], in.EffectKey)
		}
		return node.Done(nil), nil
	}}
}

// first lists who was undone, each once, in the order of the first calls.
func (u *undoer) first() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	var out []string
	for _, c := range u.calls {
		if !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	return out
}

// oneKeyEach checks that everything undone was asked for by one name only, and
// everything by another one.
func (u *undoer) oneKeyEach(t testing.TB) {
	t.Helper()
	u.mu.Lock()
	defer u.mu.Unlock()
	seen := map[string]string{}
	for name, keys := range u.keys {
		if len(keys) != 1 {
			t.Errorf("%s was undone under %d names", name, len(keys))
		}
		for _, k := range keys {
			if seen[k] != "" {
				t.Errorf("%s and %s were undone under one name", name, seen[k])
			}
			seen[k] = name
		}
	}
}

// undoable registers three effects and a failure. What undoes is of a type.
func undoable(l *lab, by string, policy map[string]any) *flow.Workflow {
	nodes, edges := []any{}, []any{}
	for i, id := range []string{"a", "b", "c"} {
		nodes = append(nodes, step(id, "core.identity", nil, map[string]any{"compensation": map[string]any{"nodeTypeId": by}}))
		if i > 0 {
			edges = append(edges, edge([]string{"a", "b", "c"}[i-1], id))
		}
	}
	nodes = append(nodes, step("last", "core.fail", nil))
	edges = append(edges, edge("c", "last"))
	if policy["triggers"] == nil {
		policy["triggers"] = []string{flow.OnNodeFailure}
	}
	return l.register("undo", nodes, edges, map[string]any{"settings": map[string]any{"compensation": policy}})
}

func (l *lab) untilUndone(id ids.Run, status ...string) store.Run {
	l.t.Helper()
	var r store.Run
	eventually(l.t, fmt.Sprintf("the undoing of %s is %v", id, status), func() bool {
		r = l.row(id)
		return slices.Contains(status, r.Compensation)
	})
	return r
}

func TestFailedRunIsUndone(t *testing.T) {
	u := &undoer{}
	l := newLab(t, u.typ())
	l.engine()
	id := l.create(undoable(l, "test.undo", map[string]any{}))
	row := l.untilUndone(id, run.UndoCompleted)
	if row.Status != run.Failed || row.Instance != "" || !row.WakeAt.IsZero() {
		t.Errorf("%+v", row)
	}
	if got, want := u.first(), []string{"c/1", "b/1", "a/1"}; !slices.Equal(got, want) || len(u.calls) != 3 {
		t.Errorf("undone: %v, want %v, each once", u.calls, want)
	}
	u.oneKeyEach(t)
	l.soundTail(id)
}

// The process dies at every write there is, before it and behind it. Whatever was
// undone has been undone under one name, in order, and in the end all of it is.
func TestUndoingSurvivesACrashAtEachWrite(t *testing.T) {
	for _, written := range []bool{false, true} {
		for n, died := 0, true; died; n++ {
			u := &undoer{}
			l := newLab(t, u.typ())
			l.engine()
			wf := undoable(l, "test.undo", map[string]any{})
			died = false
			dead := make(chan struct{})
			var mu sync.Mutex
			count := 0
			l.db.failing(func(a *store.Append) fault {
				mu.Lock()
				defer mu.Unlock()
				if a.Create { // its creator is told
					return fault{}
				}
				if count++; count <= n {
					return fault{}
				}
				if died {
					return fault{before: errDisk} // a dead process writes nothing
				}
				died = true
				close(dead)
				if written {
					return fault{after: errDisk}
				}
				return fault{before: errDisk}
			})
			id := l.create(wf)
			eventually(t, "the run has been undone or the process has died", func() bool {
				select {
				case <-dead:
					return true
				default:
					return l.row(id).Compensation == run.UndoCompleted
				}
			})
			mu.Lock()
			crashed := died
			mu.Unlock()
			if crashed {
				l.restart() // on a store that works
			}
			l.untilUndone(id, run.UndoCompleted)
			if got, want := u.first(), []string{"c/1", "b/1", "a/1"}; !slices.Equal(got, want) {
				t.Fatalf("crash at write %d: undone %v, want %v", n, got, want)
			}
			u.oneKeyEach(t)
			l.soundTail(id)
			died = crashed
			if n > 50 {
				t.Fatal("it never ends")
			}
		}
	}
}

// Two hosts on one store: the one that has lost the run learns of it when it writes,
// and nothing of what it has done counts; what was under way is asked for again
// under the same name, and nothing is undone twice beside that.
func TestTwoOwnersUndoOnce(t *testing.T) {
	p := newProbe(t, "test.undo")
	l := newLab(t, p.typ())
	stale := l.engine(func(c *Config) { c.ReconcileEvery = time.Hour; c.LeaseTTL = time.Hour })
	id := l.create(undoable(l, p.id, map[string]any{}))
	mine := await(t, "the call by the first owner", p.entered)
	before := l.row(id)
	l.engine()
	theirs := await(t, "the call by the second owner", p.entered)
	if mine.EffectKey != theirs.EffectKey || theirs.Attempt != 2 || mine.NodeID != "c" {
		t.Fatalf("%s attempt %d as %s, then %s attempt %d as %s", mine.NodeID, mine.Attempt, mine.EffectKey, theirs.NodeID, theirs.Attempt, theirs.EffectKey)
	}
	after := l.row(id)
	if after.Epoch <= before.Epoch || after.Instance != l.e.Instance() {
		t.Fatalf("the undoing did not change hands: %+v", after)
	}
	// The first owner's result comes first, and is refused by the store.
	stale.actors.deliver(stale, id, message{
		cmd:  run.NodeResult{NodeID: "c", Visit: 1, Attempt: 1, Inverse: 1, Result: node.Done(nil)},
		done: &callKey{"c", 1, 1, 1},
	})
	if o := stale.Do(context.Background(), id, run.Operate{Action: run.UndoTerminate, By: "me"}); o.Err == nil {
		t.Error("an owner that has lost the run has given its undoing up")
	}
	if r := l.row(id); r.Seq != after.Seq {
		t.Errorf("an owner that has lost the run moved it from %d to %d", after.Seq, r.Seq)
	}
	p.free()
	l.untilUndone(id, run.UndoCompleted)
	l.soundTail(id)
	for name, want := range map[string]int{"c": 2, "b": 1, "a": 1} {
		if got := p.count(name); got != want {
			t.Errorf("%s was undone %d times, want %d", name, got, want)
		}
	}
	if p.atOnce() > 2 {
		t.Errorf("%d calls at once", p.atOnce())
	}
}

// An action waits for its next attempt without anybody holding the run; a restart
// does not lose the timer.
func TestUndoingIsTriedAgainAfterARestart(t *testing.T) {
	var mu sync.Mutex
	fails, calls := true, 0
	flaky := node.Type{ID: "test.undo", Run: func(context.Context, *node.Input) (node.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		calls++
		if fails {
			return node.Result{}, node.Retry("upstream_unavailable", "busy")
		}
		return node.Done(nil), nil
	}}
	l := newLab(t, flaky)
	l.engine()
	id := l.create(undoable(l, "test.undo", map[string]any{"retry": map[string]any{"maxAttempts": 100, "backoffMs": 30}}))
	eventually(t, "the action waits", func() bool { r := l.row(id); return r.Instance == "" && !r.WakeAt.IsZero() })
	l.restart()
	eventually(t, "it is tried again", func() bool { mu.Lock(); defer mu.Unlock(); return calls > 2 })
	mu.Lock()
	fails = false
	mu.Unlock()
	l.untilUndone(id, run.UndoCompleted)
	l.soundTail(id)
}

// Types that were there when the plan was made may be gone.
func TestUndoingByATypeThatIsGone(t *testing.T) {
	p := newProbe(t, "test.undo")
	l := newLab(t, p.typ())
	l.engine()
	id := l.create(undoable(l, p.id, map[string]any{"exhaustedDisposition": "manual-intervention"}))
	await(t, "the call", p.entered)
	l.restart(func(c *Config) { c.Catalog = &losing{lab: l, id: "test.undo"} })
	row := l.untilUndone(id, run.UndoManual)
	if row.Status != run.Failed || row.Instance != "" {
		t.Errorf("%+v", row)
	}
	l.must(id, run.Operate{Action: run.UndoSubstitute, TypeID: "core.noop", By: "me"})
	l.untilUndone(id, run.UndoManual) // the next one is of the same type
}

// losing is a catalog that loses a type once the definition has been compiled, which
// asks for it once for each of three nodes.
type losing struct {
	*lab
	id    string
	asked atomic.Int64
}

func (c *losing) Type(id string) (*node.Type, bool) {
	if id == c.id && c.asked.Add(1) > 3 {
		return nil, false
	}
	return c.lab.Type(id)
}

// A child that ends while its parent is being cut off undoes itself, by its own
// policy; the parent undoes its own effects beside that.
func TestChildrenUndoThemselves(t *testing.T) {
	u := &undoer{}
	p := newProbe(t, "test.work")
	l := newLab(t, u.typ(), p.typ())
	l.engine()
	undo := map[string]any{"compensation": map[string]any{"nodeTypeId": "test.undo"}}
	policy := map[string]any{"settings": map[string]any{"compensation": map[string]any{"triggers": []string{flow.OnRunCancel}}}}
	l.register("child", []any{step("own", "core.identity", nil, undo), step("wait", p.id, nil)}, []any{edge("own", "wait")}, policy)
	w := l.register("parent", []any{step("first", "core.identity", nil, undo), step("sub", "core.subWorkflow", map[string]any{"workflowId": "child"})},
		[]any{edge("first", "sub")}, policy)
	id := l.create(w)
	await(t, "the child's call", p.entered)
	l.must(id, run.Cancel{})
	l.until(id, run.Cancelled)
	l.untilUndone(id, run.UndoCompleted)
	kids, err := l.db.Runs().Children(t.Context(), id)
	if err != nil || len(kids) != 1 {
		t.Fatalf("%d children: %v", len(kids), err)
	}
	l.untilUndone(kids[0].ID, run.UndoCompleted)
	got := u.first()
	slices.Sort(got)
	if !slices.Equal(got, []string{"first/1", "own/1"}) || len(u.calls) != 2 {
		t.Errorf("undone: %v", u.calls)
	}
	l.soundTail(id)
	l.soundTail(kids[0].ID)
}

// An operator's word and the end of an action meet.
func TestTerminateMeetsTheResult(t *testing.T) {
	for range size(20, 500) {
		p := newProbe(t, "test.undo")
		l := newLab(t, p.typ())
		l.engine()
		id := l.create(undoable(l, p.id, map[string]any{}))
		await(t, "the call", p.entered)
		var wait sync.WaitGroup
		wait.Go(p.free)
		wait.Go(func() { l.do(id, run.Operate{Action: run.UndoTerminate, By: "me"}) })
		wait.Wait()
		row := l.untilUndone(id, run.UndoCompleted, run.UndoPartial, run.UndoFailed)
		l.soundTail(id)
		if row.Instance != "" {
			t.Fatalf("somebody still holds it: %+v", row)
		}
		l.halt(l.e)
	}
}

// soundTail checks the log of a run that has ended and been undone: one end, then
// nothing but its undoing, and a state that is the fold of it.
func (l *lab) soundTail(id ids.Run) {
	l.t.Helper()
	ended := false
	begun := map[string]bool{}
	for _, e := range l.log(id) {
		switch {
		case e.Type.Terminal() && ended:
			l.t.Errorf("a second end: %s", e.Doc())
		case e.Type.Terminal():
			ended = true
		case !ended:
		case e.Type == event.LogAppended || e.Type == event.AuthorizationDecided || e.Type == event.CompensationRequested ||
			e.Type == event.CompensationStarted || e.Type == event.CompensationCompleted || e.Type == event.CompensationFailed ||
			e.Type == event.CompensationManual:
		default:
			l.t.Errorf("%s behind the end", e.Type)
		}
		if e.Type != event.LogAppended {
			continue
		}
		p, err := event.Read[event.Log](e.Truth())
		if err != nil {
			l.t.Fatal(err)
		}
		if p.X == nil || p.X.Inverse == nil {
			continue
		}
		m := p.X.Inverse
		key := fmt.Sprintf("%s/%d", e.NodeID, m.Attempt)
		switch m.Step {
		case event.InverseBegun:
			if begun[key] {
				l.t.Errorf("attempt %s was begun twice", key)
			}
			begun[key] = true
		case event.InverseDone:
			if !begun[key] {
				l.t.Errorf("attempt %s was done and never begun", key)
			}
		}
	}
	if !ended {
		l.t.Error("the run has not ended")
	}
	s, err := l.e.Read(context.Background(), id)
	if err != nil {
		l.t.Fatal(err)
	}
	if got, want := l.row(id), s.CompensationStatus(); got.Compensation != want && !(want == run.UndoNone && got.Compensation == "") {
		l.t.Errorf("the row says %q, the log %q", got.Compensation, want)
	}
}
