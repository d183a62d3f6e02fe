package kill

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// finish answers whatever is open until every run has ended.
func (w *load) finish() []snapshot {
	w.h.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		w.sweep(always, 1)
		all, open := w.h.runs(""), 0
		for _, s := range all {
			if terminal(s.Status) {
				continue
			}
			if open++; s.WorkflowID == "long" {
				(&driver{load: w}).cancel(s.RunID)
			}
		}
		if open == 0 {
			return all
		}
		if time.Now().After(deadline) {
			w.stuck(all)
			return all
		}
	}
}

func (w *load) stuck(all []snapshot) {
	shown := 0
	for _, s := range all {
		if terminal(s.Status) {
			continue
		}
		w.h.t.Errorf("run %s of %s is stuck: %s", s.RunID, s.WorkflowID, s.Status)
		if shown++; shown <= 3 {
			docs, _ := w.h.log(s.RunID)
			for _, d := range docs {
				w.h.t.Logf("  %s", d)
			}
		}
	}
}

// verify holds every run's log against the invariants, and the whole against
// the ledger.
func (w *load) verify(all []snapshot) {
	w.h.t.Helper()
	there := map[string]bool{}
	tags := map[string]bool{}
	for _, row := range all {
		there[row.RunID] = true
		s := w.h.snapshot(row.RunID)
		tags[s.tag()] = true
		docs, status := w.h.log(row.RunID)
		if status != s.Status || status != row.Status {
			w.h.t.Errorf("run %s: %s in the list, %s in the snapshot, %s in the log", row.RunID, row.Status, s.Status, status)
		}
		if !slices.Contains(ending(s.WorkflowID), s.Status) {
			w.h.t.Errorf("run %s of %s ended as %s", s.RunID, s.WorkflowID, s.Status)
		}
		w.l.show(row.RunID, 0, docs)
		w.checkLog(&s, docs)
	}
	for id := range w.l.runs {
		if !there[id] {
			w.h.t.Errorf("run %s was acknowledged and is not there", id)
		}
	}
	if w.r == nil {
		return
	}
	for tag := range w.r.tags() {
		if !tags[tag] {
			w.h.t.Errorf("a call was made for the run tagged %s, which does not exist", tag)
		}
	}
}

// story is a log read from its beginning.
type story struct {
	visits, attempt map[string]int
	active          map[string]bool
	resolved        map[string]int // by interrupt id
	started         int
	ends            int
}

func (w *load) checkLog(s *snapshot, docs []json.RawMessage) {
	t := w.h.t
	st := story{visits: map[string]int{}, attempt: map[string]int{}, active: map[string]bool{}, resolved: map[string]int{}}
	for i, doc := range docs {
		var e event
		if err := json.Unmarshal(doc, &e); err != nil {
			t.Errorf("run %s event %d: %v", s.RunID, i, err)
			return
		}
		if e.Sequence != int64(i) || e.RunID != s.RunID {
			t.Errorf("run %s: event %d of %s in place of event %d", s.RunID, e.Sequence, e.RunID, i)
		}
		if fault := st.next(&e, i == len(docs)-1); fault != "" {
			t.Errorf("run %s of %s, event %d: %s\n%s", s.RunID, s.WorkflowID, i, fault, strings.Join(asText(docs), "\n"))
		}
	}
	for id, n := range st.resolved {
		if n != 1 {
			t.Errorf("run %s: interrupt %s was resolved %d times", s.RunID, id, n)
		}
	}
	w.checkPromises(s, &st)
}

// next takes one event in, and says what is wrong about it.
func (st *story) next(e *event, last bool) string {
	n := e.NodeID
	switch e.Type {
	case "run.started":
		if st.started++; st.started > 1 || e.Sequence != 0 {
			return "started again"
		}
	case "run.completed", "run.failed", "run.cancelled":
		if st.ends++; st.ends > 1 || !last {
			return "the end is not the end"
		}
	case "node.started":
		if again := e.Payload.Attempt > 0; again != st.active[n] {
			return "an attempt out of place"
		} else if again && e.Payload.Attempt <= st.attempt[n] {
			return "an attempt twice"
		} else if !again {
			st.visits[n]++
		}
		st.active[n], st.attempt[n] = true, e.Payload.Attempt
	case "node.completed", "node.failed", "node.cancelled":
		if !st.active[n] {
			return "an outcome without a start, or a second one"
		}
		st.active[n] = false
	case "interrupt.resolved":
		st.resolved[e.Payload.InterruptID]++
	}
	if last && st.ends != 1 {
		return "the last event ends nothing"
	}
	return ""
}

// checkPromises holds one run against the ledger and the receiver.
func (w *load) checkPromises(s *snapshot, st *story) {
	t := w.h.t
	w.l.mu.Lock()
	if w.l.cancels[s.RunID] && s.Status != "cancelled" {
		t.Errorf("run %s is %s, and its cancellation was acknowledged", s.RunID, s.Status)
	}
	accepted := 0
	for _, node := range []string{"ok", "left", "right"} {
		if a := w.l.gates[gate{s.RunID, node}]; a != nil && a.accepted > 0 {
			accepted++
		}
	}
	w.l.mu.Unlock()
	if accepted > len(st.resolved) {
		t.Errorf("run %s: %d answers were acknowledged, %d are in the log", s.RunID, accepted, len(st.resolved))
	}
	for node, visits := range st.visits {
		if !callsOut(node) || w.r == nil || s.Status != "completed" {
			continue
		}
		at := site{s.tag(), node}
		if keys := w.r.keys(at); keys != visits {
			t.Errorf("run %s: node %s was visited %d times and called with %d keys", s.RunID, node, visits, keys)
		}
		w.r.seal(at, visits) // nothing may follow
	}
}

func asText(docs []json.RawMessage) []string {
	out := make([]string, len(docs))
	for i, d := range docs {
		out[i] = string(d)
	}
	return out
}
