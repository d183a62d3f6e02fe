package kill

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// stubborn is a service whose first call never gets an answer.
type stubborn struct {
	mu     sync.Mutex
	keys   []string
	called chan struct{} // receives once per call
}

// ServeHTTP implements http.Handler.
func (s *stubborn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body) //nolint:errcheck // so that the end of the connection is noticed
	s.mu.Lock()
	s.keys = append(s.keys, r.Header.Get("Idempotency-Key"))
	first := len(s.keys) == 1
	s.mu.Unlock()
	s.called <- struct{}{}
	if first {
		<-r.Context().Done()
	}
}

// TestStopsWithHangingCall: SIGTERM ends the host although a call does not come
// back, and the next host makes the call again, with the same key.
func TestStopsWithHangingCall(t *testing.T) {
	flags := egress(t)
	if flags == nil {
		t.Skip("serve has no flag --allow-egress, so nothing can be called")
	}
	s := &stubborn{called: make(chan struct{}, 16)}
	out := httptest.NewServer(s)
	defer out.Close()
	h := newHost(t, append(flags, "--shutdown-grace", "1s")...)
	h.start()
	h.register(flow("hang", []any{post("call", out.URL), noop("z")}, chain("call", "z")))
	id, err := h.create("hang", "t")
	if err != nil {
		t.Fatal(err)
	}
	<-s.called
	if err := h.stop(); err != nil {
		t.Fatalf("SIGTERM with a call that hangs: %v", err)
	}
	h.start()
	end := h.await(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if end.Status != "completed" || len(s.keys) != 2 || s.keys[0] != s.keys[1] {
		docs, _ := h.log(id)
		t.Errorf("the run is %s after calls with the keys %q\n%s", end.Status, s.keys, strings.Join(asText(docs), "\n"))
	}
}
