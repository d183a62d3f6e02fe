package run_test

import (
	stdjson "encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/node"
	"pgregory.net/rapid"
)

// drawUndoable makes a row of effects that ends in a failure, each undone in a way
// of its own.
func drawUndoable(r *rapid.T) []byte {
	n := rapid.IntRange(1, 5).Draw(r, "effects")
	nodes, edges := []any{}, []any{}
	for i := range n + 1 {
		id := fmt.Sprintf("n%d", i)
		x := map[string]any{
			"id": id, "typeId": "test.task", "name": "n", "position": map[string]any{"x": 0, "y": 0}, "config": map[string]any{}, "inputs": map[string]any{},
		}
		undo := map[string]any{
			"nodeTypeId": "test.task", "inputMapping": map[string]any{"id": "${nodes." + id + ".output.id}"},
			"retry":            map[string]any{"maxAttempts": rapid.IntRange(1, 3).Draw(r, "attempts"), "backoffMs": rapid.SampledFrom([]int{0, 500}).Draw(r, "backoff")},
			"requiresApproval": rapid.IntRange(0, 3).Draw(r, "approval") == 0,
		}
		switch rapid.IntRange(0, 6).Draw(r, "how") {
		case 0:
		case 1:
			x["irreversibleEffect"] = true
		case 2:
			undo["inputMapping"] = map[string]any{"never": "${inputs.never}"}
			x["compensation"] = undo
		default:
			x["compensation"] = undo
		}
		nodes = append(nodes, x)
		if i > 0 {
			edges = append(edges, map[string]any{"id": "e" + id, "sourceNodeId": fmt.Sprintf("n%d", i-1), "targetNodeId": id})
		}
	}
	policy := map[string]any{
		"triggers":             []string{"node-failure", "run-cancel", "operator-request"},
		"timeoutMs":            rapid.SampledFrom([]int{0, 2000}).Draw(r, "timeout"),
		"exhaustedDisposition": rapid.SampledFrom([]string{"record-outcome", "manual-intervention"}).Draw(r, "disposition"),
	}
	b, err := stdjson.Marshal(map[string]any{
		"id": "w", "name": "w", "version": "1", "nodes": nodes, "edges": edges, "triggers": []any{}, "variables": []any{},
		"metadata": map[string]any{}, "settings": map[string]any{"compensation": policy},
	})
	if err != nil {
		r.Fatal(err)
	}
	return b
}

// Whatever happens in whatever order: a state is the fold of its log, one action is
// under way at a time, what is done stays done and is done under one name, and
// nothing waits for a call that nobody makes.
func TestRandomUndoing(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newWorldR(t, drawUndoable(r))
		if err := w.decide(run.Start{Owner: owner("a"), Transport: "rest"}); err != nil {
			r.Fatal(err)
		}
		for done := rapid.IntRange(0, len(w.wf.Steps)-1).Draw(r, "done"); done > 0 && len(w.pending) == 1; done-- {
			for key, x := range w.pending {
				w.finish(key, node.DoneRaw(map[string]stdjson.RawMessage{"id": stdjson.RawMessage(fmt.Sprint(x.Visit))}), nil)
			}
		}
		if rapid.Bool().Draw(r, "fails") {
			for key := range w.pending {
				w.finish(key, node.Result{}, node.Fail("upstream_unavailable", "gone"))
			}
		}
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			w.undoStep(r)
			w.checkUndoing(r)
		}
		for range 400 { // left alone, with everybody willing, it comes to rest
			if w.s.Ended != "" && len(w.pending) == 0 && !w.s.Undoing.Active() {
				break
			}
			w.willing(r)
			w.checkUndoing(r)
		}
		if u := w.s.Undoing; u.Active() && u.Held == 0 {
			r.Fatalf("it never comes to rest: %s", w.s.CompensationStatus())
		}
		w.check()
	})
}

