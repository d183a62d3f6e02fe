package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/effect"
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/node"
)

func (l *lab) fork(source ids.Run, mode string, seq int64) ids.Run {
	l.t.Helper()
	id, row := l.e.NewID("acme"), l.row(source)
	if _, err := l.e.Fork(l.t.Context(), id, &row, run.Fork{Mode: mode, Seq: seq}); err != nil {
		l.t.Fatal(err)
	}
	return id
}

// essences is what a replay must say as its source did.
func (l *lab) essences(id ids.Run) (out []string) {
	for _, e := range l.log(id) {
		if run.Comparable(&e) {
			out = append(out, string(e.Essence()))
		}
	}
	return out
}

func (l *lab) sameLog(source, replay ids.Run) {
	l.t.Helper()
	a, b := l.essences(source), l.essences(replay)
	if !slices.Equal(a, b) {
		for i := range min(len(a), len(b)) {
			if a[i] != b[i] {
				l.t.Fatalf("event %d: the source says %.300q, the replay %.300q", i, a[i], b[i])
			}
		}
		l.t.Fatalf("the source says %d things, the replay %d", len(a), len(b))
	}
	if slices.Contains(l.kinds(replay), event.ReplayDiverged) {
		l.t.Fatal("the replay diverges")
	}
}

// counted is an impure type that says a long text and counts its calls.
func counted(n *atomic.Int64, size int) node.Type {
	return node.Type{ID: "test.counted", Run: func(_ context.Context, in *node.Input) (node.Result, error) {
		n.Add(1)
		return node.Done(node.Outputs{"text": strings.Repeat("x", size), "now": in.Now}), nil
	}}
}

func chainOf(l *lab, id string, n int, typ string) ids.Run {
	var nodes, edges []any
	for i := range n {
		name := fmt.Sprintf("n%d", i)
		kind := "core.noop"
		if i%10 == 0 {
			kind = typ
		}
		nodes = append(nodes, step(name, kind, nil))
		if i > 0 {
			edges = append(edges, edge(fmt.Sprintf("n%d", i-1), name))
		}
	}
	return l.create(l.register(id, nodes, edges))
}

// A long replay takes many steps. A process that dies in the middle leaves it to
// the next, which goes on where the log ends; nothing is executed, nothing said
// twice.
func TestReplaySurvivesCrashes(t *testing.T) {
	var n atomic.Int64
	l := newLab(t, counted(&n, 10))
	l.engine()
	src := chainOf(l, "long", 1100, "test.counted")
	l.until(src, run.Completed)
	calls := n.Load()
	var steps atomic.Int64
	dies := func(a *store.Append) fault {
		if a.Row.ForkMode != "" && !a.Create && steps.Add(1) > 1 {
			return fault{before: errDisk}
		}
		return fault{}
	}
	l.db.failing(dies)
	id := l.fork(src, run.ModeReplay, 0)
	for range 2 {
		eventually(t, "the replay is stuck in the middle", func() bool { return steps.Load() > 1 })
		if run.Terminal(l.row(id).Status) {
			t.Fatal("the replay was over before its process died")
		}
		steps.Store(0)
		l.halt(l.e)
		if err := l.db.Close(); err != nil {
			t.Fatal(err)
		}
		l.open()
		l.db.failing(dies)
		l.engine()
	}
	l.db.failing(nil)
	l.until(id, run.Completed)
	l.sameLog(src, id)
	l.sound(id)
	if n.Load() != calls {
		t.Errorf("a replay made %d calls", n.Load()-calls)
	}
	if r := l.row(id); !r.Replay() || r.ForkSource != src {
		t.Errorf("the row says %q of %s", r.ForkMode, r.ForkSource)
	}
}

// A replay whose source expires half-way ends: what it has not taken yet is missing.
func TestReplayOfASourceThatExpires(t *testing.T) {
	var n atomic.Int64
	l := newLab(t, counted(&n, 10))
	l.engine()
	src := chainOf(l, "long", 1100, "test.counted")
	l.until(src, run.Completed)
	calls := n.Load()
	var steps atomic.Int64
	l.db.failing(func(a *store.Append) fault {
		if a.Row.ForkMode != "" && !a.Create && steps.Add(1) > 1 {
			return fault{before: errDisk}
		}
		return fault{}
	})
	id := l.fork(src, run.ModeReplay, 0)
	eventually(t, "the replay is stuck in the middle", func() bool { return steps.Load() > 1 })
	gone, err := l.db.Store.Retention().Expire(t.Context(), l.row(src).CompletedAt, []store.Run{l.row(src)})
	if err != nil || len(gone) != 1 {
		t.Fatalf("%d runs have expired: %v", len(gone), err)
	}
	l.db.failing(nil)
	if row := l.until(id, run.Failed); !strings.Contains(string(row.Error), "replay_source_missing") {
		t.Errorf("it failed with %s", row.Error)
	}
	l.sound(id)
	if n.Load() != calls {
		t.Errorf("a replay made %d calls", n.Load()-calls)
	}
}

