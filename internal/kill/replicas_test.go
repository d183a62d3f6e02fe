package kill

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/pgtest"
)

// replicas are hosts that share a database.
func replicas(t *testing.T, address string, n int, flags ...string) []*host {
	t.Helper()
	var out []*host
	for range n {
		h := newHost(t, append([]string{"--store", address, "--store-connections", "8", "--lease", "2s"}, flags...)...)
		h.start()
		out = append(out, h)
	}
	return out
}

// crash ends a replica's process with SIGKILL, whatever it has complained of.
func (h *host) crash() {
	if p := h.down(); p != nil {
		p.kill()
		h.client.CloseIdleConnections()
	}
}

// pause stops a replica's process for longer than its lease: it does not know, when
// it goes on, that its runs are others'.
func (h *host) pause(d time.Duration) {
	h.mu.Lock()
	p := h.live
	h.mu.Unlock()
	p.cmd.Process.Signal(syscall.SIGSTOP) //nolint:errcheck // it lives
	time.Sleep(d)
	p.cmd.Process.Signal(syscall.SIGCONT) //nolint:errcheck // it lives
}

// restart stops a database in order or crashes it, and starts it again.
func restart(t *testing.T, db *pgtest.Cluster, sig syscall.Signal) {
	t.Helper()
	db.Stop(sig)
	if err := db.Start(); err != nil {
		t.Fatal(err)
	}
}

// standStill keeps a database from answering for longer than a lease.
func standStill(t *testing.T, db *pgtest.Cluster, d time.Duration) {
	t.Helper()
	if err := db.Stand(syscall.SIGSTOP); err != nil {
		t.Error(err)
	}
	time.Sleep(d)
	if err := db.Stand(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

// terminate ends every connection of the replicas.
func terminate(t *testing.T, db *pgtest.Cluster) {
	t.Helper()
	err := db.Exec(t.Context(), "postgres", `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE pid <> pg_backend_pid() AND application_name = 'fermata'`)
	if err != nil {
		t.Error(err)
	}
}

// TestKillReplicas kills and pauses replicas that charge orders, ends their connections,
// and stops, crashes and freezes their database: no order is charged twice, no call is
// begun twice as the same attempt, nothing acknowledged is lost, and every run comes to
// its end.
func TestKillReplicas(t *testing.T) {
	flags := egress(t)
	if flags == nil {
		t.Skip("serve has no flag --allow-egress, so nothing can be called")
	}
	s := seed(t)
	rng := rand.New(rand.NewPCG(s, 3))
	out := newShop(t)
	db := pgtest.New(t)
	r := replicas(t, db.Address("postgres"), 3, append(flags, "--store-listen", "same")...)
	for _, d := range charges(out.http.URL) {
		r[0].register(d)
	}
	r[0].register(flow("gate", []any{noop("a"), step("ok", "core.approvalGate", object{"title": "Go on?"}), noop("z")}, chain("a", "ok", "z")))
	quit := make(chan struct{})
	var drivers sync.WaitGroup
	var mu sync.Mutex
	var made []string
	for d := range 6 {
		drivers.Go(func() {
			for n := 0; n < 120; n++ {
				select {
				case <-quit:
					return
				default:
				}
				h := r[(d+n)%len(r)]
				order := fmt.Sprintf("order-%d-%d", d/3, n) // three drivers want the same orders
				if id := h.begins(t, []string{"known", "blunt", "gate"}[n%3], order); id != "" {
					mu.Lock()
					made = append(made, id)
					mu.Unlock()
				}
				time.Sleep(rand.N(15 * time.Millisecond))
			}
		})
	}
	for n := range kills(t) {
		time.Sleep(time.Duration(200+rng.IntN(600)) * time.Millisecond)
		h := r[rng.IntN(len(r))]
		switch n % 6 {
		case 1:
			h.pause(3500 * time.Millisecond)
			continue
		case 2, 5:
			restart(t, db, []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT}[n%6/5])
			continue
		case 3:
			standStill(t, db, 3*time.Second)
			terminate(t, db)
			continue
		}
		h.crash()
		time.Sleep(time.Duration(rng.IntN(3000)) * time.Millisecond)
		h.start()
	}
	close(quit)
	drivers.Wait()
	all := finishGates(t, r)
	byID := map[string]snapshot{}
	var charged []snapshot
	for _, x := range all {
		byID[x.RunID] = x
		if !terminal(x.Status) {
			t.Errorf("run %s of %s is %s", x.RunID, x.WorkflowID, x.Status)
		}
		if x.WorkflowID != "gate" {
			charged = append(charged, x)
		}
		wholeLog(t, r[rng.IntN(len(r))], x.RunID)
	}
	for _, id := range made {
		if _, there := byID[id]; !there {
			t.Errorf("run %s was acknowledged and is gone", id)
		}
	}
	faults, doubts := out.judge(r[1], charged)
	for _, f := range faults {
		t.Error(f)
	}
	t.Logf("%d runs, %d acknowledged, %d attempts in doubt", len(all), len(made), doubts)
}

// begins starts a run, if the replica is there and can.
func (h *host) begins(t *testing.T, workflow, tag string) string {
	r, err := h.call("POST", "/runs", object{"workflowId": workflow, "inputs": object{"tag": tag}})
	if err != nil || r.status == 503 {
		return ""
	}
	var doc struct{ RunID string }
	if r.status != 201 || json.Unmarshal(r.body, &doc) != nil {
		t.Errorf("create %s: %v", workflow, r)
	}
	return doc.RunID
}

// finishGates answers every gate, each on a replica that happens to be next, until
// every run is over.
func finishGates(t *testing.T, r []*host) (all []snapshot) {
	t.Helper()
	n := 0
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		open := 0
		all = r[n%len(r)].runs("")
		for _, s := range all {
			if terminal(s.Status) {
				continue
			}
			open++
			if s.Status == "waiting-approval" {
				n++
				r[n%len(r)].call("POST", "/runs/"+segment(s.RunID)+"/interrupts/ok", //nolint:errcheck // again the next time
					object{"resumeValue": object{"action": "accept"}})
			}
		}
		if open == 0 || time.Now().After(deadline) {
			return all
		}
	}
}

// wholeLog holds a log to what must be true of any: no gap, one end, and no call
// begun twice as the same attempt.
func wholeLog(t *testing.T, h *host, id string) {
	t.Helper()
	docs, _ := h.log(id)
	ends, started := 0, map[string]bool{}
	for i, d := range docs {
		var e struct {
			Sequence int
			Type     string
			NodeID   string
			Payload  struct{ Attempt int }
		}
		if err := json.Unmarshal(d, &e); err != nil || e.Sequence != i {
			t.Errorf("run %s: event %d in place of %d: %v", id, e.Sequence, i, err)
			return
		}
		switch e.Type {
		case "run.completed", "run.failed", "run.cancelled":
			ends++
		case "node.started":
			at := fmt.Sprint(e.NodeID, "/", e.Payload.Attempt)
			if started[at] {
				t.Errorf("run %s: %s is begun twice", id, at)
			}
			started[at] = true
		}
	}
	if ends != 1 {
		t.Errorf("run %s has %d ends", id, ends)
	}
}