func (w *world) undoStep(r *rapid.T) {
	ordinal := rapid.IntRange(0, len(w.wf.Steps)).Draw(r, "order")
	switch rapid.IntRange(0, 9).Draw(r, "what") {
	case 0, 1, 2, 3:
		key := w.call1()
		if key == "" {
			return
		}
		switch rapid.IntRange(0, 4).Draw(r, "result") {
		case 0:
			w.finish(key, node.Result{}, node.Retry("upstream_unavailable", "busy"))
		case 1:
			w.finish(key, node.Result{}, node.Fail("upstream_unavailable", "gone"))
		default:
			w.finish(key, node.DoneRaw(map[string]stdjson.RawMessage{"id": stdjson.RawMessage("1")}), nil)
		}
	case 4:
		w.now = w.now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(r, "ms")) * time.Millisecond)
		w.allowed(run.Tick{})
	case 5:
		clear(w.pending)
		w.allowed(run.Recover{})
	case 6:
		w.answerGate(r, rapid.Bool().Draw(r, "yes"))
	case 7, 9:
		c := run.Operate{
			Action: rapid.SampledFrom([]string{"start", "retry", "retry", "retry", "skip", "substitute", "substitute", "terminate"}).Draw(r, "action"),
			Order:  ordinal, TypeID: "test.secret", Reason: "because", By: "olga",
		}
		w.allowed(c)
	case 8:
		w.allowed(run.Cancel{})
	}
}

// call1 is a call under way; empty for none.
func (w *world) call1() string {
	keys := slices.Sorted(maps.Keys(w.pending))
	if len(keys) == 0 {
		return ""
	}
	return keys[0]
}

func (w *world) answerGate(r *rapid.T, yes bool) {
	open := w.s.Interrupts()
	if len(open) == 0 {
		return
	}
	action := `{"action":"reject"}`
	if yes {
		action = `{"action":"accept"}`
	}
	if err := w.decide(run.Resolve{NodeID: open[0].NodeID, Value: raw(action), Subject: owner("olga").Subject}); err != nil {
		r.Fatal(err)
	}
}

func (w *world) willing(r *rapid.T) {
	if key := w.call1(); key != "" {
		if !strings.HasPrefix(key, "undo ") && w.s.Ended == "" {
			w.finish(key, node.Result{}, node.Fail("upstream_unavailable", "gone"))
		} else {
			w.finish(key, node.DoneRaw(nil), nil)
		}
		return
	}
	w.answerGate(r, true)
	w.now = w.now.Add(time.Second)
	w.allowed(run.Tick{})
}

// checkUndoing holds what must be true after every step.
func (w *world) checkUndoing(r *rapid.T) {
	calls := 0
	for key := range w.pending {
		if strings.HasPrefix(key, "undo ") {
			calls++
		}
	}
	waits := 0
	for _, x := range w.s.Executing() {
		if x.Inverse != nil {
			waits++
			if p, ok := w.pending["undo "+x.NodeID]; !ok || p.Attempt != x.Attempt || p.Inverse.Order != x.Inverse.Order {
				r.Fatalf("the run waits for attempt %d at %s, which nobody makes", x.Attempt, x.NodeID)
			}
		}
	}
	if waits > 1 || w.s.Parked() != (waits == 0) && w.s.Ended != "" {
		r.Fatalf("%d actions are under way, parked %v", waits, w.s.Parked())
	}
	if calls > 1 {
		r.Fatalf("%d calls at once", calls)
	}
	done, names := map[int]bool{}, map[string]string{}
	for i := range w.log {
		e := &w.log[i]
		if e.Type != event.LogAppended {
			continue
		}
		l, err := event.Read[event.Log](e.Truth())
		if err != nil || l.X == nil {
			continue
		}
		if p := l.X.Plan; p != nil {
			for _, x := range p.Entries {
				if names[x.EffectID] != "" {
					r.Fatalf("two actions are called %s", x.EffectID)
				}
				names[x.EffectID] = x.NodeID
			}
		}
		if m := l.X.Inverse; m != nil {
			if done[m.Order] {
				r.Fatalf("action %d: %s after it was done", m.Order, m.Step)
			}
			done[m.Order] = m.Step == event.InverseDone
		}
	}
	if _, err := w.s.Open("n0", w.s.ID); err != nil && !problem.Is(err, problem.InterruptAlreadyResolved) && !problem.Is(err, problem.NotFound) {
		r.Fatal(err)
	}
}
