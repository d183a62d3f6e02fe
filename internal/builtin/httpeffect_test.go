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

// One place is one operation, however its address is written.
func TestHTTPOperation(t *testing.T) {
	seen := map[string]string{}
	for config, place := range map[string]string{
		`{"url":"https://Shop.example:443/a?b=1#c","method":"POST"}`:                "a",
		`{"url":"https://shop.example/a","method":"POST","query":{"x":1}}`:          "a",
		`{"url":"HTTPS://shop.example/a","method":"POST","body":1}`:                 "a",
		`{"url":"https://shop.example/a","method":"PUT"}`:                           "put",
		`{"url":"http://shop.example/a","method":"POST"}`:                           "http",
		`{"url":"https://shop.example:8443/a","method":"POST"}`:                     "port",
		`{"url":"https://shop.example/A","method":"POST"}`:                          "path",
		`{"url":"https://shop.example","method":"POST"}`:                            "root",
		`{"url":"https://shop.example/","method":"POST"}`:                           "root",
		`{"url":"https://shop.example/a","method":"POST","operation":"charge"}`:     "named",
		`{"url":"https://elsewhere.example/b","method":"PUT","operation":"charge"}`: "named",
	} {
		var cfg httpConfig
		i := in(config)
		if err := bind(i, &cfg); err != nil {
			t.Fatal(err)
		}
		p, err := cfg.plan()
		if err != nil {
			t.Fatal(err)
		}
		operation := p.effect().Operation
		if known, ok := seen[place]; ok && known != operation {
			t.Errorf("%s: %q and %q", place, known, operation)
		}
		seen[place] = operation
	}
	distinct := map[string]bool{}
	for _, operation := range seen {
		distinct[operation] = true
	}
	if len(distinct) != len(seen) {
		t.Errorf("two places are one: %v", seen)
	}
}
