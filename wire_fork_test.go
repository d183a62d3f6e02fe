package fermata_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/node"
)

// effects is a node type that counts how often it has an effect.
func effects(n *atomic.Int64) func(*fermata.Config) {
	return func(c *fermata.Config) {
		c.Nodes = append(c.Nodes, node.Type{ID: "test.effect", Run: func(_ context.Context, in *node.Input) (node.Result, error) {
			k := n.Add(1)
			if err := in.SetVariable("said", k); err != nil {
				return node.Result{}, err
			}
			return node.Done(node.Outputs{"n": k}), nil
		}})
	}
}

// story is an effect, a gate, a wait and an effect behind them.
func story(id string) map[string]any {
	return flow(id, []any{
		step("first", "test.effect", nil), step("ok", "core.approvalGate", map[string]any{"title": "go on?"}),
		step("wait", "core.delay", map[string]any{"delayMs": 1}), step("last", "test.effect", nil),
	}, []any{edge("first", "ok"), edge("ok", "wait"), edge("wait", "last")})
}

func (s *server) fork(id string, body map[string]any) answer {
	s.t.Helper()
	return s.do("POST", "/runs/"+seg(id)+":fork", body)
}

// done runs the story to its end.
func (s *server) done(workflow string) string {
	s.t.Helper()
	id := s.run(workflow)
	s.await(id, "waiting-approval")
	s.do("POST", "/runs/"+seg(id)+"/interrupts/ok", map[string]any{"resumeValue": map[string]any{"action": "accept"}}).want(s.t, 200)
	s.await(id, "completed")
	return id
}

// payloads is a log as type, node and payload.
func (s *server) payloads(id string) (out []string) {
	s.t.Helper()
	for _, d := range s.docs(id) {
		var e event
		if err := json.Unmarshal(d, &e); err != nil {
			s.t.Fatal(err)
		}
		out = append(out, fmt.Sprint(e.Sequence, e.Type, e.NodeID, string(e.Payload)))
	}
	return out
}

// A replay has no effect, asks nobody, and ends as its source did, from wherever
// it begins; its source does not change, and what it inherits is the same bytes.
func TestWireReplay(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	s := start(t, effects(&n))
	s.register(story("story"))
	src := s.done("story")
	before := s.payloads(src)
	for seq := range before {
		a := s.fork(src, map[string]any{"mode": "replay", "fromSeq": seq}).want(t, 201)
		id := a.str("runId")
		if a.str("sourceRunId") != src || a.str("mode") != "replay" || a.json["fromSeq"] != float64(seq) || id == src {
			t.Fatalf("%s", a.body)
		}
		snap := s.await(id, "completed")
		log := s.payloads(id)
		if !slices.Equal(log[:seq], before[:seq]) {
			t.Errorf("the prefix below %d differs:\n%s\n%s", seq, log[:seq], before[:seq])
		}
		types := s.types(id)
		if slices.Contains(types[seq:], "interrupt.requested") || slices.Contains(types, "replay.diverged") {
			t.Errorf("a replay from %d says %v", seq, types)
		}
		if fmt.Sprint(snap["variables"]) != fmt.Sprint(s.await(src, "completed")["variables"]) {
			t.Errorf("the replay from %d ends with %v", seq, snap["variables"])
		}
		s.do("POST", "/runs/"+seg(id)+"/interrupts/ok", map[string]any{"resumeValue": map[string]any{"action": "accept"}}).
			refused(t, 409, "interrupt_already_resolved")
	}
	if n.Load() != 2 || !slices.Equal(s.payloads(src), before) {
		t.Errorf("%d effects, the source's log %v", n.Load(), s.types(src))
	}
	if open := s.do("GET", "/host/fermata/interrupts", nil).want(t, 200); len(open.json["interrupts"].([]any)) != 0 {
		t.Errorf("a replay asks: %s", open.body)
	}
}

