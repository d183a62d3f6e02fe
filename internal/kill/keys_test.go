package kill

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
)

// keyed is a create with a key, and what its caller heard of it.
type keyed struct {
	key, tag string
	run      string // empty while nothing was heard
}

// TestKeyedCreatesHappenOnce kills the host while clients create runs under keys.
// Whoever did not hear of his run asks again, under the same key, after the next
// start: there is one run for each key, and it is the one that was told.
func TestKeyedCreatesHappenOnce(t *testing.T) {
	s := seed(t)
	rng := rand.New(rand.NewPCG(s, 7))
	h := newHost(t)
	h.start()
	h.register(flow("three", []any{noop("a"), noop("b"), noop("c")}, chain("a", "b", "c")))
	var all []*keyed
	unheard := 0
	for round := range 4 {
		more := keyedUntilKilled(h, 16, 30+rng.IntN(200), round)
		all = append(all, more...)
		h.start()
		for _, k := range more {
			told := k.run
			if told == "" {
				unheard++
			}
			if err := h.createKeyed(k); err != nil {
				t.Fatalf("key %s, asked again: %v", k.key, err)
			}
			if told != "" && told != k.run {
				t.Errorf("key %s was told %s, then %s", k.key, told, k.run)
			}
		}
	}
	runs := map[string]string{} // by tag
	for _, r := range h.runs("") {
		s := h.snapshot(r.RunID)
		if other := runs[s.tag()]; other != "" {
			t.Errorf("one key made the runs %s and %s", other, r.RunID)
		}
		runs[s.tag()] = r.RunID
	}
	for _, k := range all {
		if runs[k.tag] != k.run {
			t.Errorf("key %s was told %s, and there is %q", k.key, k.run, runs[k.tag])
		}
	}
	if len(runs) != len(all) {
		t.Errorf("%d runs of %d keys", len(runs), len(all))
	}
	t.Logf("%d keys, %d of them unheard of when the host was killed", len(all), unheard)
}

// keyedUntilKilled has clients create runs until enough have come back, and
// pulls the plug. It returns every create that was sent.
func keyedUntilKilled(h *host, clients, after, round int) []*keyed {
	var mu sync.Mutex
	var all []*keyed
	var count atomic.Int64
	enough := make(chan struct{})
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			for n := 0; ; n++ {
				k := &keyed{tag: fmt.Sprintf("%d-%d-%d", round, c, n)}
				k.key = fmt.Sprintf("a-key-of-a-killed-host-%s", k.tag)
				mu.Lock()
				all = append(all, k)
				mu.Unlock()
				if h.createKeyed(k) != nil {
					return
				}
				if count.Add(1) == int64(after) {
					close(enough)
				}
			}
		})
	}
	<-enough
	h.kill()
	wg.Wait()
	return all
}

// createKeyed creates a run under a key. An error means that its outcome is not
// known.
func (h *host) createKeyed(k *keyed) error {
	h.mu.Lock()
	url := h.url
	h.mu.Unlock()
	if url == "" {
		return errDown
	}
	req, err := request("POST", url+"/runs", object{"workflowId": "three", "inputs": object{"tag": k.tag}})
	if err != nil {
		return err
	}
	req.Header.Set("Idempotency-Key", k.key)
	res, err := h.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	var created struct {
		RunID string `json:"runId"`
	}
	if res.StatusCode != 201 || json.Unmarshal(b, &created) != nil || created.RunID == "" {
		return errors.New(res.Status + " " + string(b))
	}
	k.run = created.RunID
	return nil
}
