package kill

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestCreatesSurvive kills the host while clients do nothing but create runs:
// each one that was acknowledged is there afterwards, and comes to its end.
func TestCreatesSurvive(t *testing.T) {
	s := seed(t)
	rng := rand.New(rand.NewPCG(s, 1))
	h := newHost(t)
	h.start()
	h.register(flow("five", []any{noop("a"), noop("b"), noop("c"), noop("d"), noop("e")}, chain("a", "b", "c", "d", "e")))
	acked := map[string]string{} // tag by run id
	for round := range 3 {
		for id, tag := range createUntilKilled(h, 16, 40+rng.IntN(400), round) {
			acked[id] = tag
		}
		h.start()
	}
	if len(acked) == 0 {
		t.Fatal("nothing was acknowledged")
	}
	there := map[string]bool{}
	for _, r := range h.runs("") {
		there[r.RunID] = true
	}
	for id, tag := range acked {
		if !there[id] {
			t.Errorf("run %s was acknowledged and is not listed", id)
			continue
		}
		if s := h.await(id); s.Status != "completed" || s.tag() != tag {
			t.Errorf("run %s is %s with tag %q, want completed with tag %q", id, s.Status, s.tag(), tag)
		}
	}
	t.Logf("%d creates acknowledged", len(acked))
}

// createUntilKilled has clients create runs until one of them has seen the
// given number of acknowledgements and pulls the plug.
func createUntilKilled(h *host, clients, after, round int) map[string]string {
	var mu sync.Mutex
	acked := map[string]string{}
	var count atomic.Int64
	enough := make(chan struct{})
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			for n := 0; ; n++ {
				tag := fmt.Sprintf("%d-%d-%d", round, c, n)
				id, err := h.create("five", tag)
				if err != nil {
					return
				}
				mu.Lock()
				acked[id] = tag
				mu.Unlock()
				if count.Add(1) == int64(after) {
					close(enough)
				}
			}
		})
	}
	select {
	case <-enough:
	case <-time.After(patience):
		h.t.Errorf("no %d creates", after)
	}
	h.kill()
	wg.Wait()
	return acked
}
