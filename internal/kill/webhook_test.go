package kill

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"
)

// subscriber is an endpoint outside the host. It refuses now and then, and knows
// what it has taken.
type subscriber struct {
	t    testing.TB
	http *httptest.Server

	mu    sync.Mutex
	ids   map[string]string  // delivery ids by event
	event map[string]string  // events by delivery id
	taken map[string][]int64 // by run, each event the first time it was taken
	calls int
}

func newSubscriber(t testing.TB) *subscriber {
	s := &subscriber{t: t, ids: map[string]string{}, event: map[string]string{}, taken: map[string][]int64{}}
	s.http = httptest.NewServer(s)
	t.Cleanup(s.http.Close)
	return s
}

// ServeHTTP implements http.Handler.
func (s *subscriber) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	var doc struct {
		Challenge string
		RunID     string
		Event     event
	}
	if err != nil || json.Unmarshal(body, &doc) != nil {
		return // the caller was killed in the middle of its request
	}
	if doc.Challenge != "" {
		w.Write(body)
		return
	}
	time.Sleep(rand.N(4 * time.Millisecond))
	if rand.IntN(5) == 0 {
		w.WriteHeader(503)
	} else {
		s.take(doc.RunID, doc.Event.Sequence)
	}
	name, id := fmt.Sprintf("%s %d", doc.RunID, doc.Event.Sequence), q.Header.Get("webhook-id")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if was := s.ids[name]; was != "" && was != id {
		s.t.Errorf("event %s was delivered as %s and as %s", name, was, id)
	}
	if was := s.event[id]; was != "" && was != name {
		s.t.Errorf("delivery %s is of %s and of %s", id, was, name)
	}
	s.ids[name], s.event[id] = id, name
}

func (s *subscriber) take(run string, seq int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.taken[run], seq) {
		s.taken[run] = append(s.taken[run], seq)
	}
}

func (s *subscriber) has(run string) []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.taken[run])
}

// TestWebhooksSurvive kills the host again and again while it delivers: every event
// that was asked for arrives at least once, in the order of its run, under the same
// id in every attempt.
func TestWebhooksSurvive(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed(t), 2))
	out := newSubscriber(t)
	h := newHost(t, "--allow-webhooks", "127.0.0.0/8", "--webhook-backoff", "10ms", "--webhook-attempts", "100")
	h.start()
	h.register(flow("five", []any{noop("a"), noop("b"), noop("c"), noop("d"), noop("e")}, chain("a", "b", "c", "d", "e")))
	wanted := []string{"run.started", "node.completed", "run.completed"}
	r, err := h.call("POST", "/webhooks", object{
		"url": out.http.URL, "events": wanted, "secret": "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=",
		"signatureAlgorithms": []string{"v1", "standard-webhooks-1"},
	})
	if err != nil || r.status != 201 {
		t.Fatal(r, err)
	}
	var runs []string
	for round := range 4 {
		for id := range createUntilKilled(h, 8, 10+rng.IntN(60), round) {
			runs = append(runs, id)
		}
		h.start()
		if round%2 == 1 { // killed once more while it delivers what was left
			time.Sleep(time.Duration(rng.IntN(200)) * time.Millisecond)
			h.kill()
			h.start()
		}
	}
	for _, id := range runs {
		if s := h.await(id); s.Status != "completed" {
			t.Fatalf("run %s is %s", id, s.Status)
		}
		docs, _ := h.log(id)
		var want []int64
		for _, doc := range docs {
			var e event
			if err := json.Unmarshal(doc, &e); err != nil {
				t.Fatal(err)
			}
			if slices.Contains(wanted, e.Type) {
				want = append(want, e.Sequence)
			}
		}
		for deadline := time.Now().Add(patience); len(out.has(id)) < len(want) && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		if got := out.has(id); !slices.Equal(got, want) {
			t.Errorf("of run %s the events %v were taken, want %v in this order", id, got, want)
		}
	}
	t.Logf("%d runs, %d calls", len(runs), out.calls)
}
