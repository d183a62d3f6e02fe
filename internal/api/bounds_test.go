package api

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func bounded(o Options, h func(http.ResponseWriter, *Request) error) *Server {
	o.Version = func(http.ResponseWriter, *http.Request, *Route) error { return nil }
	return NewServer([]Route{{Method: "POST", Pattern: "/x", ID: "x", Handle: h}, {Method: "GET", Pattern: "/s", ID: "s", Stream: true, Handle: h}}, o)
}

// A call that takes too long is told to come again; a stream may take any time.
func TestCallsEnd(t *testing.T) {
	s := bounded(Options{Timeout: time.Millisecond}, func(w http.ResponseWriter, r *Request) error {
		if _, ok := r.Context().Deadline(); ok == r.Route.Stream {
			t.Errorf("%s: a deadline: %v", r.Route.ID, ok)
		}
		if r.Route.Stream {
			return JSON(w, 200, map[string]int{})
		}
		<-r.Context().Done()
		return r.Context().Err()
	})
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest("POST", "/x", nil))
	if w.Code != 503 || code(t, w) != "service_unavailable" || w.Header().Get("Retry-After") != "1" {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	w = httptest.NewRecorder()
	if s.ServeHTTP(w, httptest.NewRequest("GET", "/s", nil)); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	// Whoever has gone is told nothing.
	gone, leave := context.WithCancel(t.Context())
	leave()
	w = httptest.NewRecorder()
	if s.ServeHTTP(w, httptest.NewRequestWithContext(gone, "POST", "/x", nil)); w.Body.Len() > 0 {
		t.Errorf("%s", w.Body)
	}
}

// Large bodies have so much room and no more, a quarter of which no single tenant
// takes; small ones always get in, and what a request has taken it gives back.
func TestBodiesHaveRoom(t *testing.T) {
	const mb = 1 << 20
	reading, release := make(chan int, 10), make(chan struct{})
	s := bounded(Options{MaxBodies: 8 * mb}, func(w http.ResponseWriter, r *Request) error {
		BodyOf(r.Request, r.Header.Get("Tenant"))
		b, err := ReadBody(w, r.Request, 5*mb)
		if err != nil {
			return err
		}
		if r.Header.Get("Hold") != "" {
			reading <- len(b)
			<-release
		}
		return JSON(w, 200, len(b))
	})
	send := func(tenant string, size int, chunked, hold bool) *httptest.ResponseRecorder {
		r := httptest.NewRequest("POST", "/x", strings.NewReader(`"`+strings.Repeat("x", size-2)+`"`))
		if chunked {
			r.ContentLength, r.Body = -1, io.NopCloser(r.Body)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Tenant", tenant)
		if hold {
			r.Header.Set("Hold", "1")
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w
	}
	var held []chan int
	hold := func(tenant string, size int) {
		t.Helper()
		done := make(chan int, 1)
		go func() { done <- send(tenant, size, false, true).Code }()
		if n := <-reading; n != size {
			t.Fatalf("%d bytes", n)
		}
		held = append(held, done)
	}
	hold("a", 5*mb)
	for _, chunked := range []bool{false, true} {
		w := send("a", 2*mb, chunked, false) // seven of eight would be one tenant's
		if w.Code != 503 || code(t, w) != "service_unavailable" || w.Header().Get("Retry-After") == "" || w.Header().Get("Connection") != "close" {
			t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
		}
	}
	if w := send("b", 2*mb, false, false); w.Code != 200 {
		t.Errorf("another tenant: %d %s", w.Code, w.Body)
	}
	hold("b", 2*mb)
	if w := send("c", 2*mb, true, false); w.Code != 503 {
		t.Errorf("more than there is: %d", w.Code)
	}
	for _, tenant := range []string{"a", "b", "c"} {
		if w := send(tenant, freeBody, false, false); w.Code != 200 {
			t.Errorf("a small body of %s: %d %s", tenant, w.Code, w.Body)
		}
	}
	close(release)
	for _, done := range held {
		if got := <-done; got != 200 {
			t.Error(got)
		}
	}
	if n, parties := s.room.bodies.Used(); n != 0 || parties != 0 {
		t.Errorf("%d bytes of %d were not given back", n, parties)
	}
	if w := send("a", 5*mb, false, false); w.Code != 200 {
		t.Errorf("afterwards: %d %s", w.Code, w.Body)
	}
}

func FuzzMatches(f *testing.F) {
	for _, s := range []string{`"a"`, `W/"a"`, "*", `"a", "b"`, ",", `"`, "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if Matches(http.Header{"If-None-Match": {s}}, `"no-such-tag"`) && !strings.Contains(s, "*") && !strings.Contains(s, "no-such-tag") {
			t.Errorf("%q matches a tag it does not name", s)
		}
	})
}
