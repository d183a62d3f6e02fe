package fermata_test

import (
	"context"
	"strings"
	"testing"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/node"
)

func TestWireCancel(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("gate"))
	s.register(flow("one", []any{step("a", "core.noop", nil)}, []any{}))
	id := s.run("gate")
	s.await(id, "waiting-approval")
	if got := s.do("POST", "/runs/"+seg(id)+"/cancel", `{"reason":"enough"}`).want(t, 200).str("status"); got != "cancelled" && got != "cancelling" {
		t.Errorf("status %s", got)
	}
	s.await(id, "cancelled")
	last := s.events(id)[len(s.events(id))-1]
	if p := last["payload"].(map[string]any); last["type"] != "run.cancelled" || p["reason"] != "enough" || p["cancelledBy"] == nil {
		t.Errorf("%v", last)
	}
	done := s.run("one")
	s.await(done, "completed")
	failing := s.failed()
	for run, status := range map[string]string{id: "cancelled", done: "completed", failing: "failed"} {
		log := len(s.docs(run))
		for _, verb := range []string{"/cancel", ":pause", ":resume"} {
			a := s.do("POST", "/runs/"+seg(run)+verb, nil).refused(t, 409, "run_terminal")
			if got := a.json["details"].(map[string]any)["runStatus"]; got != status {
				t.Errorf("%s of a run that is %s: %s", verb, status, a.body)
			}
		}
		if n := len(s.docs(run)); n != log {
			t.Errorf("refusals made a %s run grow from %d to %d events", status, log, n)
		}
	}
	s.do("POST", "/runs/"+seg(id)+"/cancel", map[string]any{"reason": strings.Repeat("x", 5000)}).refused(t, 400, "validation_error")
}

// failed is a run that has failed.
func (s *server) failed() string {
	s.t.Helper()
	s.register(flow("fail", []any{step("a", "core.fail", map[string]any{"message": "no"})}, []any{}))
	id := s.run("fail")
	s.await(id, "failed")
	return id
}

func TestWireBulkCancel(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("gate"))
	s.register(flow("one", []any{step("a", "core.noop", nil)}, []any{}))
	open, other, done := s.run("gate"), s.run("gate"), s.run("one")
	s.await(open, "waiting-approval")
	s.await(other, "waiting-approval")
	s.await(done, "completed")
	asked := []string{done, open, "default/0123456789abcdefghjkmnpqrs", "foreign/0123456789abcdefghjkmnpqrs", other, open, done}
	want := []string{"run_terminal", "", "not_found", "id_tenant_mismatch", "", "", "run_terminal"}
	bulk := func() []any {
		return s.do("POST", "/runs:bulk-cancel", map[string]any{"runIds": asked, "reason": "all"}).want(t, 200).json["results"].([]any)
	}
	check := func(results []any) {
		t.Helper()
		if len(results) != len(asked) {
			t.Fatalf("%d results", len(results))
		}
		for i, r := range results {
			m := r.(map[string]any)
			code := ""
			if e, _ := m["error"].(map[string]any); e != nil {
				code = e["error"].(string)
			}
			if m["runId"] != asked[i] || m["ok"] != (want[i] == "") || code != want[i] {
				t.Errorf("result %d: %v, want %q for %s", i, m, want[i], asked[i])
			}
		}
	}
	check(bulk())
	s.await(open, "cancelled")
	s.await(other, "cancelled")
	want[1], want[4], want[5] = "run_terminal", "run_terminal", "run_terminal"
	check(bulk()) // a 200 though every one failed

	list := func(n int) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = "default/0123456789abcdefghjkmnpqrs"
		}
		return out
	}
	s.do("POST", "/runs:bulk-cancel", map[string]any{"runIds": list(100)}).want(t, 200)
	a := s.do("POST", "/runs:bulk-cancel", map[string]any{"runIds": list(101)}).refused(t, 400, "validation_error")
	if a.json["details"].(map[string]any)["maxRunIds"] != 100.0 {
		t.Errorf("%s", a.body)
	}
	for body, field := range map[string]string{
		`{"runIds":[]}`: "runIds", `{}`: "runIds", `{"runIds":["x"]}`: "runIds", `{"runIds":["default~2F0123456789abcdef"]}`: "runIds",
		`{"runIds":[null]}`: "runIds[0]", `{"runIds":[1]}`: "runIds[0]",
		`{"runIds":["default/0123456789abcdef"],"reason":"` + strings.Repeat("x", 513) + `"}`: "reason",
	} {
		a := s.do("POST", "/runs:bulk-cancel", body).refused(t, 400, "validation_error")
		if got := a.json["details"].(map[string]any)["field"]; got != field {
			t.Errorf("%.80s: details name %v", body, got)
		}
	}
	s.do("POST", "/runs:bulk-cancel", `{"runIds":["default/0123456789abcdef"],"reason":"`+strings.Repeat("\u00df", 512)+`"}`).want(t, 200)
}

