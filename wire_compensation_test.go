package fermata_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/node"
)

// undoable is a workflow of two effects, charge and ship, and a last node of a type;
// without one it does nothing and the run completes.
func undoable(id, policy, last string) map[string]any {
	undo := func(name string) map[string]any {
		return map[string]any{"compensation": map[string]any{
			"nodeTypeId": "core.identity", "inputMapping": map[string]any{"input": "${nodes." + name + ".output.output}"},
		}}
	}
	is := func(v string) map[string]any {
		return map[string]any{"inputs": map[string]any{"output": map[string]any{"type": "static", "value": v}}}
	}
	if last == "" {
		last = "core.noop"
	}
	def := flow(id, []any{
		step("charge", "core.identity", nil, is("c-1"), undo("charge")),
		step("ship", "core.identity", nil, is("s-1"), undo("ship")),
		step("last", last, nil),
	}, []any{edge("charge", "ship"), edge("ship", "last")})
	def["settings"] = map[string]any{"compensation": json.RawMessage(policy)}
	return def
}

func (s *server) compensation(id string) map[string]any {
	s.t.Helper()
	return s.do("GET", "/runs/"+seg(id)+"/compensation", nil).want(s.t, 200).json
}

func (s *server) operate(id string, body any, header ...string) answer {
	s.t.Helper()
	return s.do("POST", "/host/fermata/runs/"+seg(id)+"/compensation", body, header...)
}

// attempts are a compensation's attempts, each as "node/attempt outcome".
func attempts(c map[string]any) []string {
	out := []string{}
	for _, a := range c["attempts"].([]any) {
		m := a.(map[string]any)
		out = append(out, fmt.Sprintf("%s/%v %s", m["nodeId"], m["attempt"], m["outcome"]))
	}
	return out
}