// A branch is a run of its own: its gate has another id, its answer is its own,
// its effects happen, and neither run sees anything of the other.
func TestWireBranch(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	s := start(t, effects(&n))
	s.register(story("story"))
	src := s.run("story")
	s.await(src, "waiting-approval")
	s.do("POST", "/runs/"+seg(src)+":pause", nil).want(t, 202)
	seq := slices.Index(s.types(src), "run.paused")
	a := s.fork(src, map[string]any{"mode": "branch", "fromSeq": seq, "runOptionsOverlay": map[string]any{"tags": []string{"b"}, "metadata": map[string]any{"k": 1}}}).want(t, 201)
	id := a.str("runId")
	snap := s.await(id, "waiting-approval")
	if fmt.Sprint(snap["tags"], snap["metadata"]) != "[b] map[k:1]" {
		t.Errorf("options %v %v", snap["tags"], snap["metadata"])
	}
	open := s.do("GET", "/host/fermata/interrupts", nil).want(t, 200).json["interrupts"].([]any)
	ids := map[string]bool{}
	for _, i := range open {
		ids[i.(map[string]any)["interruptId"].(string)] = true
	}
	if len(open) != 2 || len(ids) != 2 {
		t.Fatalf("open: %v", open)
	}
	token := s.token(id, "ok")
	before := s.payloads(src)
	s.restart() // an accepted fork survives
	s.do("POST", "/interrupts/"+token, map[string]any{"resumeValue": map[string]any{"action": "accept"}}).want(t, 200)
	s.await(id, "completed")
	if n.Load() != 2 {
		t.Errorf("%d effects", n.Load())
	}
	if !slices.Equal(s.payloads(src), before) {
		t.Error("the branch wrote into its source's log")
	}
	s.await(src, "paused")
	s.do("POST", "/runs/"+seg(src)+"/cancel", nil).want(t, 200)
	s.await(id, "completed")
	if got := s.do("GET", "/host/fermata/runs/"+seg(id)+"/fork", nil).want(t, 200); fmt.Sprint(got.json["fork"]) != fmt.Sprintf("map[fromSeq:%d mode:branch sourceRunId:%s]", seq, src) {
		t.Errorf("lineage %s", got.body)
	}
	if got := s.do("GET", "/runs/"+seg(id)+"/ancestry", nil).want(t, 200); got.json["parent"] != nil {
		t.Errorf("a fork was dispatched by nobody: %s", got.body)
	}
}

func TestWireForkRefusals(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	s := start(t, effects(&n))
	s.register(story("story"))
	src := s.done("story")
	last := len(s.docs(src)) - 1
	runs := s.runCount()
	for _, c := range []struct {
		body, code, field string
		status            int
	}{
		{`{}`, "validation_error", "mode", 400}, {`{"mode":"again"}`, "validation_error", "mode", 400},
		{`{"mode":""}`, "validation_error", "mode", 400}, {`{"mode":"branch"}`, "validation_error", "fromSeq", 400},
		{`{"mode":"replay","fromSeq":-1}`, "validation_error", "fromSeq", 400},
		{`{"mode":"replay","fromSeq":0.5}`, "validation_error", "fromSeq", 400},
		{`{"mode":"replay","fromSeq":"1"}`, "validation_error", "fromSeq", 400},
		{`{"mode":"replay","fromSeq":null}`, "validation_error", "fromSeq", 400},
		{`{"mode":"replay","runOptionsOverlay":{"tags":[]}}`, "validation_error", "runOptionsOverlay", 400},
		{`{"mode":"branch","fromSeq":1,"runOptionsOverlay":{"tag":[]}}`, "validation_error", "runOptionsOverlay.tag", 400},
		{`{"mode":"branch","fromSeq":1,"runOptionsOverlay":{"metadata":1}}`, "validation_error", "runOptionsOverlay.metadata", 400},
		{`{"mode":"branch","fromSeq":1,"runOptionsOverlay":{"configurable":{}}}`, "validation_error", "runOptionsOverlay.configurable.version", 400},
		{`{"mode":"replay","x":1}`, "validation_error", "x", 400},
		{fmt.Sprintf(`{"mode":"branch","fromSeq":%d}`, last+1), "fork_point_invalid", "fromSeq", 422},
		{`{"mode":"replay","fromSeq":99999999999999999999999}`, "fork_point_invalid", "fromSeq", 422},
	} {
		a := s.do("POST", "/runs/"+seg(src)+":fork", c.body).refused(t, c.status, c.code)
		if got := a.json["details"].(map[string]any)["field"]; got != c.field {
			t.Errorf("%s: field %v, want %s", c.body, got, c.field)
		}
	}
	ok := map[string]any{"mode": "replay"}
	s.do("POST", "/runs/default~2F0123456789abcdefghjkmnpqrs:fork", ok).refused(t, 404, "not_found")
	only := func(scope string) string {
		return s.key(scope+"-key-"+scope+"-key-"+scope+"-key-of-it", "default", scope)
	}
	s.do("POST", "/runs/"+seg(src)+":fork", ok, "Authorization", only("runs:create")).refused(t, 403, "forbidden")
	s.do("POST", "/runs/"+seg(src)+":fork", ok, "Authorization", only("runs:read")).refused(t, 403, "forbidden")
	if s.runCount() != runs {
		t.Error("a refused fork left a run behind")
	}
	// An empty overlay is none, and a branch may have fewer options than its source.
	s.do("POST", "/runs/"+seg(src)+":fork", `{"mode":"replay","runOptionsOverlay":{}}`).want(t, 201)
}