// holder is a host with a node type test.hold that executes until let go.
func holder(t *testing.T) (s *server, entered, release chan struct{}) {
	t.Helper()
	entered, release = make(chan struct{}, 16), make(chan struct{}, 16)
	s = start(t, func(c *fermata.Config) {
		c.Nodes = append(c.Nodes, node.Type{ID: "test.hold", Description: "Executes until it is let go.", Run: func(ctx context.Context, _ *node.Input) (node.Result, error) {
			entered <- struct{}{}
			select {
			case <-release:
				return node.Done(nil), nil
			case <-ctx.Done():
				return node.Result{}, ctx.Err()
			}
		}})
	})
	s.register(flow("hold", []any{step("h", "test.hold", nil), step("after", "core.noop", nil)}, []any{edge("h", "after")}))
	return s, entered, release
}

func (s *server) conflict(id, verb, status string) {
	s.t.Helper()
	a := s.do("POST", "/runs/"+seg(id)+verb, nil).refused(s.t, 409, "run_state_conflict")
	if got := a.json["details"].(map[string]any)["runStatus"]; got != status {
		s.t.Errorf("%s of a run that is %s: %s", verb, status, a.body)
	}
}

func TestWirePauseDrains(t *testing.T) {
	t.Parallel()
	s, entered, release := holder(t)
	id := s.run("hold")
	<-entered
	s.conflict(id, ":resume", "running")
	sub := s.subscribe(id, "")
	a := s.do("POST", "/runs/"+seg(id)+":pause", `{"reason":"lunch"}`).want(t, 202)
	if a.json["status"] != "paused" {
		t.Errorf("%s", a.body)
	}
	s.conflict(id, ":pause", "paused")
	release <- struct{}{}
	for {
		f, ok := sub.next()
		if !ok {
			t.Fatal("the stream ended")
		}
		if f.name == "run.paused" {
			e := validEvent(t, f.data)
			if !strings.Contains(string(e.Payload), `"drain-current-node"`) || !strings.Contains(string(e.Payload), `"lunch"`) {
				t.Errorf("%s", e.Payload)
			}
			break
		}
	}
	if got := s.types(id); got[len(got)-2] != "node.completed" || s.snapshot(id)["status"] != "paused" {
		t.Errorf("%v", got)
	}
	b := s.do("POST", "/runs/"+seg(id)+":resume", nil).want(t, 202)
	if b.str("status") != "running" || b.str("resumedAt") == "" {
		t.Errorf("%s", b.body)
	}
	s.await(id, "completed")
}

func TestWirePauseImmediately(t *testing.T) {
	t.Parallel()
	s, entered, release := holder(t)
	id := s.run("hold")
	<-entered
	a := s.do("POST", "/runs/"+seg(id)+":pause", `{"drainPolicy":"immediate"}`).want(t, 202)
	if a.str("pausedAt") == "" || s.snapshot(id)["status"] != "paused" {
		t.Errorf("%s", a.body)
	}
	events := s.events(id)
	last := events[len(events)-1]["payload"].(map[string]any)
	if last["drainPolicy"] != "immediate" || last["interruptedNodeId"] != "h" {
		t.Errorf("run.paused %v", last)
	}
	s.conflict(id, ":pause", "paused")
	s.do("POST", "/runs/"+seg(id)+":resume", nil).want(t, 202)
	<-entered // a fresh attempt
	release <- struct{}{}
	s.await(id, "completed")
	for _, typ := range s.types(id) {
		if typ == "node.failed" {
			t.Error("the attempt that was cut has a terminal event")
		}
	}
}

func TestWirePauseRefusals(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("gate"))
	id := s.run("gate")
	s.await(id, "waiting-approval")
	at := "/runs/" + seg(id)
	for _, policy := range []string{`""`, `"now"`, `"Immediate"`} {
		a := s.do("POST", at+":pause", `{"drainPolicy":`+policy+`}`).refused(t, 400, "validation_error")
		if a.json["details"].(map[string]any)["field"] != "drainPolicy" {
			t.Errorf("%s", a.body)
		}
	}
	s.conflict(id, ":resume", "waiting-approval")
	s.do("POST", at+":pause", nil).want(t, 202)
	s.conflict(id, ":pause", "paused")
	// Only a resume or a cancel leads out: an answer is kept, the run stays paused.
	s.answer(id, "ok", map[string]any{"action": "accept"}).want(t, 200)
	if st := s.snapshot(id)["status"]; st != "paused" {
		t.Errorf("status %v", st)
	}
	s.do("POST", at+":resume", nil).want(t, 202)
	s.await(id, "completed")
	other := s.run("gate")
	s.await(other, "waiting-approval")
	s.do("POST", "/runs/"+seg(other)+":pause", nil).want(t, 202)
	s.do("POST", "/runs/"+seg(other)+"/cancel", nil).want(t, 200)
	s.await(other, "cancelled")
}

// A run named more than once is cancelled once, and every entry says so.
func TestWireBulkCancelNamesARunTwice(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("gate"))
	for range 10 {
		id := s.run("gate")
		s.await(id, "waiting-approval")
		asked := []string{id, id, id, id, id, id}
		for _, r := range s.do("POST", "/runs:bulk-cancel", map[string]any{"runIds": asked}).want(t, 200).json["results"].([]any) {
			if m := r.(map[string]any); m["ok"] != true {
				t.Fatalf("%v", m)
			}
		}
	}
}
