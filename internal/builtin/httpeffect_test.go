package builtin

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/fermata-run/fermata/node"
)

// The transport sends a request with a key again by itself when a connection it
// has kept turns out to be broken. Where a call may not be repeated, it does not.
func TestHTTPSentOnce(t *testing.T) {
	for _, c := range []struct {
		config string
		calls  int64 // two are asked for
	}{
		{`{"url":"URL","method":"POST","body":1,"onUnknownOutcome":"fail"}`, 2},
		{`{"url":"URL","method":"POST","onUnknownOutcome":"fail"}`, 2},
		{`{"url":"URL","method":"DELETE","onUnknownOutcome":"fail"}`, 2},
		{`{"url":"URL","method":"POST","body":1}`, 3},
	} {
		var calls atomic.Int64
		s := newSite(t, func(w http.ResponseWriter, _ *http.Request) {
			if calls.Add(1) == 2 {
				conn, _, err := w.(http.Hijacker).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				_ = conn.Close()
			}
		})
		if _, err := s.call(c.config); err != nil {
			t.Fatal(err)
		}
		_, err := s.call(c.config)
		if n := calls.Load(); n != c.calls || (err == nil) != (n == 3) || err != nil && node.IsNotDone(err) {
			t.Errorf("%s: %d calls, %v", c.config, n, err)
		}
	}
}
