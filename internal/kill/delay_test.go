package kill

import (
	"testing"
	"time"
)

// TestLongDelaySurvives: a wait of sixty days is still the same wait after the
// host was killed, and after it was stopped in order.
func TestLongDelaySurvives(t *testing.T) {
	h := newHost(t)
	h.start()
	h.register(flow("season", []any{noop("a"), step("d", "core.delay", object{"delayMs": 60 * 24 * 3600 * 1000}), noop("z")}, chain("a", "d", "z")))
	id, err := h.create("season", "t")
	if err != nil {
		t.Fatal(err)
	}
	want := h.snapshot(id).NodeStates["d"].WakesAt
	if at, err := time.Parse(time.RFC3339, want); err != nil || time.Until(at) < 59*24*time.Hour {
		t.Fatalf("the run wakes at %q: %v", want, err)
	}
	for round := range 4 {
		if round%2 == 0 {
			h.kill()
		} else if err := h.stop(); err != nil {
			t.Fatal(err)
		}
		h.start()
		s := h.snapshot(id)
		if d := s.NodeStates["d"]; d.Status != "sleeping" || d.WakesAt != want || s.Status != "running" {
			t.Fatalf("after restart %d the run is %s, and its node %+v; want it to sleep until %s", round, s.Status, d, want)
		}
	}
	docs, _ := h.log(id)
	h.kill()
	h.start()
	if again, _ := h.log(id); len(again) != len(docs) {
		t.Errorf("the log has grown from %d to %d events by being read", len(docs), len(again))
	}
}