func TestWireDiff(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	s := start(t, effects(&n))
	s.register(story("story"))
	a, b := s.done("story"), s.done("story")
	diff := func(x, y string) map[string]any {
		return s.do("GET", "/runs/"+seg(x)+":diff?against="+seg(y), nil).want(t, 200).json
	}
	if d := diff(a, a); d["divergedAtSeq"] != nil || len(d["eventDiffs"].([]any)) != 0 || d["truncated"] != nil {
		t.Errorf("a run differs from itself: %v", d)
	}
	d, again := diff(a, b), diff(a, b)
	first := d["eventDiffs"].([]any)[0].(map[string]any)
	if d["divergedAtSeq"] != first["seq"] || first["op"] != "changed" || fmt.Sprint(d) != fmt.Sprint(again) {
		t.Errorf("two effects that differ: %v", d)
	}
	if v := d["stateDiff"].(map[string]any)["variables"]; fmt.Sprint(v) != "map[said:map[a:2 b:4]]" {
		t.Errorf("the states differ in %v", d["stateDiff"])
	}
	replay := s.fork(a, map[string]any{"mode": "replay", "fromSeq": len(s.docs(a)) - 1}).want(t, 201).str("runId")
	s.await(replay, "completed")
	if d := diff(a, replay); d["divergedAtSeq"] != nil {
		t.Errorf("a replay of the end differs: %v", d)
	}
	waits := s.run("story")
	s.await(waits, "waiting-approval")
	if d := diff(a, waits); d["truncated"] != true {
		t.Errorf("a run that goes on: %v", d)
	}
	s.do("GET", "/runs/"+seg(a)+":diff", nil).refused(t, 400, "validation_error")
	s.do("GET", "/runs/"+seg(a)+":diff?against=x", nil).refused(t, 400, "validation_error")
	s.do("GET", "/runs/"+seg(a)+":diff?against=other~2F0123456789abcdefghjkmnpqrs", nil).refused(t, 403, "id_tenant_mismatch")
	s.do("GET", "/runs/"+seg(a)+":diff?against=default~2F0123456789abcdefghjkmnpqrs", nil).refused(t, 404, "not_found")
}

func TestWireAncestryAndSeams(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(flow("leaf", []any{step("a", "core.noop", nil)}, []any{}))
	s.register(flow("parent", []any{step("p", "core.subWorkflow", map[string]any{"workflowId": "leaf"})}, []any{}))
	id := s.run("parent")
	s.await(id, "completed")
	child := ""
	for _, e := range s.events(id) {
		if e["type"] == "node.dispatched" {
			child = e["payload"].(map[string]any)["childRunId"].(string)
		}
	}
	top := s.do("GET", "/runs/"+seg(id)+"/ancestry", nil).want(t, 200)
	below := s.do("GET", "/runs/"+seg(child)+"/ancestry", nil).want(t, 200)
	parent, _ := below.json["parent"].(map[string]any)
	if top.json["parent"] != nil || parent["runId"] != id || parent["cause"] != "core.subWorkflow" || parent["hostId"] != top.json["hostId"] {
		t.Errorf("%s\n%s", top.body, below.body)
	}
	doc := s.do("GET", "/.well-known/openwop", nil).want(t, 200).json
	model := doc["multiAgent"].(map[string]any)["executionModel"].(map[string]any)["crossHostCausation"].(map[string]any)
	if model["hostId"] != top.json["hostId"] || fmt.Sprint(doc["replay"].(map[string]any)["modes"]) != "[replay branch]" {
		t.Errorf("advertised: %v %v", doc["multiAgent"], doc["replay"])
	}
	s.restart()
	if again := s.do("GET", "/runs/"+seg(id)+"/ancestry", nil).want(t, 200); again.json["hostId"] != top.json["hostId"] {
		t.Error("the host has another name after a restart")
	}
	// A fork of a child is nobody's child, and its end is no news to the parent.
	fork := s.fork(child, map[string]any{"mode": "replay", "fromSeq": 1}).want(t, 201).str("runId")
	s.await(fork, "completed")
	if a := s.do("GET", "/runs/"+seg(fork)+"/ancestry", nil).want(t, 200); a.json["parent"] != nil {
		t.Errorf("%s", a.body)
	}
	// A replay of the parent starts no child: three runs and the two forks are all.
	runs := s.runCount()
	replay := s.fork(id, map[string]any{"mode": "replay"}).want(t, 201).str("runId")
	s.await(replay, "completed")
	if n := s.runCount(); n != runs+1 || slices.Contains(s.types(replay), "node.dispatched") || slices.Contains(s.types(replay), "replay.diverged") {
		t.Errorf("%d runs became %d: %v", runs, n, s.types(replay))
	}
	seams := s.do("GET", "/host/effect-seams", nil).want(t, 200).json["seams"].([]any)
	if len(seams) == 0 {
		t.Error("no seam is listed")
	}
}
