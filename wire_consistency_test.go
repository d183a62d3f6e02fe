package fermata_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// sequence is the sequence a snapshot is the fold of, as its ETag has it.
func sequence(t testing.TB, a answer) int64 {
	t.Helper()
	tag := strings.Trim(a.header.Get("ETag"), `"`)
	n, err := strconv.ParseInt(tag[strings.LastIndexByte(tag, '-')+1:], 10, 64)
	if err != nil {
		t.Fatalf("ETag %q", tag)
	}
	return n
}

// What one way of reading has shown, every other way shows from then on.
func TestWireReadsAgree(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(ladder(8))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			s := s.as(t)
			id := s.run("ladder")
			at := "/runs/" + seg(id)
			seen := int64(-1)
			notBefore := func(what string, n int64) {
				if n < seen {
					t.Errorf("%s shows %d after %d was shown", what, n, seen)
				}
				seen = max(seen, n)
			}
			for answered := false; ; {
				snap := s.do("GET", at, nil).want(t, 200)
				notBefore("the snapshot", sequence(t, snap))
				page := s.do("GET", at+"/events/poll?timeout=1", nil).want(t, 200)
				events := page.json["events"].([]any)
				if last := page.json["lastSequence"].(float64); int(last) != len(events)-1 {
					t.Errorf("lastSequence %v with %d events", last, len(events))
				}
				notBefore("poll", int64(len(events)-1))
				list := s.do("GET", "/runs?limit=200", nil).want(t, 200)
				if !strings.Contains(string(list.body), id) {
					t.Error("the list lacks the run")
				}
				last := events[len(events)-1].(map[string]any)["type"]
				switch {
				case last == "run.completed":
					if st := s.snapshot(id)["status"]; st != "completed" || page.json["status"] != "completed" {
						t.Errorf("status %v and %v at the end of the log", st, page.json["status"])
					}
					if done := s.do("GET", "/runs?limit=200&status=completed", nil).want(t, 200); !strings.Contains(string(done.body), id) {
						t.Error("the list of completed runs lacks the run")
					}
					return
				case snap.str("status") == "waiting-approval" && !answered:
					if open := s.do("GET", "/host/fermata/interrupts?limit=200", nil); !strings.Contains(string(open.body), id) {
						t.Error("the inbox lacks the run")
					}
					s.answer(id, "ok", map[string]any{"action": "accept"}).want(t, 200)
					answered = true
					if open := s.do("GET", "/host/fermata/interrupts?limit=200", nil); strings.Contains(string(open.body), id) {
						t.Error("the inbox still shows the run")
					}
				}
			}
		})
	}
	wg.Wait()
}

// The moment a stream shows the end, everything else knows of it.
func TestWireEndIsKnownEverywhere(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(flow("one", []any{step("a", "core.noop", nil)}, []any{}))
	for range 50 {
		id := s.run("one")
		frames := s.subscribe(id, "?streamMode=debug").frames()
		last := frames[len(frames)-1]
		if last.name != "run.completed" || len(frames) != 4 {
			t.Fatalf("%d frames, the last %q", len(frames), last.name)
		}
		if a := s.do("GET", "/runs/"+seg(id), nil); a.str("status") != "completed" || sequence(t, a) != 3 {
			t.Fatalf("%s", a.body)
		}
		if a := s.do("GET", "/runs?limit=1", nil); !strings.Contains(string(a.body), `"completed"`) {
			t.Fatalf("%s", a.body)
		}
		s.do("POST", "/runs/"+seg(id)+"/cancel", nil).refused(t, 409, "run_terminal")
	}
}

// A cancel takes the children along, and their logs say whose it was.
func TestWireCancelTakesChildrenAlong(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("child"))
	s.register(flow("parent", []any{step("p", "core.subWorkflow", map[string]any{"workflowId": "child"})}, []any{}))
	id := s.run("parent")
	var child string
	for child == "" {
		for _, r := range s.do("GET", "/runs?workflowId=child&status=waiting-approval", nil).json["runs"].([]any) {
			child = r.(map[string]any)["runId"].(string)
		}
	}
	s.do("POST", "/runs/"+seg(id)+"/cancel", `{"reason":"stop"}`).want(t, 200)
	for run, want := range map[string]string{id: "stop", child: "parent-cancelled"} {
		frames := s.subscribe(run, "").frames()
		e := validEvent(t, frames[len(frames)-1].data)
		if e.Type != "run.cancelled" || !strings.Contains(string(e.Payload), fmt.Sprintf(`"reason":%q`, want)) {
			t.Errorf("%s: %s %s", run, e.Type, e.Payload)
		}
		if run == child && !strings.Contains(string(e.Payload), id) {
			t.Errorf("the child's log does not name its parent: %s", e.Payload)
		}
	}
	s.answer(child, "ok", map[string]any{"action": "accept"}).refused(t, 409, "interrupt_already_resolved")
}
