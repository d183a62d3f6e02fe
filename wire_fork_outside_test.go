package fermata_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/node"
)

// TestWireForksAreNotDelivered: of a replay nothing reaches a webhook or a callback
// URL; of a branch what is its own reaches webhooks, and nobody is called back.
func TestWireForksAreNotDelivered(t *testing.T) {
	t.Parallel()
	s := start(t, withWebhooks)
	s.register(gate("gate"))
	hook, back := listen(t, nil), listen(t, nil)
	wanted := []string{"run.started", "node.started", "interrupt.requested", "interrupt.resolved", "run.completed"}
	s.hook(map[string]any{"url": hook.http.URL, "events": wanted})
	// news are a run's events from a sequence on that the webhook wants.
	news := func(id string, from int) (out []string) {
		for i, typ := range s.types(id) {
			if i >= from && slices.Contains(wanted, typ) {
				out = append(out, fmt.Sprint(id, " ", i))
			}
		}
		return out
	}
	var heard []string
	hears := func(want []string) {
		t.Helper()
		heard = append(heard, want...)
		var got []string
		for _, x := range hook.hears(t, len(heard)) {
			got = append(got, fmt.Sprint(x.doc["runId"], " ", x.doc["event"].(map[string]any)["sequence"]))
		}
		slices.Sort(got)
		slices.Sort(heard)
		alike(t, "deliveries", got, heard...)
	}
	src := s.run("gate", map[string]any{"callbackUrl": back.http.URL})
	s.await(src, "waiting-approval")
	back.hears(t, 1) // nobody is called back about what has been answered
	s.answer(src, "ok", yes).want(t, 200)
	s.await(src, "completed")
	hears(news(src, 0))

	for seq := range s.docs(src) {
		s.await(s.fork(src, map[string]any{"mode": "replay", "fromSeq": seq}).want(t, 201).str("runId"), "completed")
	}
	for _, from := range []int{0, 1, 3} {
		branch := s.fork(src, map[string]any{"mode": "branch", "fromSeq": from}).want(t, 201).str("runId")
		s.await(branch, "waiting-approval")
		s.restart() // what is queued is queued for good
		s.answer(branch, "ok", yes).want(t, 200)
		s.await(branch, "completed")
		hears(news(branch, from))
	}
	// One run more: whatever a fork had queued before it would have come by now.
	last := s.run("gate")
	s.await(last, "waiting-approval")
	hears(news(last, 0))
	if n := len(back.all()); n != 1 {
		t.Errorf("%d callbacks, and only the source has a URL", n)
	}
}

// TestWireForksOfAnUndoneRun: a replay undoes nothing and cannot be told to; a branch
// undoes what is its own; none begins behind the end of its source.
func TestWireForksOfAnUndoneRun(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(undoable("undo", `{"triggers":["node-failure","operator-request"]}`, "core.fail"))
	src := s.run("undo")
	s.await(src, "failed")
	s.undone(src, "completed")
	log := s.payloads(src)
	end := slices.Index(s.types(src), "run.failed")
	for seq := range log {
		a := s.fork(src, map[string]any{"mode": "replay", "fromSeq": seq})
		if seq > end {
			a.refused(t, 422, "fork_point_invalid")
			s.fork(src, map[string]any{"mode": "branch", "fromSeq": seq}).refused(t, 422, "fork_point_invalid")
			continue
		}
		id := a.want(t, 201).str("runId")
		s.await(id, "failed")
		s.operate(id, map[string]any{"action": "start"})
		s.operate(id, map[string]any{"action": "retry", "order": 1}).refused(t, 409, "run_state_conflict")
		c := s.compensation(id)
		if c["status"] != "none" || len(c["plan"].([]any))+len(c["attempts"].([]any)) > 0 {
			t.Errorf("a replay from %d: %v", seq, c)
		}
		if types := s.types(id); types[len(types)-1] != "run.failed" || slices.Contains(types, "replay.diverged") {
			t.Errorf("a replay from %d says %v", seq, types)
		}
	}
	ship := slices.Index(s.types(src), "node.completed") + 1
	branch := s.fork(src, map[string]any{"mode": "branch", "fromSeq": ship}).want(t, 201).str("runId")
	s.await(branch, "failed")
	s.undone(branch, "completed")
	alike(t, "the branch undoes", attempts(s.compensation(branch)), "ship/1 succeeded")
	alike(t, "the source", s.payloads(src), log...)
}

// TestWireUnusableWorkflow: a workflow with a node type that the host does not have
// any more is refused by its code wherever it is needed, and nothing else is harmed.
func TestWireUnusableWorkflow(t *testing.T) {
	t.Parallel()
	own := node.Type{ID: "test.gone", Run: func(context.Context, *node.Input) (node.Result, error) { return node.Done(nil), nil }}
	s := start(t, func(c *fermata.Config) { c.Nodes = []node.Type{own} })
	s.register(flow("old", []any{step("a", "test.gone", nil)}, []any{}))
	s.register(flow("new", []any{step("a", "core.noop", nil)}, []any{}))
	id := s.run("old")
	s.await(id, "completed")
	s.cfg.Nodes = nil
	s.restart()
	for name, a := range map[string]answer{
		"create": s.do("POST", "/runs", map[string]any{"workflowId": "old"}),
		"replay": s.fork(id, map[string]any{"mode": "replay"}),
		"branch": s.fork(id, map[string]any{"mode": "branch", "fromSeq": 1}),
		"overlay": s.fork(id, map[string]any{"mode": "branch", "fromSeq": 1,
			"runOptionsOverlay": map[string]any{"configurable": map[string]any{"x": 1}}}),
	} {
		d := a.refused(t, 422, "node_config_invalid").json["details"].(map[string]any)
		if d["workflowId"] != "old" || d["workflowVersion"] == nil || d["field"] == nil {
			t.Errorf("%s: %s", name, a.body)
		}
	}
	if n := len(s.docs(id)); n == 0 {
		t.Error("the log of the run cannot be read any more")
	}
	s.await(s.run("new"), "completed")
	s.cfg.Nodes = []node.Type{own}
	s.restart()
	s.await(s.fork(id, map[string]any{"mode": "replay"}).want(t, 201).str("runId"), "completed")
}

// TestWireForksOutliveTheirSource: once a source has expired it is not forked any
// more, and its forks go on.
func TestWireForksOutliveTheirSource(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("gate"))
	src := s.waiting()
	branch := s.fork(src, map[string]any{"mode": "branch", "fromSeq": 1}).want(t, 201).str("runId")
	s.await(branch, "waiting-approval")
	s.answer(src, "ok", yes).want(t, 200)
	s.await(src, "completed")
	days := fmt.Sprint(s.do("GET", "/.well-known/openwop", nil).want(t, 200).json["replay"].(map[string]any)["retention"])
	if days == "<nil>" {
		t.Error("the host keeps runs for a time and does not say so")
	}
	if n := s.expireAll(); n != 1 {
		t.Fatalf("%d runs have expired", n)
	}
	for range 2 {
		for _, body := range []map[string]any{{"mode": "replay"}, {"mode": "branch", "fromSeq": 1}} {
			s.fork(src, body).refused(t, 410, "run_expired")
		}
		s.restart()
	}
	s.answer(branch, "ok", yes).want(t, 200)
	s.await(branch, "completed")
	if types := s.types(branch); types[0] != "run.started" {
		t.Errorf("%v", types)
	}
	s.await(s.fork(branch, map[string]any{"mode": "replay"}).want(t, 201).str("runId"), "completed")
}
