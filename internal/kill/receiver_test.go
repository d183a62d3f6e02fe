package kill

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"
)

// receiver is the world outside: it counts calls by idempotency key and knows
// which of them must not come any more.
type receiver struct {
	t    testing.TB
	http *httptest.Server

	mu    sync.Mutex
	open  int // connections
	came  int // calls so far
	sites map[site]*calls
}

// site is a node of a run, by the run's tag: a call may come in before the
// driver has learnt the run's id, or without it ever doing so.
type site struct{ tag, node string }

// calls are the calls a site has made, by key: one key for each visit.
type calls struct {
	keys   []string // in the order of their first call
	count  map[string]int
	within map[string]bool // being answered now
	sealed map[string]bool // the run's log said that the visit is over
	first  int             // when the first of them came, counted over all sites
}

func newReceiver(t testing.TB) *receiver {
	r := &receiver{t: t, sites: map[site]*calls{}}
	r.http = httptest.NewUnstartedServer(r)
	r.http.Config.ConnState = r.connection
	r.http.Start()
	t.Cleanup(r.http.Close)
	return r
}

func (r *receiver) connection(_ net.Conn, s http.ConnState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch s {
	case http.StateNew:
		r.open++
	case http.StateClosed, http.StateHijacked:
		r.open--
	}
}

// drain waits until every connection of a host that is gone has been read to
// its end, so that a call is never blamed on the host that follows.
func (r *receiver) drain() {
	r.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		r.mu.Lock()
		n := r.open
		r.mu.Unlock()
		if n == 0 {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("%d connections of a dead host stay open", n)
		}
	}
}

// ServeHTTP implements http.Handler. With ?refuse=n it refuses the first n
// calls of each key.
func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	var at site
	body, err := io.ReadAll(q.Body)
	if err != nil || json.Unmarshal(body, &at.tag) != nil {
		return // the caller was killed in the middle of its request
	}
	at.node = q.Header.Get("X-Node")
	key := q.Header.Get("Idempotency-Key")
	n := r.enter(at, key)
	select {
	case <-time.After(rand.N(15 * time.Millisecond)):
	case <-q.Context().Done():
	}
	r.leave(at, key)
	if refuse, _ := strconv.Atoi(q.URL.Query().Get("refuse")); n <= refuse {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"calls":%d}`, n)
}

func (r *receiver) site(at site) *calls {
	c := r.sites[at]
	if c == nil {
		c = &calls{count: map[string]int{}, within: map[string]bool{}, sealed: map[string]bool{}}
		r.sites[at] = c
	}
	return c
}

// enter counts a call and says the how manieth of its key it is.
func (r *receiver) enter(at site, key string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.site(at)
	if key == "" {
		r.t.Errorf("%v: a call without an idempotency key", at)
	}
	if c.sealed[key] {
		r.t.Errorf("%v: called again with key %s after its outcome was recorded", at, key)
	}
	if c.within[key] {
		r.t.Errorf("%v: two live calls with key %s", at, key)
	}
	if r.came++; c.first == 0 {
		c.first = r.came
	}
	if c.count[key] == 0 {
		c.keys = append(c.keys, key)
	}
	c.within[key] = true
	c.count[key]++
	return c.count[key]
}

func (r *receiver) leave(at site, key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.site(at).within, key)
}

// seal says that a log has shown the outcomes of a site's first visits.
func (r *receiver) seal(at site, visits int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.site(at)
	if visits > len(c.keys) {
		r.t.Errorf("%v: %d visits completed with %d keys called", at, visits, len(c.keys))
		visits = len(c.keys)
	}
	for _, k := range c.keys[:visits] {
		c.sealed[k] = true
	}
}

// keys is how many different keys a site has called with.
func (r *receiver) keys(at site) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.site(at).keys)
}

// shares reports whether two sites have called with one key.
func (r *receiver) shares(a, b site) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.site(a).keys {
		if r.site(b).count[k] > 0 {
			return true
		}
	}
	return false
}

// before reports whether the first call of one site came ahead of the other's.
func (r *receiver) before(a, b site) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.site(a).first < r.site(b).first
}

// tags are the runs that have called.
func (r *receiver) tags() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]bool{}
	for at := range r.sites {
		out[at.tag] = true
	}
	return out
}
