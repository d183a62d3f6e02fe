package run_test

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/node"
	"pgregory.net/rapid"
)

// drawWorkflow makes a random graph of tasks, gates, delays and children, with
// every trigger rule, some conditions and sometimes a bounded loop.
func drawWorkflow(r *rapid.T) []byte {
	n := rapid.IntRange(1, 7).Draw(r, "nodes")
	nodes, edges := []any{}, []any{}
	for i := range n {
		typ := rapid.SampledFrom([]string{"test.task", "test.task", "core.noop", "core.approvalGate", "core.delay", "core.subWorkflow", "core.fail"}).Draw(r, "type")
		config := map[string]any{}
		switch typ {
		case "core.approvalGate":
			config["title"] = "go on?"
			if rapid.Bool().Draw(r, "deadline") {
				config["timeoutMs"] = 2000
			}
		case "core.delay":
			config["delayMs"] = 1000
		case "core.subWorkflow":
			config["workflowId"] = "other"
			if rapid.Bool().Draw(r, "absorb") {
				config["onChildFailure"] = "absorb"
			}
		}
		nodes = append(nodes, map[string]any{
			"id": fmt.Sprintf("n%d", i), "typeId": typ, "name": "n", "position": map[string]any{"x": 0, "y": 0},
			"config": config, "inputs": map[string]any{},
			"settings": map[string]any{"maxRetries": rapid.IntRange(0, 2).Draw(r, "retries"), "retryDelayMs": 500,
				"timeoutMs": rapid.SampledFrom([]int{0, 3000}).Draw(r, "timeout")},
			"disabled": rapid.IntRange(0, 9).Draw(r, "disabled") == 0,
		})
	}
	rule := rapid.SampledFrom([]string{"all_success", "any_success", "all_complete", "none_failed", "any_failed"})
	for from := range n {
		for to := from + 1; to < n; to++ {
			if rapid.IntRange(0, 2).Draw(r, "edge") > 0 {
				continue
			}
			e := map[string]any{"id": fmt.Sprintf("e%d%d", from, to), "sourceNodeId": fmt.Sprintf("n%d", from),
				"targetNodeId": fmt.Sprintf("n%d", to), "triggerRule": rule.Draw(r, "rule")}
			if rapid.IntRange(0, 3).Draw(r, "conditional") == 0 {
				e["condition"] = map[string]any{"type": "truthy", "left": "yes"}
			}
			edges = append(edges, e)
		}
	}
	settings := map[string]any{}
	if n > 1 && rapid.Bool().Draw(r, "loop") {
		settings["maxLoopbackIterations"] = 2
		edges = append(edges, map[string]any{"id": "back", "sourceNodeId": fmt.Sprintf("n%d", n-1),
			"targetNodeId": fmt.Sprintf("n%d", rapid.IntRange(0, n-1).Draw(r, "header")),
			"condition":    map[string]any{"type": "truthy", "left": "again"}, "triggerRule": rule.Draw(r, "rule")})
	}
	b, err := stdjson.Marshal(map[string]any{
		"id": "random", "name": "random", "version": "1", "nodes": nodes, "edges": edges, "triggers": []any{},
		"variables": []any{}, "metadata": map[string]any{}, "settings": settings,
	})
	if err != nil {
		panic(err)
	}
	return b
}

// TestRandomInterleavings drives random workflows with random commands. Whatever
// happens: the log folds to the live state, a run never gets stuck, nothing
// follows its end, and no node starts twice at once.
func TestRandomInterleavings(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newWorldR(t, drawWorkflow(r))
		if err := w.decide(run.Start{Owner: owner("alice"), Transport: "rest"}); err != nil {
			r.Fatal(err)
		}
		for range rapid.IntRange(0, 60).Draw(r, "steps") {
			w.randomStep(r)
			w.check()
		}
		w.settle(r)
		w.check()
		w.wellFormed()
	})
}

func newWorldR(t *testing.T, def []byte) *world { return newWorld(t, def) }

func (w *world) randomStep(r *rapid.T) {
	switch rapid.IntRange(0, 11).Draw(r, "command") {
	case 0:
		w.refusable(run.Cancel{Reason: "r"}, r, 40)
	case 1:
		w.allowed(run.Pause{DrainPolicy: rapid.SampledFrom([]string{"immediate", "drain-current-node"}).Draw(r, "policy")})
	case 2, 3:
		w.allowed(run.Resume{})
	case 4:
		clear(w.pending)
		w.allowed(run.Recover{})
	case 5, 6:
		w.now = w.now.Add(time.Duration(rapid.IntRange(0, 4000).Draw(r, "ms")) * time.Millisecond)
		w.allowed(run.Tick{})
	case 7:
		w.answerOne(r)
	case 8:
		w.childOne(r)
	default:
		w.finishOne(r)
	}
}