// A long inherited log is staged in parts. Until the fork is there nothing of it
// is to be seen, and a second try makes it whole.
func TestForkOfALongLog(t *testing.T) {
	var n atomic.Int64
	l := newLab(t, counted(&n, 300_000))
	l.engine()
	src := chainOf(l, "large", 110, "test.counted")
	l.until(src, run.Completed)
	last := l.row(src).Seq
	id, row := l.e.NewID("acme"), l.row(src)
	l.db.failing(func(a *store.Append) fault {
		if a.Create && a.Row.ID == id {
			return fault{before: errDisk}
		}
		return fault{}
	})
	if _, err := l.e.Fork(t.Context(), id, &row, run.Fork{Mode: run.ModeBranch, Seq: last}); err == nil {
		t.Fatal("a fork that could not be written was accepted")
	}
	if _, err := l.db.Store.Runs().Get(t.Context(), id); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("half a fork: %v", err)
	}
	l.restart()
	before := l.log(src)
	for _, mode := range []string{run.ModeBranch, run.ModeReplay} {
		if _, err := l.e.Fork(t.Context(), id, &row, run.Fork{Mode: mode, Seq: last}); err != nil {
			t.Fatal(err)
		}
		l.until(id, run.Completed)
		forked := l.log(id)
		for i := range before[:last] {
			if string(before[i].Payload) != string(forked[i].Payload) || before[i].Type != forked[i].Type || forked[i].Run != id {
				t.Fatalf("event %d differs", i)
			}
		}
		l.sound(id)
		l.sameLog(src, id)
		if loaded, err := l.db.Store.Runs().Load(t.Context(), id); err != nil || loaded.Checkpoint == nil || len(loaded.Tail) > 3 {
			t.Errorf("a fork of a long log is folded anew each time: %v", err)
		}
		id = l.e.NewID("acme")
	}
	if n.Load() != 11 {
		t.Errorf("%d calls", n.Load())
	}
}

// A run is forked while it executes: the branch makes its own calls under its own
// effect keys, and the source goes on undisturbed.
func TestBranchOfARunningRun(t *testing.T) {
	p := newProbe(t, "test.work")
	l := newLab(t, p.typ())
	l.engine()
	end := threeSteps(l, p)
	first := await(t, "the source's call", p.entered)
	src, err := ids.ParseRun(first.RunID)
	if err != nil {
		t.Fatal(err)
	}
	id := l.fork(src, run.ModeBranch, 1)
	second := await(t, "the branch's call", p.entered)
	if second.RunID != id.String() || second.NodeID != "a" || second.EffectKey == first.EffectKey {
		t.Fatalf("the branch calls %s of %s with %s", second.NodeID, second.RunID, second.EffectKey)
	}
	p.free()
	end()
	l.until(id, run.Completed)
	l.sound(id)
	if l.row(src).Seq != l.row(id).Seq {
		t.Errorf("the source has %d events, its branch %d", l.row(src).Seq, l.row(id).Seq)
	}
}

// A pure node of a replay runs with a context that passes no seam, and with the
// time at which the source called it.
func TestPureNodesOfAReplay(t *testing.T) {
	var forbidden, open atomic.Int64
	pure := node.Type{ID: "test.pure", Pure: true, Run: func(ctx context.Context, in *node.Input) (node.Result, error) {
		if effect.Forbidden(ctx) {
			forbidden.Add(1)
			var refused *node.Error
			if err := effect.Guard(ctx, "core.http.request"); !errors.As(err, &refused) || refused.Code != "replay_source_missing" {
				return node.Result{}, node.Fail(node.CodeInternal, "the seam lets a replay pass: %v", err)
			}
		} else {
			open.Add(1)
		}
		return node.Done(node.Outputs{"now": in.Now.UTC().Format(time.RFC3339Nano)}), nil
	}}
	l := newLab(t, pure)
	l.engine()
	src := l.create(l.register("timed", []any{step("a", "test.pure", nil), step("d", "core.delay", map[string]any{"delayMs": 2}), step("b", "test.pure", nil)},
		[]any{edge("a", "d"), edge("d", "b")}))
	l.until(src, run.Completed)
	id := l.fork(src, run.ModeReplay, 0)
	l.until(id, run.Completed)
	a, b := l.log(src), l.log(id)
	l.sameLog(src, id)
	if at := a[1].Time.Format(time.RFC3339Nano); !strings.Contains(string(a[2].Payload), at) || a[1].Time.Equal(b[1].Time) {
		t.Errorf("the call of %s says %s, that of %s the same", at, a[2].Payload, b[1].Time)
	}
	if forbidden.Load() != 2 || open.Load() != 2 {
		t.Errorf("%d calls in the replay, %d in the source", forbidden.Load(), open.Load())
	}
}

// What the source has no outcome for fails closed, and a fork that would inherit
// its source's end is refused.
func TestForkFailsClosed(t *testing.T) {
	p := newProbe(t, "test.work")
	l := newLab(t, p.typ())
	l.engine()
	threeSteps(l, p)
	in := await(t, "the call", p.entered)
	src, _ := ids.ParseRun(in.RunID)
	id := l.fork(src, run.ModeReplay, 0)
	if row := l.until(id, run.Failed); !strings.Contains(string(row.Error), "replay_source_missing") {
		t.Errorf("the replay failed with %s", row.Error)
	}
	l.must(src, run.Cancel{Reason: "enough"})
	l.until(src, run.Cancelled)
	row := l.row(src)
	_, err := l.e.Fork(t.Context(), l.e.NewID("acme"), &row, run.Fork{Mode: run.ModeBranch, Seq: row.Seq + 1})
	refused(t, err, "fork_point_invalid")
	if p.total() != 1 {
		t.Errorf("%d calls", p.total())
	}
}
