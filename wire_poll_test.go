package fermata_test

import (
	"fmt"
	"testing"
	"time"
)

func TestWirePollCursor(t *testing.T) {
	t.Parallel()
	s, id := talker(t)
	log := s.docs(id)
	end := len(log) - 1
	for after := -1; after <= end+3; after++ {
		query := "?timeout=1"
		if after >= 0 {
			query += fmt.Sprint("&afterSequence=", after)
		}
		a := s.do("GET", "/runs/"+seg(id)+"/events/poll"+query, nil).want(t, 200)
		events := a.json["events"].([]any)
		if want := max(0, end-after); len(events) != want {
			t.Fatalf("%d events after %d, want %d", len(events), after, want)
		}
		for i, e := range events {
			if e.(map[string]any)["sequence"] != float64(after+1+i) {
				t.Errorf("event %d after %d: %v", i, after, e)
			}
		}
		if a.json["lastSequence"] != float64(end) || a.json["isTerminal"] != true || a.json["status"] != "completed" || a.json["runId"] != id {
			t.Errorf("after %d: %s", after, a.body)
		}
	}
}

func TestWirePollRefusals(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("gate"))
	at := "/runs/" + seg(s.run("gate")) + "/events/poll?"
	for query, field := range map[string]string{
		"timeout=0": "timeout", "timeout=61": "timeout", "timeout=-1": "timeout", "timeout=x": "timeout", "timeout=": "timeout", "timeout=1.5": "timeout",
		"afterSequence=-1": "afterSequence", "afterSequence=x": "afterSequence", "afterSequence=": "afterSequence", "afterSequence=1e1": "afterSequence",
		"afterSequence=9007199254740993": "afterSequence", "afterSequence=1&afterSequence=2": "afterSequence",
	} {
		a := s.do("GET", at+query, nil).refused(t, 400, "validation_error")
		if got := a.json["details"].(map[string]any)["field"]; got != field {
			t.Errorf("%s: details name %v", query, got)
		}
	}
}

// A poll waits for news and returns with it; it says that the run is terminal
// only together with the last event.
func TestWirePollWaits(t *testing.T) {
	t.Parallel()
	s, entered, release := holder(t)
	id := s.run("hold")
	<-entered
	after, terminal := int64(-1), false
	answers := make(chan answer, 1)
	poll := func() {
		s := s.as(t)
		answers <- s.do("GET", fmt.Sprintf("/runs/%s/events/poll?timeout=60&afterSequence=%d", seg(id), after), nil)
	}
	after = int64(len(s.docs(id)) - 1)
	go poll()
	release <- struct{}{}
	for !terminal {
		var a answer
		select {
		case a = <-answers:
		case <-time.After(hang):
			t.Fatal("the poll missed the news")
		}
		events := a.want(t, 200).json["events"].([]any)
		if len(events) == 0 {
			t.Fatalf("a poll without news: %s", a.body)
		}
		var last map[string]any
		for _, e := range events {
			last = e.(map[string]any)
			if after++; last["sequence"] != float64(after) {
				t.Fatalf("%v, want sequence %d", last, after)
			}
		}
		terminal = a.json["isTerminal"] == true
		if (last["type"] == "run.completed") != terminal {
			t.Fatalf("isTerminal %v at %v", terminal, last["type"])
		}
		if !terminal {
			go poll()
		}
	}
	// At the end of a log that is over there is nothing to wait for.
	a := s.do("GET", fmt.Sprintf("/runs/%s/events/poll?timeout=60&afterSequence=%d", seg(id), after), nil).want(t, 200)
	if a.json["isTerminal"] != true || len(a.json["events"].([]any)) != 0 {
		t.Errorf("%s", a.body)
	}
}

// Whoever polls a run to its end from many places at once misses nothing.
func TestWirePollChases(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(flow("ten", ladderNodes(10), ladderEdges(10)))
	for range 20 {
		id := s.run("ten")
		after := int64(-1)
		for {
			query := "?timeout=60"
			if after >= 0 {
				query += fmt.Sprint("&afterSequence=", after)
			}
			a := s.do("GET", "/runs/"+seg(id)+"/events/poll"+query, nil).want(t, 200)
			for _, e := range a.json["events"].([]any) {
				if after++; e.(map[string]any)["sequence"] != float64(after) {
					t.Fatalf("%v, want sequence %d", e, after)
				}
			}
			if last := a.json["lastSequence"].(float64); int64(last) < after {
				t.Fatalf("lastSequence %v before %d", last, after)
			}
			if a.json["isTerminal"] == true {
				if a.json["lastSequence"] != float64(after) || a.json["status"] != "completed" {
					t.Fatalf("terminal at %d: %s", after, a.body)
				}
				break
			}
		}
	}
}

func ladderNodes(n int) (out []any) {
	for i := range n {
		out = append(out, step(fmt.Sprint("n", i), "core.noop", nil))
	}
	return out
}

func ladderEdges(n int) (out []any) {
	for i := range n - 1 {
		out = append(out, edge(fmt.Sprint("n", i), fmt.Sprint("n", i+1)))
	}
	return out
}
