package kill

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/audit"
)

// TestKillAudit kills the host while clients change things. Whatever was
// acknowledged is in the audit log, nothing is there twice, nothing is there that
// did not happen, and the chain holds.
func TestKillAudit(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed(t), 11))
	h := newHost(t, "--audit-checkpoint-interval", "1s", "--audit-checkpoint-entries", "5")
	h.start()
	var mu sync.Mutex
	heard := map[string]bool{} // workflows whose registration was acknowledged
	for round := range 4 {
		var wg sync.WaitGroup
		for c := range 8 {
			wg.Go(func() {
				for n := 0; ; n++ {
					id := fmt.Sprintf("w-%d-%d-%d", round, c, n)
					r, err := h.call("PUT", "/host/fermata/workflows/"+id, flow(id, []any{noop("a")}, nil))
					if err != nil {
						return // the host is dead
					}
					if r.status != 201 {
						t.Errorf("%s: %d %s", id, r.status, r.body)
						return
					}
					mu.Lock()
					heard[id] = true
					mu.Unlock()
				}
			})
		}
		time.Sleep(time.Duration(100+rng.IntN(400)) * time.Millisecond)
		h.kill()
		wg.Wait()
		h.start()
	}
	r, err := h.call("GET", "/audit/verify", nil)
	var v struct{ ChainValid bool }
	if err != nil || r.status != 200 || json.Unmarshal(r.body, &v) != nil || !v.ChainValid {
		t.Fatalf("%v, %d %.500s", err, r.status, r.body)
	}
	r, err = h.call("GET", "/host/fermata/audit/export", nil)
	if err != nil || r.status != 200 {
		t.Fatal(err, r.status)
	}
	report, err := audit.VerifyExport(bytes.NewReader(r.body), nil, nil)
	if err != nil || !report.Valid {
		t.Fatalf("%+v, %v", report, err)
	}
	recorded := map[string]int{}
	for line := range bytes.Lines(r.body) {
		var l struct {
			Entry struct {
				Action string
				Target struct{ ID string }
			}
		}
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		if l.Entry.Action == "workflow.register" {
			recorded[l.Entry.Target.ID]++
		}
	}
	for id := range heard {
		if recorded[id] != 1 {
			t.Errorf("%s was acknowledged, and is recorded %d times", id, recorded[id])
		}
	}
	unheard := 0
	for id, n := range recorded {
		if heard[id] {
			continue
		}
		unheard++
		if r, err := h.call("GET", "/workflows/"+id, nil); err != nil || r.status != 200 || n != 1 {
			t.Errorf("%s is recorded %d times, and is not there: %v %v", id, n, r, err)
		}
	}
	t.Logf("%d changes acknowledged, %d recorded that nobody heard of, %d checkpoints", len(heard), unheard, report.Checkpoints)
}
