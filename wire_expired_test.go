package fermata_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata"
)

// expireAll lets go of every run that is over.
func (s *server) expireAll() int {
	s.t.Helper()
	all := time.Duration(0)
	p, err := s.host.Prune(context.Background(), fermata.Prune{OlderThan: &all})
	if err != nil {
		s.t.Fatal(err)
	}
	return p.Total
}

// requests that a route takes besides its path; others get an empty object.
var expiredBodies = map[string]string{
	"resolveInterruptByRun": `{"resumeValue":{"action":"accept"}}`,
	"operateCompensation":   `{"action":"retry","order":1}`,
	"forkRun":               `{"mode":"replay"}`,
	"createAnnotation":      `{"signal":"thumbs","rating":1}`,
}

// Every route that names a run says that it has expired, whatever the table
// holds, and says so again after a restart.
func TestWireExpiredRun(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("gate"))
	id, alive := s.waiting(), s.waiting()
	token := s.token(id, "ok")
	inspect := s.issue(id, "ok", map[string]any{"intent": "inspect"}).want(t, 201).str("token")
	key := strings.Repeat("k", 24)
	s.do("POST", "/runs/"+seg(id)+"/interrupts/ok", expiredBodies["resolveInterruptByRun"], "Idempotency-Key", key).want(t, 200)
	s.await(id, "completed")
	tag := s.do("GET", "/runs/"+seg(id), nil).want(t, 200).header.Get("ETag")
	if n := s.expireAll(); n != 1 {
		t.Fatalf("%d runs have expired", n)
	}
	for range 2 {
		seen := 0
		for _, r := range s.host.Routes() {
			if !strings.Contains(r.Pattern, "{runId}") {
				continue
			}
			seen++
			path := strings.NewReplacer("{runId}", seg(id), "{nodeId}", "ok").Replace(r.Pattern)
			var body any
			if r.Body != nil {
				if body = expiredBodies[r.ID]; body == "" {
					body = "{}"
				}
			}
			if r.ID == "diffRun" {
				path += "?against=" + seg(alive)
			}
			a := s.do(r.Method, path, body).refused(t, 410, "run_expired")
			d, _ := a.json["details"].(map[string]any)
			if d["runId"] != id {
				t.Errorf("%s: %s", r.ID, a.body)
			}
			if at, err := time.Parse(time.RFC3339, d["expiredAt"].(string)); err != nil || at.IsZero() {
				t.Errorf("%s: %s", r.ID, a.body)
			}
			// Another tenant's id says nothing, whether such a run was there or not.
			other := strings.Replace(path, seg(id), "other~2F"+strings.SplitN(id, "/", 2)[1], 1)
			s.do(r.Method, other, body).refused(t, 403, "id_tenant_mismatch")
		}
		if seen < 7 {
			t.Errorf("only %d routes name a run", seen)
		}
		s.do("GET", "/runs/"+seg(id), nil, "If-None-Match", tag).refused(t, 410, "run_expired")
		s.do("GET", "/runs/"+seg(id)+"/events?streamMode=values", nil, "Last-Event-ID", "1").refused(t, 410, "run_expired")
		s.look(inspect).refused(t, 410, "run_expired")
		s.use(token, yes).refused(t, 410, "run_expired")
		// What was answered once is answered again: its record has a time of its own.
		s.do("POST", "/runs/"+seg(id)+"/interrupts/ok", expiredBodies["resolveInterruptByRun"], "Idempotency-Key", key).want(t, 200)
		bulk := s.do("POST", "/runs:bulk-cancel", map[string]any{"runIds": []string{id}}).want(t, 200)
		var out struct {
			Results []struct {
				OK    bool
				Error struct{ Error string }
			}
		}
		if err := json.Unmarshal(bulk.body, &out); err != nil || len(out.Results) != 1 || out.Results[0].OK || out.Results[0].Error.Error != "run_expired" {
			t.Errorf("%s: %v", bulk.body, err)
		}
		list := s.do("GET", "/runs?limit=10", nil).want(t, 200)
		if strings.Contains(string(list.body), id) || !strings.Contains(string(list.body), alive) {
			t.Errorf("%s", list.body)
		}
		s.restart()
	}
	s.answer(alive, "ok", yes).want(t, 200)
	s.await(alive, "completed")
}

// A family goes once all of it is over, and never before.
func TestWireFamiliesExpireTogether(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("gate"))
	s.register(flow("quick", []any{step("a", "core.noop", nil)}, []any{}))
	s.register(flow("parent", []any{
		step("first", "core.subWorkflow", map[string]any{"workflowId": "quick"}),
		step("then", "core.subWorkflow", map[string]any{"workflowId": "gate"}),
	}, []any{edge("first", "then")}))
	id := s.run("parent")
	s.await(id, "waiting-approval")
	if n := s.expireAll(); n != 0 {
		t.Fatalf("%d runs of a family that is not over have expired", n)
	}
	var child string
	for _, r := range s.do("GET", "/runs?workflowId=gate", nil).want(t, 200).json["runs"].([]any) {
		child = r.(map[string]any)["runId"].(string)
	}
	s.answer(child, "ok", yes).want(t, 200)
	s.await(id, "completed")
	if n := s.expireAll(); n != 3 {
		t.Errorf("%d of three runs have expired", n)
	}
}
