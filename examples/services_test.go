package examples_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// services stand in for the payment service and the carrier.
type services struct {
	*httptest.Server
	mu    sync.Mutex
	calls map[string][]received

	// plan says how the calls of a path are answered, one after the other; the
	// last entry stands for all that follow. The default is success.
	plan map[string][]reply
}

type received struct {
	idempotencyKey string
	body           map[string]any
}

type reply int

const (
	succeed reply = iota
	unavailable
	refuse
	hang // until the caller gives up
)

func newServices(t *testing.T, plan map[string][]reply) *services {
	s := &services{calls: map[string][]received{}, plan: plan}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *services) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	var body map[string]any
	if json.Unmarshal(b, &body) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	switch s.take(r.URL.Path, received{r.Header.Get("Idempotency-Key"), body}) {
	case unavailable:
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case refuse:
		w.WriteHeader(http.StatusUnprocessableEntity)
		return
	case hang:
		<-r.Context().Done()
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	answers := map[string]string{
		"/charges": `{"id":"ch-1"}`, "/refunds": `{"id":"re-1"}`, "/parcels": `{"trackingNumber":"TN-1"}`,
	}
	_, _ = io.WriteString(w, answers[r.URL.Path])
}

func (s *services) take(path string, c received) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[path] = append(s.calls[path], c)
	plan := s.plan[path]
	switch n := len(s.calls[path]); {
	case len(plan) == 0:
		return succeed
	case n > len(plan):
		return plan[len(plan)-1]
	default:
		return plan[n-1]
	}
}

// to lists the calls of a path. They must all carry the same idempotency key.
func (s *services) to(t *testing.T, path string) []received {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls[path] {
		if c.idempotencyKey == "" || c.idempotencyKey != s.calls[path][0].idempotencyKey {
			t.Errorf("calls of %s carry the keys %q and %q", path, s.calls[path][0].idempotencyKey, c.idempotencyKey)
		}
	}
	return s.calls[path]
}
