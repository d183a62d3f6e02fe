package kill

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
)

// TestOneLiveAttempt: commands that reach a run in the moment it comes into
// being do not make its first step execute twice.
func TestOneLiveAttempt(t *testing.T) {
	flags := egress(t)
	if flags == nil {
		t.Skip("serve has no flag --allow-egress, so nothing can be called")
	}
	r := newReceiver(t)
	h := newHost(t, flags...)
	h.start()
	h.register(flow("effect", []any{post("call", r.http.URL), post("callToo", r.http.URL)}, nil))
	quit := make(chan struct{})
	var pokers, clients sync.WaitGroup
	for range 4 {
		pokers.Go(func() { poke(h, quit) })
	}
	var mu sync.Mutex
	var ids []string
	for c := range 16 {
		clients.Go(func() {
			for n := range 60 {
				if id, err := h.create("effect", fmt.Sprintf("%d-%d", c, n)); err == nil {
					mu.Lock()
					ids = append(ids, id)
					mu.Unlock()
				}
			}
		})
	}
	clients.Wait()
	close(quit)
	pokers.Wait()
	w := &load{h: h, l: newLedger(t), r: r}
	w.finish()
	again := 0
	for _, id := range ids {
		docs, _ := h.log(id)
		for _, d := range docs {
			var e event
			if json.Unmarshal(d, &e) == nil && e.Type == "node.started" && e.Payload.Attempt > 0 {
				again++
			}
		}
	}
	if again > 0 {
		t.Errorf("%d attempts were repeated in %d runs, though nothing failed and nobody was killed", again, len(ids))
	}
}

// poke sends an answer nobody asked for to every run as soon as it is listed.
func poke(h *host, quit <-chan struct{}) {
	known := map[string]bool{}
	for {
		select {
		case <-quit:
			return
		default:
		}
		r, err := h.call("GET", "/runs?limit=20", nil)
		var p struct{ Runs []snapshot }
		if err != nil || json.Unmarshal(r.body, &p) != nil {
			return
		}
		for _, s := range p.Runs {
			if !known[s.RunID] {
				known[s.RunID] = true
				h.call("POST", "/runs/"+segment(s.RunID)+"/interrupts/call", object{"resumeValue": 1})
			}
		}
	}
}
