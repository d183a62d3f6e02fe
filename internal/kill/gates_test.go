package kill

import (
	"encoding/json"
	"sync"
	"time"
)

// gated answers a run's gates, or leaves them to a later sweep.
func (d *driver) gated(id, workflow string) {
	if d.rng.IntN(4) == 0 {
		return
	}
	nodes := []string{"ok"}
	if workflow == "gates" {
		nodes = []string{"left", "right"}
	}
	if !d.suspended(id, nodes[len(nodes)-1]) {
		return
	}
	if d.rng.IntN(4) == 0 && !d.pauseAndResume(id) {
		return
	}
	for _, n := range nodes {
		d.answerTwice(gate{id, n})
	}
}

// suspended waits until a node holds its gate; false if the host goes.
func (d *driver) suspended(id, node string) bool {
	for range 1000 {
		s, ok := d.look(id)
		if !ok || terminal(s.Status) {
			return false
		}
		if s.NodeStates[node].Status == "suspended" {
			return true
		}
		time.Sleep(time.Millisecond)
	}
	return false
}

func (d *driver) look(id string) (s snapshot, ok bool) {
	r, err := d.h.call("GET", "/runs/"+segment(id), nil)
	if err != nil {
		return s, false
	}
	if r.status != 200 || json.Unmarshal(r.body, &s) != nil {
		d.l.t.Errorf("snapshot of %s: %v", id, r)
		return s, false
	}
	return s, true
}

func (d *driver) pauseAndResume(id string) bool {
	d.answering.RLock()
	defer d.answering.RUnlock()
	return d.load.turn("pause", id) && d.load.turn("resume", id)
}

// turn pauses or resumes a run; false if it is not known whether it did.
func (w *load) turn(verb, id string) bool {
	if verb == "resume" {
		w.l.pause(id, false) // it may happen from now on
	}
	r, err := w.h.call("POST", "/runs/"+segment(id)+":"+verb, object{})
	if err != nil {
		return false // a sweep finds the run as it is
	}
	switch {
	case r.status == 202 && verb == "pause":
		w.l.pause(id, true)
	case r.status == 409 && verb == "pause":
		return false // a sweep has answered its gate in the meantime
	case r.status != 202:
		w.l.t.Errorf("%s %s: %v", verb, id, r)
	}
	return true
}

// parent answers the gate of the child run, or cancels the whole.
func (d *driver) parent(id string) {
	for range 1000 {
		s, ok := d.look(id)
		if !ok {
			return
		}
		if c := s.NodeStates["sub"].Children; len(c) > 0 {
			switch d.rng.IntN(4) {
			case 0:
				d.cancel(id)
			case 1: // left to a sweep
			default:
				if d.suspended(c[0].RunID, "ok") {
					d.answerTwice(gate{c[0].RunID, "ok"})
				}
			}
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func (d *driver) cancel(id string) {
	d.answering.RLock()
	defer d.answering.RUnlock()
	r, err := d.h.call("POST", "/runs/"+segment(id)+"/cancel", object{"reason": "enough"})
	switch {
	case err != nil:
	case r.status == 200:
		d.l.cancelled(id)
	case r.status != 409:
		d.l.t.Errorf("cancel %s: %v", id, r)
	}
}

// answerTwice answers one gate from two sides at once.
func (d *driver) answerTwice(g gate) {
	d.answering.RLock()
	defer d.answering.RUnlock()
	var both [2]answers
	var wg sync.WaitGroup
	for i := range both {
		wg.Go(func() { both[i] = d.load.answer(g) })
	}
	wg.Wait()
	d.l.answer(g, answers{
		both[0].accepted + both[1].accepted, both[0].refused + both[1].refused, both[0].unknown + both[1].unknown,
	})
}

func (w *load) answer(g gate) answers {
	r, err := w.h.call("POST", "/runs/"+segment(g.run)+"/interrupts/"+g.node, object{"resumeValue": object{"action": "accept"}})
	switch {
	case err != nil:
		return answers{unknown: 1}
	case r.status == 200:
		return answers{accepted: 1}
	case r.status == 409:
		return answers{refused: 1}
	}
	w.l.t.Errorf("answer %v: %v", g, r)
	return answers{unknown: 1}
}
