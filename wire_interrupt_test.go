package fermata_test

import (
	"sync"
	"testing"
)

// Two answers at once: one wins, the other is told so, and the log holds one
// decision. Many rounds, with more than two as well.
func TestWireConcurrentAnswers(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("gate"))
	for round := range 60 {
		id := s.run("gate")
		s.await(id, "waiting-approval")
		n := 2 + round%3
		got := make([]answer, n)
		var wg sync.WaitGroup
		gun := make(chan struct{})
		for i := range n {
			wg.Go(func() {
				<-gun
				got[i] = s.as(t).answer(id, "ok", map[string]any{"action": []string{"accept", "reject"}[i%2]})
			})
		}
		close(gun)
		wg.Wait()
		won := -1
		for i, a := range got {
			switch {
			case a.status == 200 && won < 0:
				won = i
			case a.status == 200:
				t.Fatalf("round %d: two answers won", round)
			default:
				a.refused(t, 409, "interrupt_already_resolved")
			}
		}
		if won < 0 {
			t.Fatalf("round %d: no answer won", round)
		}
		s.subscribe(id, "").frames() // to the end
		want := []string{"completed", "failed"}[won%2]
		if st := s.snapshot(id)["status"]; st != want {
			t.Fatalf("round %d: %v, want %s", round, st, want)
		}
		resolved := 0
		for _, typ := range s.types(id) {
			if typ == "interrupt.resolved" {
				resolved++
			}
		}
		if resolved != 1 {
			t.Fatalf("round %d: %d decisions in the log", round, resolved)
		}
	}
}

// An answer and a cancel at once: whoever is second is told, the run ends once.
func TestWireAnswerAgainstCancel(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("gate"))
	for round := range 30 {
		id := s.run("gate")
		s.await(id, "waiting-approval")
		var answered, cancelled answer
		var wg sync.WaitGroup
		wg.Go(func() { answered = s.as(t).answer(id, "ok", map[string]any{"action": "accept"}) })
		wg.Go(func() { cancelled = s.as(t).do("POST", "/runs/"+seg(id)+"/cancel", nil) })
		wg.Wait()
		if answered.status != 200 {
			answered.refused(t, 409, "interrupt_already_resolved")
			cancelled.want(t, 200)
		} else if cancelled.status != 200 {
			cancelled.refused(t, 409, "run_terminal")
		}
		s.subscribe(id, "").frames()
		terminal := 0
		for _, typ := range s.types(id) {
			switch typ {
			case "run.completed", "run.cancelled", "run.failed":
				terminal++
			}
		}
		if terminal != 1 {
			t.Fatalf("round %d: %d terminal events: %v", round, terminal, s.types(id))
		}
	}
}

func TestWireAnswerRefusals(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("gate"))
	s.register(flow("ask", []any{step("q", "core.clarificationGate", map[string]any{"questions": []any{
		map[string]any{"id": "color", "question": "Which?", "schema": map[string]any{"type": "string", "enum": []string{"red", "blue"}}},
	}})}, []any{}))
	id, ask, done, cancelled := s.run("gate"), s.run("ask"), s.run("gate"), s.run("gate")
	s.await(id, "waiting-approval")
	s.await(ask, "waiting-input")
	s.await(done, "waiting-approval")
	s.await(cancelled, "waiting-approval")
	s.answer(done, "ok", map[string]any{"action": "accept"}).want(t, 200)
	s.await(done, "completed")
	s.do("POST", "/runs/"+seg(cancelled)+"/cancel", nil).want(t, 200)
	s.await(cancelled, "cancelled")
	accept := map[string]any{"action": "accept"}
	for name, c := range map[string]struct {
		run, node string
		value     any
		status    int
		code      string
	}{
		"unknown node":         {id, "nobody", accept, 404, "not_found"},
		"node that never asks": {id, "before", accept, 404, "not_found"},
		"node not reached":     {id, "after", accept, 404, "not_found"},
		"no node id":           {id, "a%20b", accept, 400, "validation_error"},
		"unknown run":          {"default/0123456789abcdef", "ok", accept, 404, "not_found"},
		"answered before":      {done, "ok", accept, 409, "interrupt_already_resolved"},
		"run cancelled":        {cancelled, "ok", accept, 409, "interrupt_already_resolved"},
		"action not offered":   {id, "ok", map[string]any{"action": "refine"}, 400, "validation_error"},
		"no action":            {id, "ok", map[string]any{}, 400, "validation_error"},
		"unknown action":       {id, "ok", map[string]any{"action": "ACCEPT"}, 400, "validation_error"},
		"no object":            {id, "ok", "accept", 400, "validation_error"},
		"null":                 {id, "ok", nil, 400, "validation_error"},
		"edit without data":    {id, "ok", map[string]any{"action": "edit-accept"}, 400, "validation_error"},
		"outside the schema":   {ask, "q", map[string]any{"answers": map[string]any{"color": "green"}}, 400, "validation_error"},
		"question left out":    {ask, "q", map[string]any{"answers": map[string]any{}}, 400, "validation_error"},
		"approval for answers": {ask, "q", accept, 400, "validation_error"},
	} {
		a := s.answer(c.run, c.node, c.value)
		if a.status != c.status {
			t.Errorf("%s: %d %s", name, a.status, a.body)
			continue
		}
		a.refused(t, c.status, c.code)
		if d, _ := a.json["details"].(map[string]any); c.status == 400 && d["field"] == nil {
			t.Errorf("%s: no field in %s", name, a.body)
		}
	}
	if n := len(s.do("GET", "/host/fermata/interrupts", nil).json["interrupts"].([]any)); n != 2 {
		t.Errorf("%d open interrupts after refusals", n)
	}
	a := s.answer(id, "ok", map[string]any{"action": "edit-accept", "editedArtifactData": map[string]any{"n": 1}}).want(t, 200)
	if a.str("runId") != id || a.str("nodeId") != "ok" {
		t.Errorf("%s", a.body)
	}
	s.await(id, "completed")
	s.answer(ask, "q", map[string]any{"answers": map[string]any{"color": "blue"}}).want(t, 200)
	s.await(ask, "completed")
}

// An external event that comes before its wait is kept for it.
func TestWireEarlyEvent(t *testing.T) {
	t.Parallel()
	s, entered, release := holder(t)
	s.register(flow("early", []any{step("h", "test.hold", nil), step("paid", "core.interrupt", map[string]any{
		"kind": "external-event", "data": map[string]any{"eventType": "paid", "correlation": map[string]any{"order": "7"}},
	})}, []any{edge("h", "paid")}))
	id := s.run("early")
	<-entered
	a := s.answer(id, "paid", map[string]any{"order": "7", "amount": 3})
	a.want(t, 200)
	release <- struct{}{}
	s.subscribe(id, "").frames()
	if st := s.snapshot(id)["status"]; st != "completed" {
		t.Errorf("status %v: %v", st, s.types(id))
	}
}
