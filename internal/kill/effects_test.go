package kill

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// shop is a service outside the process that is asked to charge orders. Under
// /known it looks at the key, so that only another key is another charge; under
// /blunt every call is one.
type shop struct {
	http *httptest.Server
	hold chan struct{} // if set, no call is answered before it is closed

	mu     sync.Mutex
	calls  map[string][]string // by path and order: the key of every call
	called chan struct{}
}

func newShop(t testing.TB) *shop {
	s := &shop{calls: map[string][]string{}, called: make(chan struct{}, 1<<16)}
	s.http = httptest.NewServer(s)
	t.Cleanup(s.http.Close)
	return s
}

// ServeHTTP implements http.Handler. A call whose body has come has had its effect,
// whatever becomes of the answer.
func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var order string
	body, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(body, &order) != nil {
		return // the caller was killed before it had asked for anything
	}
	s.mu.Lock()
	at := r.URL.Path + " " + order
	s.calls[at] = append(s.calls[at], r.Header.Get("Idempotency-Key"))
	hold := s.hold
	s.mu.Unlock()
	s.called <- struct{}{}
	if hold != nil {
		<-hold
	}
	time.Sleep(rand.N(15 * time.Millisecond))
	fmt.Fprintf(w, "charged %s", order)
}

// charges are workflows that charge the order they are started for, by its name:
// one tells the shop a key, the other cannot, and so may not repeat a call of which
// it does not know what has become.
func charges(url string) []object {
	charge := func(path string, config object) any {
		config["url"], config["method"] = url+"/"+path, "POST"
		tag := object{"type": "variable", "variableName": "tag"}
		return step("charge", "core.http.request", config, object{
			"inputs":   object{"body": tag, "idempotencyKey": tag},
			"settings": object{"maxRetries": 3, "retryDelayMs": 5, "retryBackoff": 1},
		})
	}
	return []object{
		flow("known", []any{noop("a"), charge("known", object{}), noop("z")}, chain("a", "charge", "z")),
		flow("blunt", []any{noop("a"), charge("blunt", object{"idempotencyHeader": ""}), noop("z")}, chain("a", "charge", "z")),
	}
}

type ledgerOf struct {
	Effects []struct {
		EffectID    string `json:"effectId"`
		State       string `json:"state"`
		Keying      string `json:"keying"`
		ProviderKey string `json:"providerKey"`
	} `json:"effects"`
}

// orders are what the runs of one workflow and order have come to.
type orders struct{ runs, completed, escaped, unknown int }

// judge holds the shop's books against the ledger of every run: whatever is wrong
// with them.
func (s *shop) judge(h *host, all []snapshot) (faults []string, doubts int) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	by := map[string]*orders{}
	ids := map[string]string{}
	for _, row := range all {
		full := h.snapshot(row.RunID)
		at := "/" + full.WorkflowID + " " + full.tag()
		o := by[at]
		if o == nil {
			o = &orders{}
			by[at] = o
		}
		o.runs++
		var l ledgerOf
		h.get("/runs/"+segment(row.RunID)+"/effects", &l)
		if len(l.Effects) == 0 && full.Status != "failed" {
			fault("%s: run %s is %s without an effect", at, row.RunID, full.Status)
		}
		for _, e := range l.Effects {
			if ids[at] == "" {
				ids[at] = e.EffectID
			}
			if e.EffectID != ids[at] || e.Keying != "business-identity" {
				fault("%s: effects %s and %s of one order", at, ids[at], e.EffectID)
			}
			switch e.State {
			case "escaped":
				o.escaped++
			case "claimed":
				fault("%s: claimed, but every run has ended", at)
			}
			for _, key := range s.keys(at) {
				if key != e.ProviderKey {
					fault("%s: called with key %q, the ledger has %q", at, key, e.ProviderKey)
				}
			}
		}
		switch full.Status {
		case "completed":
			o.completed++
		case "failed":
			o.unknown++
		default:
			fault("%s: run %s is %s", at, row.RunID, full.Status)
		}
	}
	for at, o := range by {
		calls, known := len(s.keys(at)), at[:len("/known")] == "/known"
		doubts += o.escaped
		switch {
		case o.completed > 0 && calls == 0:
			fault("%s: completed, but never charged", at)
		case known && (o.unknown > 0 || o.completed != o.runs):
			fault("%s: %d of %d runs completed", at, o.completed, o.runs)
		case known && calls > 1+o.escaped:
			fault("%s: charged %d times, in doubt %d times", at, calls, o.escaped)
		case !known && calls > 1:
			fault("%s: charged %d times", at, calls)
		case !known && o.unknown > 0 && o.escaped == 0:
			fault("%s: failed without a doubt", at)
		}
	}
	return faults, doubts
}

