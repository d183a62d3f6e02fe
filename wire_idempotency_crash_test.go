package fermata_test

import (
	"testing"
)

// crashed brings the host up again as if it had been killed after what it did
// was durable, and before what became of its requests was: their records are
// claims of an instance that is gone. Then it does sql to the database as well.
func (s *server) crashed(sql string) {
	s.t.Helper()
	s.down()
	s.tamper(`UPDATE idempotency SET instance = 'i-gone', status = NULL, header = NULL, body = NULL;` + sql)
	s.up()
}

// TestWireCrashAfterCreate: the run of a request whose answer was lost is found
// again, whatever has become of it and of its workflow.
func TestWireCrashAfterCreate(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("g"))
	s.register(flow("short", []any{step("a", "core.noop", nil)}, []any{}))
	for i, workflow := range []string{"g", "short"} {
		body := map[string]any{"workflowId": workflow}
		first := s.do("POST", "/runs", body, keyHeader, idem(i)).fresh(t, 201)
		if workflow == "short" {
			s.await(first.str("runId"), "completed")
		}
		s.crashed("")
		s.do("DELETE", "/host/fermata/workflows/"+workflow, nil).want(t, 204)
		s.do("POST", "/runs", map[string]any{"workflowId": "other"}, keyHeader, idem(i)).refused(t, 409, "idempotency_key_mismatch")
		again := s.do("POST", "/runs", body, keyHeader, idem(i)).fresh(t, 201)
		if again.str("runId") != first.str("runId") {
			t.Errorf("%s, then %s", first.body, again.body)
		}
		s.do("POST", "/runs", body, keyHeader, idem(i)).replays(t, again)
		if n := s.runCount(); n != i+1 {
			t.Errorf("%d runs of %d keys", n, i+1)
		}
	}
}

// TestWireCrashBeforeCreate: a run that did not come into being does so in the
// next try, under the id that was chosen for it.
func TestWireCrashBeforeCreate(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("g"))
	body := map[string]any{"workflowId": "g"}
	first := s.do("POST", "/runs", body, keyHeader, idem(1)).fresh(t, 201)
	s.crashed(`DELETE FROM runs; DELETE FROM events; DELETE FROM checkpoints; DELETE FROM interrupts`)
	if n := s.runCount(); n != 0 {
		t.Fatalf("%d runs", n)
	}
	again := s.do("POST", "/runs", body, keyHeader, idem(1)).fresh(t, 201)
	if again.str("runId") != first.str("runId") || s.runCount() != 1 {
		t.Errorf("%s, then %s; %d runs", first.body, again.body, s.runCount())
	}
	s.answer(again.str("runId"), "ok", map[string]any{"action": "accept"}).want(t, 200)
	s.await(again.str("runId"), "completed")
}

// TestWireCrashAfterEveryMutation: a try that follows one that came through is a
// success, and does nothing a second time.
func TestWireCrashAfterEveryMutation(t *testing.T) {
	t.Parallel()
	s := start(t, withWebhooks)
	s.register(gate("g"))
	for i, r := range s.host.Routes() {
		prepare := mutations[r.ID]
		if prepare == nil {
			continue
		}
		path, body := prepare(s)
		first := s.do(r.Method, path, body, keyHeader, idem(i))
		if first.status >= 300 {
			t.Fatalf("%s: %d %s", r.ID, first.status, first.body)
		}
		lengths := s.lengths()
		s.crashed("")
		again := s.do(r.Method, path, body, keyHeader, idem(i))
		if again.header.Get(replayHeader) != "" || again.status >= 300 {
			t.Errorf("%s: after a crash %d %s", r.ID, again.status, again.body)
		}
		for _, member := range []string{"runId", "status", "nodeId", "workflowId", "digest", "webhookId", "secret", "rotatedAt", "state"} {
			// A run may have gone on meanwhile, and a version is new only once.
			if was, is := first.str(member), again.str(member); was != is && r.ID != "resolveInterruptByRun" {
				t.Errorf("%s: %s %q, then %q", r.ID, member, was, is)
			}
		}
		for id, n := range s.lengths() {
			if n != lengths[id] {
				t.Errorf("%s: the log of %s grew from %d to %d", r.ID, id, lengths[id], n)
			}
		}
		s.do(r.Method, path, body, keyHeader, idem(i)).replays(t, again)
	}
}

// lengths is how long every run's log is, once nothing moves.
func (s *server) lengths() map[string]int {
	s.t.Helper()
	out := map[string]int{}
	for _, r := range s.do("GET", "/runs?limit=200", nil).want(s.t, 200).json["runs"].([]any) {
		id := r.(map[string]any)["runId"].(string)
		s.await(id, "waiting-approval", "paused", "completed", "cancelled")
		out[id] = len(s.docs(id))
	}
	return out
}

// TestWireCrashOfAnAnswer: an answer is known again by its request only. Without
// a key, or under another, an answer that comes too late stays a conflict.
func TestWireCrashOfAnAnswer(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("g"))
	s.register(flow("early", []any{
		step("ok", "core.approvalGate", map[string]any{"title": "Go on?", "actions": []string{"accept"}}),
		step("wait", "core.interrupt", map[string]any{"kind": "external-event", "data": map[string]any{"eventType": "paid", "correlation": map[string]any{"n": 1}}}),
	}, []any{edge("ok", "wait")}))
	accept := map[string]any{"resumeValue": map[string]any{"action": "accept"}}

	id := s.run("g")
	path := "/runs/" + seg(id) + "/interrupts/ok"
	s.do("POST", path, accept, keyHeader, idem(1)).fresh(t, 200)
	s.await(id, "completed")
	s.crashed("")
	s.do("POST", path, accept).refused(t, 409, "interrupt_already_resolved")
	s.do("POST", path, accept, keyHeader, idem(2)).refused(t, 409, "interrupt_already_resolved")
	a := s.do("POST", path, accept, keyHeader, idem(1)).fresh(t, 200)
	if a.str("status") != "completed" {
		t.Errorf("%s", a.body)
	}

	// The first try did not get that far, and somebody else answered meanwhile.
	lost := s.run("g")
	path = "/runs/" + seg(lost) + "/interrupts/ok"
	s.do("POST", path, map[string]any{"resumeValue": map[string]any{"action": "nope"}}, keyHeader, idem(3)).want(t, 400)
	s.do("POST", path, accept, keyHeader, idem(4)).want(t, 200)
	s.crashed("")
	s.do("POST", path, accept, keyHeader, idem(3)).refused(t, 409, "interrupt_already_resolved")

	// An answer that was kept for later is not kept twice.
	early := s.run("early")
	path = "/runs/" + seg(early) + "/interrupts/wait"
	signal := map[string]any{"resumeValue": map[string]any{"n": 1}}
	s.do("POST", path, signal, keyHeader, idem(5)).fresh(t, 200)
	n := len(s.docs(early))
	s.crashed("")
	s.do("POST", path, signal, keyHeader, idem(5)).fresh(t, 200)
	if got := len(s.docs(early)); got != n {
		t.Errorf("the log grew from %d to %d", n, got)
	}
}