func alike[T comparable](t testing.TB, what string, got []T, want ...T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestWireCompensation(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(undoable("undo", `{"triggers":["node-failure"],"retry":{"backoffMs":5}}`, "core.fail"))
	s.register(undoable("not-asked", `{"triggers":["run-cancel"]}`, "core.fail"))
	id, other := s.run("undo"), s.run("not-asked")
	s.await(id, "failed")
	for range 2 {
		c := s.compensation(id)
		if c["status"] != "completed" || c["runId"] != id {
			t.Errorf("%v", c)
		}
		alike(t, "attempts", attempts(c), "ship/1 succeeded", "charge/1 succeeded")
		for i, e := range c["plan"].([]any) {
			m := e.(map[string]any)
			retry := m["policy"].(map[string]any)["retry"].(map[string]any)
			if m["nodeId"] != []string{"ship", "charge"}[i] || m["order"] != float64(i+1) || retry["maxAttempts"] != 3.0 || retry["backoffMs"] != 5.0 {
				t.Errorf("entry %d: %v", i, m)
			}
		}
		if st := s.snapshot(id); st["status"] != "failed" || st["compensationStatus"] != "completed" {
			t.Errorf("snapshot: %v, %v", st["status"], st["compensationStatus"])
		}
		s.await(other, "failed")
		c = s.compensation(other)
		if c["status"] != "none" || len(c["plan"].([]any))+len(c["attempts"].([]any)) > 0 || s.snapshot(other)["compensationStatus"] != "none" {
			t.Errorf("nobody asked, and yet: %v", c)
		}
		for _, r := range s.do("GET", "/runs", nil).want(t, 200).json["runs"].([]any) {
			m := r.(map[string]any)
			if want := map[string]any{id: "completed", other: "none"}[m["runId"].(string)]; m["compensationStatus"] != want {
				t.Errorf("list: %v", m)
			}
		}
		s.restart()
	}
	types := s.types(id)
	at := slices.Index(types, "run.failed")
	alike(t, "behind the end", types[at+1:], "log.appended", "compensation.requested", "log.appended", "compensation.started",
		"log.appended", "log.appended", "log.appended", "compensation.completed")
	// What is undone with what is nobody's business.
	for _, e := range s.docs(id)[at+1:] {
		if strings.Contains(string(e), "s-1") || strings.Contains(string(e), "c-1") {
			t.Errorf("%s", e)
		}
	}
	s.do("GET", "/runs/default~2F0123456789abcdef/compensation", nil).refused(t, 404, "not_found")
	s.do("GET", "/runs/conformance-no-such-run/compensation", nil).refused(t, 404, "not_found")
	s.do("GET", "/runs/"+seg(id)+"/compensation", nil, "Authorization", s.key("reads-no-runs-reads-no-runs-reads-no", "default", "runs:create")).refused(t, 403, "forbidden")
}

// held is a node type that undoes something once it is let; a call that is not
// wanted any more leaves.
func held(let chan struct{}) node.Type {
	return node.Type{ID: "test.undo", Run: func(ctx context.Context, in *node.Input) (node.Result, error) {
		select {
		case <-let:
			return node.Done(nil), nil
		case <-ctx.Done():
			return node.Result{}, ctx.Err()
		}
	}}
}

// A stream ends with the run, a poll calls it terminal; who asks for what lies
// behind gets it as it happens, until the undoing rests.
func TestWireFollowsAnUndoing(t *testing.T) {
	t.Parallel()
	let := make(chan struct{})
	s := start(t, func(c *fermata.Config) { c.Nodes = []node.Type{held(let)} })
	def := undoable("undo", `{"triggers":["node-failure"]}`, "core.fail")
	def["nodes"].([]any)[0].(map[string]any)["compensation"].(map[string]any)["nodeTypeId"] = "test.undo"
	s.register(def)
	id := s.run("undo")
	s.await(id, "failed")
	if c := s.compensation(id); c["status"] != "running" {
		t.Fatalf("%v", c)
	}
	whole := s.subscribe(id, "?streamMode=debug").frames()
	end := whole[len(whole)-1]
	if end.name != "run.failed" {
		t.Errorf("the stream ends with %s", end.name)
	}
	batch := s.subscribe(id, "?streamMode=debug&bufferMs=50").frames()
	if got := s.batch(batch[len(batch)-1]); got[len(got)-1].Type != "run.failed" {
		t.Errorf("the batches end with %s", got[len(got)-1].Type)
	}
	page := s.do("GET", "/runs/"+seg(id)+"/events/poll", nil).want(t, 200).json
	last := fmt.Sprint(page["lastSequence"])
	if page["isTerminal"] != true || page["status"] != "failed" {
		t.Errorf("poll: %v %v", page["isTerminal"], page["status"])
	}
	// Nothing follows for the moment: a poll waits, and a stream stays open.
	quiet := s.do("GET", "/runs/"+seg(id)+"/events/poll?timeout=1&afterSequence="+last, nil).want(t, 200).json
	if len(quiet["events"].([]any)) != 0 || quiet["isTerminal"] != true {
		t.Errorf("poll behind the end: %v", quiet)
	}
	tail := s.subscribe(id, "?streamMode=debug", "Last-Event-ID", end.id)
	var seen []string
	for len(seen) < 6 {
		f, ok := tail.next()
		if !ok {
			t.Fatalf("the stream ended while the run was being undone, after %v", seen)
		}
		if f.comment == "" {
			seen = append(seen, f.name)
		}
	}
	close(let)
	for _, f := range tail.frames() {
		seen = append(seen, f.name)
	}
	alike(t, "behind the end", seen, "log.appended", "compensation.requested", "log.appended", "compensation.started",
		"log.appended", "log.appended", "log.appended", "compensation.completed")
	if rest := s.subscribe(id, "?streamMode=debug", "Last-Event-ID", end.id).frames(); len(rest) != len(seen) {
		t.Errorf("%d frames afterwards, want %d", len(rest), len(seen))
	}
	first := s.subscribe(id, "?streamMode=values", "Last-Event-ID", end.id).frames()
	if len(first) != 1 || first[0].name != "state.snapshot" || !strings.Contains(string(first[0].data), `"status":"failed"`) {
		t.Errorf("values behind the end: %d frames", len(first))
	}
}

// A host that dies while it undoes goes on where it was.
func TestWireUndoingSurvivesARestart(t *testing.T) {
	t.Parallel()
	let := make(chan struct{})
	s := start(t, func(c *fermata.Config) { c.Nodes = []node.Type{held(let)} })
	def := undoable("undo", `{"triggers":["node-failure"]}`, "core.fail")
	def["nodes"].([]any)[0].(map[string]any)["compensation"].(map[string]any)["nodeTypeId"] = "test.undo"
	s.register(def)
	id := s.run("undo")
	s.await(id, "failed")
	s.restart()
	alike(t, "attempts", attempts(s.compensation(id)), "ship/1 succeeded")
	close(let)
	s.undone(id, "completed")
	alike(t, "attempts", attempts(s.compensation(id)), "ship/1 succeeded", "charge/2 succeeded")
}

// undone waits until a compensation has come to a status.
func (s *server) undone(id, status string) map[string]any {
	s.t.Helper()
	sub := s.subscribe(id, "?streamMode=debug", "Last-Event-ID", "0")
	defer sub.close()
	sub.frames() // to the end of the run
	for range 2000 {
		if c := s.compensation(id); c["status"] == status {
			return c
		}
		s.do("GET", fmt.Sprintf("/runs/%s/events/poll?timeout=1&afterSequence=%v", seg(id), s.last(id)), nil)
	}
	s.t.Fatalf("run %s: %v, want %s", id, s.compensation(id), status)
	return nil
}

func (s *server) last(id string) any {
	return s.do("GET", "/runs/"+seg(id)+"/events/poll?timeout=1", nil).want(s.t, 200).json["lastSequence"]
}

func TestWireOperateCompensation(t *testing.T) {
	t.Parallel()
	s := start(t)
	def := undoable("undo", `{"triggers":["operator-request"],"exhaustedDisposition":"manual-intervention"}`, "")
	def["nodes"].([]any)[1].(map[string]any)["compensation"] = map[string]any{"nodeTypeId": "core.fail"}
	s.register(def)
	s.register(gate("gate"))
	id, waiting := s.run("undo"), s.run("gate")
	s.await(id, "completed")
	field := func(a answer, name string) {
		t.Helper()
		if a.refused(t, 400, "validation_error").json["details"].(map[string]any)["field"] != name {
			t.Errorf("%s", a.body)
		}
	}
	field(s.operate(id, `{"action":"undo"}`), "action")
	field(s.operate(id, `{}`), "action")
	field(s.operate(id, `{"action":"retry","order":0}`), "order")
	field(s.operate(id, `{"action":"start","order":1}`), "order")
	field(s.operate(id, `{"action":"skip"}`), "reason")
	field(s.operate(id, `{"action":"retry","nodeTypeId":"core.noop"}`), "nodeTypeId")
	field(s.operate(id, `{"action":"substitute"}`), "nodeTypeId")
	field(s.operate(id, `{"action":"substitute","nodeTypeId":"acme.gone"}`), "nodeTypeId")
	field(s.operate(id, `{"action":"substitute","nodeTypeId":"core.subWorkflow"}`), "nodeTypeId")
	field(s.operate(id, `{"action":"retry","more":1}`), "more")
	s.operate(id, `{"action":"retry"}`).refused(t, 409, "run_state_conflict")
	s.operate(waiting, `{"action":"start"}`).refused(t, 409, "run_state_conflict")
	s.operate("default/0123456789abcdef", `{"action":"start"}`).refused(t, 404, "not_found")
	lesser := s.key("may-cancel-may-cancel-may-cancel-may", "default", "runs:create", "runs:read", "runs:cancel", "approvals:respond", "fermata:workflows:write")
	denied := s.operate(id, `{"action":"start"}`, "Authorization", lesser).refused(t, 403, "forbidden")
	if denied.json["details"].(map[string]any)["requiredScope"] != "fermata:compensation:operate" {
		t.Errorf("%s", denied.body)
	}
	before := len(s.docs(id))

	if got := s.operate(id, `{"action":"start"}`).want(t, 200).json; got["status"] != "manual-intervention" {
		t.Fatalf("%v", got)
	}
	if len(s.docs(id)) == before || s.snapshot(id)["compensationStatus"] != "manual" {
		t.Errorf("%v", s.snapshot(id))
	}
	if got := s.operate(id, `{"action":"retry"}`).want(t, 200).json; got["status"] != "manual-intervention" {
		t.Fatalf("%v", got)
	}
	got := s.operate(id, `{"action":"substitute","nodeTypeId":"core.noop","order":1}`).want(t, 200).json
	if got["status"] != "completed" {
		t.Fatalf("%v", got)
	}
	alike(t, "attempts", attempts(got), "ship/1 failed", "ship/2 failed", "ship/3 succeeded", "charge/1 succeeded")
	s.operate(id, `{"action":"terminate"}`).refused(t, 409, "run_state_conflict")
	for _, want := range []string{"compensation.start", "compensation.retry", "compensation.substitute"} {
		if !strings.Contains(fmt.Sprintf("%s", s.docs(id)), `"action":"`+want+`"`) {
			t.Errorf("%s was not recorded", want)
		}
	}
}

// What must be approved is in the inbox, with what would be done, and can be
// answered by every route, although the run has ended.
func TestWireUndoingIsApproved(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(undoable("undo", `{"triggers":["node-failure"],"approvalScope":"all"}`, "core.fail"))
	id := s.run("undo")
	s.await(id, "failed")
	if got := s.snapshot(id)["compensationStatus"]; got != "pending" {
		t.Fatalf("compensationStatus %v", got)
	}
	s.restart()
	inbox := s.do("GET", "/host/fermata/interrupts", nil).want(t, 200)
	list := inbox.json["interrupts"].([]any)
	if len(list) != 1 || !strings.Contains(string(inbox.body), `"inputs":{"input":"s-1"}`) {
		t.Fatalf("%s", inbox.body)
	}
	entry := list[0].(map[string]any)
	if entry["runId"] != id || entry["nodeId"] != "ship" || entry["kind"] != "approval" {
		t.Errorf("%v", entry)
	}
	s.answer(id, "charge", map[string]any{"action": "accept"}).refused(t, 409, "interrupt_already_resolved")
	s.answer(id, "ship", map[string]any{"action": "refine"}).refused(t, 400, "validation_error")
	s.use(s.token(id, "ship"), map[string]any{"action": "reject"}).want(t, 200)
	s.answer(id, "charge", map[string]any{"action": "accept"}).want(t, 200)
	alike(t, "attempts", attempts(s.compensation(id)), "ship/1 failed", "charge/1 succeeded")
	if got := s.snapshot(id)["compensationStatus"]; got != "partial" {
		t.Errorf("compensationStatus %v", got)
	}
	if n := len(s.do("GET", "/host/fermata/interrupts", nil).want(t, 200).json["interrupts"].([]any)); n != 0 {
		t.Errorf("%d interrupts are left in the inbox", n)
	}
}
