package engine

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/node"
)

func TestCancelledRunExecutesNothingFurther(t *testing.T) {
	p := newProbe(t, "test.work")
	p.deaf = true // it comes to its end although nobody wants it any more
	q := newProbe(t, "test.next")
	q.free()
	l := newLab(t, p.typ(), q.typ())
	e := l.engine()
	w := l.register("two", []any{step("a", p.id, nil), step("b", q.id, nil)}, []any{edge("a", "b")})
	id := l.create(w)
	await(t, "the call", p.entered)
	l.must(id, run.Cancel{Reason: "enough"})
	l.until(id, run.Cancelled)
	end := l.row(id).Seq
	p.free()
	await(t, "the call to come to its end", e.calls.nothing())
	// Whatever the call left behind has been dealt with once this is answered.
	if o := l.do(id, run.Pause{}); o.Err == nil {
		t.Error("a run that has ended was paused")
	}
	if r := l.row(id); r.Seq != end {
		t.Errorf("the log went on from %d to %d: %v", end, r.Seq, l.kinds(id))
	}
	if q.total() != 0 {
		t.Error("a cancelled run went on executing")
	}
	l.sound(id)
}

func TestResultOfACancelledCallIsDropped(t *testing.T) {
	p := newProbe(t, "test.work")
	l := newLab(t, p.typ())
	l.engine()
	w := l.register("two", []any{step("a", p.id, nil), step("b", p.id, nil)}, []any{edge("a", "b")})
	// The outcome of the call and the request to cancel meet in the mailbox.
	for range size(30, 1000) {
		id := l.create(w)
		in := await(t, "the call", p.entered)
		var wait sync.WaitGroup
		wait.Go(func() {
			l.e.actors.deliver(l.e, id, message{cmd: run.NodeResult{NodeID: in.NodeID, Visit: in.Visit, Attempt: in.Attempt},
				done: &callKey{in.NodeID, in.Visit, in.Attempt, 0}})
		})
		wait.Go(func() { l.e.Do(context.Background(), id, run.Cancel{}) })
		wait.Wait()
		l.until(id, run.Cancelled)
		kinds := l.kinds(id)
		if kinds[len(kinds)-1] != event.RunCancelled {
			t.Fatalf("the log ends with %v", kinds)
		}
		l.sound(id)
		for len(p.entered) > 0 {
			<-p.entered
		}
	}
	await(t, "every call to be cut off", l.e.calls.nothing())
	eventually(t, "no run is held in memory", func() bool { return l.e.actors.size() == 0 })
}

// family registers a parent that starts n children, which each make a call.
func family(l *lab, p *probe, n int) func() (parent store.Run, children []store.Run) {
	l.register("child", []any{step("c", p.id, nil)}, nil)
	nodes := []any{}
	for i := range n {
		nodes = append(nodes, step("s"+string(rune('a'+i)), "core.subWorkflow", map[string]any{"workflowId": "child"}))
	}
	id := l.create(l.register("parent", nodes, nil))
	return func() (store.Run, []store.Run) {
		rows, err := l.db.Store.Runs().Children(context.Background(), id)
		if err != nil {
			l.t.Fatal(err)
		}
		return l.row(id), rows
	}
}

func TestChildrenFollowTheirParentsCancel(t *testing.T) {
	p := newProbe(t, "test.work")
	l := newLab(t, p.typ())
	e := l.engine()
	rows := family(l, p, 3)
	for range 3 {
		await(t, "a child's call", p.entered)
	}
	parent, _ := rows()
	l.must(parent.ID, run.Cancel{})
	l.until(parent.ID, run.Cancelled)
	parent, children := rows()
	if len(children) != 3 {
		t.Fatalf("%d children", len(children))
	}
	for _, c := range children {
		if c.Status != run.Cancelled {
			t.Errorf("child %s is %s although its parent is %s", c.ID, c.Status, parent.Status)
		}
		l.sound(c.ID)
	}
	await(t, "every call to be cut off", e.calls.nothing())
	l.sound(parent.ID)
}

func TestChildrenStartedWithTheCancelFollowIt(t *testing.T) {
	p, q := newProbe(t, "test.first"), newProbe(t, "test.work")
	l := newLab(t, p.typ(), q.typ())
	e := l.engine()
	l.register("child", []any{step("c", q.id, nil)}, nil)
	w := l.register("parent", []any{step("a", p.id, nil)}, nil)
	begin := message{done: &callKey{"a", 1, 0, 0}, cmd: run.NodeResult{
		NodeID: "a", Visit: 1, Result: node.Await(nil, node.Child{WorkflowID: "child"}, node.Child{WorkflowID: "child"}),
	}}
	for i := range size(30, 500) {
		id, calls := l.create(w), q.total()
		await(t, "the first call", p.entered)
		if i%2 == 0 {
			// Both in one mail: the outcome that starts the children, then the cancel.
			l.together(id, begin, message{cmd: run.Cancel{}})
		} else {
			// The cancel arrives while the children are being written.
			l.db.hold(func() {
				l.e.actors.deliver(l.e, id, begin)
				go l.e.Do(context.Background(), id, run.Cancel{})
			})
		}
		l.until(id, run.Cancelled)
		rows, err := l.db.Store.Runs().Children(context.Background(), id)
		if err != nil || i%2 == 0 && len(rows) != 2 {
			t.Fatalf("%d children: %v", len(rows), err)
		}
		for _, c := range rows {
			if c.Status != run.Cancelled {
				t.Fatalf("child is %s although its parent is cancelled", c.Status)
			}
			l.sound(c.ID)
		}
		l.sound(id)
		await(t, "every call to be cut off", e.calls.nothing())
		if i%2 == 0 && q.total() != calls {
			t.Fatal("a child that was called off with its start executed something")
		}
	}
}

func TestCancelOfAParentSurvivesACrash(t *testing.T) {
	p := newProbe(t, "test.work")
	l := newLab(t, p.typ())
	l.engine()
	rows := family(l, p, 2)
	await(t, "a child's call", p.entered)
	await(t, "the other child's call", p.entered)
	parent, children := rows()
	// The store takes the parent's step and nothing after it, as if the process
	// had died right then.
	l.db.failing(func(a *store.Append) fault {
		if a.Row.ID == parent.ID {
			return fault{}
		}
		return fault{before: errDisk}
	})
	l.must(parent.ID, run.Cancel{})
	if r := l.row(parent.ID); r.Status != run.Cancelling {
		t.Fatalf("the parent is %s", r.Status)
	}
	l.db.failing(nil)
	l.restart()
	l.until(parent.ID, run.Cancelled)
	for _, c := range children {
		if s := l.sound(c.ID).Status(); s != run.Cancelled {
			t.Errorf("child is %s", s)
		}
	}
	if !slices.Contains(l.kinds(parent.ID), event.RunCancelled) {
		t.Error("no run.cancelled")
	}
}