func (s *shop) keys(at string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.calls[at]...)
}

// ended waits until every run has.
func (h *host) ended() []snapshot {
	h.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		all, open := h.runs(""), 0
		for _, s := range all {
			if !terminal(s.Status) {
				open++
			}
		}
		if open == 0 || time.Now().After(deadline) {
			return all
		}
	}
}

// TestKillEffects kills a host whose runs charge orders, several runs each: no
// order is charged twice, and none that a run says it has charged is not.
func TestKillEffects(t *testing.T) {
	flags := egress(t)
	if flags == nil {
		t.Skip("serve has no flag --allow-egress, so nothing can be called")
	}
	s := seed(t)
	rng := rand.New(rand.NewPCG(s, 2))
	out := newShop(t)
	h := newHost(t, flags...)
	h.start()
	for _, d := range charges(out.http.URL) {
		h.register(d)
	}
	quit := make(chan struct{})
	var drivers sync.WaitGroup
	for d := range 6 {
		drivers.Go(func() {
			rng := rand.New(rand.NewPCG(s, uint64(10+d)))
			for n := 0; n < 400 && h.wait(quit); n++ {
				order := fmt.Sprintf("order-%d-%d", d/3, n) // three drivers want the same orders
				_, _ = h.create([]string{"known", "blunt"}[n%2], order)
				time.Sleep(rand.N(time.Duration(1+rng.IntN(8)) * time.Millisecond))
			}
		})
	}
	for range kills(t) {
		select {
		case <-out.called: // there is something to interrupt
		case <-time.After(patience):
			t.Fatal("nothing is charged")
		}
		time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
		h.kill()
		h.start()
	}
	close(quit)
	drivers.Wait()
	all := h.ended()
	faults, doubts := out.judge(h, all)
	for _, f := range faults {
		t.Error(f)
	}
	t.Logf("%d runs, %d attempts in doubt", len(all), doubts)
}

// TestLostLedgerIsFound: the books catch a host that forgets what it has claimed.
func TestLostLedgerIsFound(t *testing.T) {
	flags := egress(t)
	if flags == nil {
		t.Skip("serve has no flag --allow-egress, so nothing can be called")
	}
	for _, forgets := range []bool{false, true} {
		out := newShop(t)
		out.hold = make(chan struct{})
		h := newHost(t, flags...)
		h.start()
		for _, d := range charges(out.http.URL) {
			h.register(d)
		}
		id, err := h.create("blunt", "order-1")
		if err != nil {
			t.Fatal(err)
		}
		<-out.called
		h.kill()
		close(out.hold)
		if forgets {
			db, err := sqlite3.Open(filepath.Join(h.dir, "fermata.db"))
			if err == nil {
				err = db.Exec(`DELETE FROM effects`)
				db.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		h.start()
		end := h.await(id)
		faults, _ := out.judge(h, h.ended())
		if want := map[bool]string{false: "failed", true: "completed"}[forgets]; end.Status != want || (len(faults) > 0) != forgets {
			t.Errorf("the ledger is lost: %v; the run is %s, faults %q", forgets, end.Status, faults)
		}
		h.kill()
	}
}
