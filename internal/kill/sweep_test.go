package kill

import "math/rand/v2"

// sweep looks at what the host holds after a restart, while no driver changes
// anything, and answers a share of what is open.
func (w *load) sweep(rng *rand.Rand, share float64) {
	w.answering.Lock()
	defer w.answering.Unlock()
	w.checkPaused()
	waiting := w.h.runs("waiting-approval")
	open := map[gate]bool{}
	for _, i := range w.h.inbox() {
		g := gate{i.RunID, i.NodeID}
		if w.l.answered(g) {
			w.l.t.Errorf("%v is open, and an answer to it was acknowledged", g)
		}
		if open[g] {
			w.l.t.Errorf("%v is listed twice", g)
		}
		open[g] = true
	}
	w.checkListed(waiting, open)
	for g := range open {
		if rng.Float64() >= share {
			continue
		}
		now := w.answer(g)
		if now.refused == 1 && w.h.snapshot(g.run).Status == "cancelled" {
			continue // its parent's cancellation was still on its way
		}
		if now.accepted != 1 {
			w.l.t.Errorf("%v is listed as open and its answer was not accepted", g)
		}
		w.l.answer(g, now)
	}
}

// checkListed wants every suspended node of a waiting run in the inbox. The
// runs were listed first, so that nothing can have been opened in between.
func (w *load) checkListed(waiting []snapshot, open map[gate]bool) {
	for i, s := range waiting {
		if i >= 50 {
			return
		}
		for node, state := range w.h.snapshot(s.RunID).NodeStates {
			if state.Status == "suspended" && !open[gate{s.RunID, node}] {
				w.l.t.Errorf("node %s of run %s waits for an answer and is not listed", node, s.RunID)
			}
		}
	}
}

// checkPaused holds paused runs to their promise, and lets them go on.
func (w *load) checkPaused() {
	w.l.mu.Lock()
	var promised []string
	for id := range w.l.paused {
		promised = append(promised, id)
	}
	w.l.mu.Unlock()
	for _, id := range promised {
		if s := w.h.snapshot(id); s.Status != "paused" {
			w.l.t.Errorf("run %s is %s, and its pause was acknowledged", id, s.Status)
		}
	}
	for _, s := range w.h.runs("paused") {
		w.turn("resume", s.RunID)
	}
}
