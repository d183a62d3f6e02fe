package kill

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// undoable are runs that call out twice and then fail, and whose calls are undone by
// calls under names of their own. The receiver refuses the first try of each.
func undoable(url string) object {
	undo := func(node string) object {
		return object{"compensation": object{
			"nodeTypeId": "core.http.request",
			"inputMapping": object{
				"url": url + "?refuse=1", "method": "POST", "body": "${inputs.tag}", "headers": object{"X-Node": "undo-" + node},
			},
			"retry": object{"maxAttempts": 50, "backoffMs": 20},
		}}
	}
	with := func(id string) any {
		n := post(id, url).(object)
		for k, v := range undo(id) {
			n[k] = v
		}
		return n
	}
	return flow("undo", []any{with("callA"), with("callB"), step("last", "core.fail", nil)}, chain("callA", "callB", "last"),
		object{"settings": object{"compensation": object{"triggers": []any{"node-failure"}}}})
}

type compensation struct {
	Status   string `json:"status"`
	Attempts []struct {
		NodeID  string `json:"nodeId"`
		Attempt int    `json:"attempt"`
		Outcome string `json:"outcome"`
	} `json:"attempts"`
}

// TestKillUndoing kills a host that undoes: what has happened is undone, under one
// name, the last first, and never again once that is on record.
func TestKillUndoing(t *testing.T) {
	flags := egress(t)
	if flags == nil {
		t.Skip("serve cannot be told to call loopback")
	}
	rng := rand.New(rand.NewPCG(seed(t), 1))
	r := newReceiver(t)
	h := newHost(t, flags...)
	h.start()
	h.register(undoable(r.http.URL))
	const runs = 30
	tags := map[string]string{} // by run
	create := func(n int) {
		for i := range n {
			tag := fmt.Sprintf("u%d-%d-%x", len(tags), i, rng.Uint64())
			if id, err := h.create("undo", tag); err == nil {
				tags[id] = tag
			}
		}
	}
	for range kills(t) {
		create(runs / kills(t))
		time.Sleep(time.Duration(rng.IntN(250)) * time.Millisecond)
		h.kill()
		r.drain()
		h.start()
	}
	create(3)
	for id, tag := range tags {
		h.undone(id)
		for _, node := range []string{"callA", "callB"} {
			forward, back := site{tag, node}, site{tag, "undo-" + node}
			if n := r.keys(forward); n != 1 {
				t.Errorf("run %s: %s called with %d keys", id, node, n)
			}
			if n := r.keys(back); n != 1 {
				t.Errorf("run %s: %s was undone with %d keys", id, node, n)
			}
			if r.shares(forward, back) {
				t.Errorf("run %s: %s was undone under the name of its effect", id, node)
			}
			r.seal(back, 1) // nothing may follow
		}
		if !r.before(site{tag, "undo-callB"}, site{tag, "undo-callA"}) {
			t.Errorf("run %s: undone in the wrong order", id)
		}
	}
	h.kill() // it complains if it has something to say, and a last start finds nothing to do
	r.drain()
	h.start()
	time.Sleep(100 * time.Millisecond)
	if len(tags) < 3 {
		t.Fatal("no run came into being")
	}
}

// undone waits until a run has been undone.
func (h *host) undone(id string) {
	h.t.Helper()
	var c compensation
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		h.get("/runs/"+segment(id)+"/compensation", &c)
		if c.Status == "completed" {
			break
		}
		if time.Now().After(deadline) {
			h.t.Fatalf("run %s is stuck: %+v", id, c)
		}
	}
	var done []string
	for _, a := range c.Attempts {
		if a.Outcome == "succeeded" {
			done = append(done, a.NodeID)
		}
	}
	if !slices.Equal(done, []string{"callB", "callA"}) {
		h.t.Errorf("run %s: undone %v", id, done)
	}
}
