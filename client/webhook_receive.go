package client

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"
)

// maxDelivery bounds the body of a delivery.
const maxDelivery = 16 << 20

// Receiver serves a webhook's URL: it verifies what comes in, answers the question
// whether it wants deliveries, drops what it has taken before, and hands on the
// rest. A host delivers at least once, so a delivery may come again.
type Receiver struct {
	Secrets []string // one, or the new and the old one while it is rotated

	// Take acts on a delivery. An error has the host deliver it again.
	Take func(ctx context.Context, d *Delivery) error

	// Remember is how many deliveries are known again; default 10,000. They are
	// forgotten when the process ends: what must never happen twice needs a record
	// of its own, under Delivery.Key.
	Remember int

	Now func() time.Time // nil for the clock

	mu    sync.Mutex
	known map[string]bool
	order []string
}

// ServeHTTP implements http.Handler.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, q.Body, maxDelivery))
	if err != nil {
		http.Error(w, "the body cannot be read", http.StatusBadRequest)
		return
	}
	now := time.Now
	if r.Now != nil {
		now = r.Now
	}
	d, err := VerifyWebhook(q.Header, body, now(), r.Secrets...)
	switch {
	case err != nil:
		http.Error(w, "not verified", http.StatusUnauthorized)
	case d.Challenge != "":
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{"challenge": d.Challenge})
	case r.seen(d.Key()):
		w.WriteHeader(http.StatusNoContent)
	default:
		if err := r.Take(q.Context(), d); err != nil {
			http.Error(w, "not taken", http.StatusInternalServerError)
			return
		}
		r.remember(d.Key())
		w.WriteHeader(http.StatusNoContent)
	}
}

func (r *Receiver) seen(key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known[key]
}

func (r *Receiver) remember(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil {
		r.known = map[string]bool{}
	}
	if r.known[key] {
		return
	}
	r.known[key] = true
	r.order = append(r.order, key)
	most := r.Remember
	if most <= 0 {
		most = 10_000
	}
	for len(r.order) > most {
		delete(r.known, r.order[0])
		r.order = r.order[1:]
	}
}