// refusable sends a command that ends runs only now and then.
func (w *world) refusable(c run.Command, r *rapid.T, odds int) {
	if rapid.IntRange(0, odds).Draw(r, "rarely") == 0 {
		w.allowed(c)
	}
}

// allowed sends a command that may be refused, but only with a registered code.
func (w *world) allowed(c run.Command) {
	err := w.decide(c)
	var p *problem.Error
	if err != nil && (!errors.As(err, &p) || p.Code == problem.InternalError) {
		w.t.Fatalf("%T: %v", c, err)
	}
}

func (w *world) finishOne(r *rapid.T) {
	var names []string
	for i := range w.wf.Steps {
		if id := w.wf.Steps[i].Node.ID; has(w.pending, id) {
			names = append(names, id)
		}
	}
	if len(names) == 0 {
		return
	}
	name := rapid.SampledFrom(names).Draw(r, "node")
	switch rapid.IntRange(0, 4).Draw(r, "result") {
	case 0:
		w.finish(name, node.Result{}, node.Fail("upstream_unavailable", "no"))
	case 1:
		w.finish(name, node.Result{}, node.Retry("upstream_unavailable", "later"))
	default:
		w.finish(name, node.Done(node.Outputs{"yes": rapid.Bool().Draw(r, "yes"), "again": rapid.Bool().Draw(r, "again")}), nil)
	}
}

func has[V any](m map[string]V, k string) bool { _, ok := m[k]; return ok }

func (w *world) answerOne(r *rapid.T) {
	open := w.s.Interrupts()
	if len(open) == 0 {
		return
	}
	i := rapid.SampledFrom(open).Draw(r, "interrupt")
	action := rapid.SampledFrom([]string{"accept", "reject", "dance"}).Draw(r, "action")
	w.allowed(run.Resolve{NodeID: i.NodeID, Value: raw(`{"action":"` + action + `"}`), Subject: owner("bob").Subject})
}

func (w *world) childOne(r *rapid.T) {
	open := w.s.OpenChildren()
	if len(open) == 0 {
		return
	}
	c := rapid.SampledFrom(open).Draw(r, "child")
	id, _ := ids.ParseRun(c.RunID)
	w.allowed(run.ChildNews{RunID: id, Status: rapid.SampledFrom([]string{
		run.Completed, run.Failed, run.Cancelled, run.WaitingApproval, run.Running}).Draw(r, "status")})
}

// settle lets everything outstanding happen. A run that then has not ended is
// stuck.
func (w *world) settle(r *rapid.T) {
	for range 400 {
		if w.s.Ended != "" {
			return
		}
		switch {
		case w.s.Status() == run.Paused:
			w.allowed(run.Resume{})
		case len(w.pending) > 0:
			w.finishOne(r)
		case len(w.s.Interrupts()) > 0:
			w.answerOne(r)
		case len(w.s.OpenChildren()) > 0:
			w.childOne(r)
		case !w.s.NextWake(w.lim).IsZero() && w.s.NextWake(w.lim).Before(w.now.Add(24*time.Hour)):
			w.now = w.s.NextWake(w.lim)
			w.allowed(run.Tick{})
		default:
			b, _ := w.s.Encode()
			w.t.Fatalf("the run is stuck: %s\n%s", w.s.Status(), b)
		}
	}
	b, _ := w.s.Encode()
	w.t.Fatalf("the run does not end: %s\n%s\n%s", w.s.Status(), b, w.wf.Raw)
}

// wellFormed checks what a reader of the log may rely on.
func (w *world) wellFormed() {
	running := map[string]bool{}
	for i := range w.log {
		e := &w.log[i]
		if e.Seq != int64(i) {
			w.t.Fatalf("event %d has sequence %d", i, e.Seq)
		}
		if e.Type.Terminal() != (i == len(w.log)-1 && w.s.Ended != "") {
			w.t.Fatalf("event %d of %d is %s", i, len(w.log), e.Type)
		}
		switch e.Type {
		case "node.completed", "node.failed", "node.cancelled":
			running[e.NodeID] = false
		case "node.retried":
			running[e.NodeID] = false
		case "run.paused":
			clear(running)
		case "node.started":
			running[e.NodeID] = true
		}
	}
	if w.s.Ended == "" {
		return
	}
	for id, on := range running {
		if on {
			w.t.Fatalf("the run ended with node %s under way", id)
		}
	}
}
