package egress

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/fermata-run/fermata/internal/effect"
	"github.com/fermata-run/fermata/node"
)

// What runs for a replay neither sends nor dials, through whichever client; what
// nothing is known of is let out for the host itself, but not for a node.
func TestOnlyPermittedCallsLeave(t *testing.T) {
	hits := 0
	s := serve(t, func(http.ResponseWriter, *http.Request) { hits++ })
	g := guard(t, Options{})
	seams := &effect.Registry{}
	if err := seams.Add(node.Seam{Name: "test.http", Kind: node.SeamHTTP}); err != nil {
		t.Fatal(err)
	}
	none := t.Context()
	permitted, replay := effect.Permit(none, seams), effect.Forbid(effect.Permit(none, seams))
	for _, c := range []struct {
		name  string
		guard *Guard
		ctx   context.Context
		out   bool
	}{
		{"the host's own", g, none, true}, {"a node's", g.Through("test.http"), permitted, true},
		// By now a connection is kept that would need no dial.
		{"replayed", g, replay, false}, {"replayed at a seam", g.Through("test.http"), replay, false},
		{"of nobody", g.Through("test.http"), none, false}, {"at another seam", g.Through("test.other"), permitted, false},
	} {
		for _, client := range []*http.Client{c.guard.Client(), c.guard.RedirectClient()} {
			before := hits
			req, _ := http.NewRequestWithContext(c.ctx, "GET", s.URL, nil)
			resp, err := client.Do(req)
			if err == nil {
				resp.Body.Close()
			}
			var refused *node.Error
			if out := err == nil && hits == before+1; out != c.out || !out && !errors.As(err, &refused) {
				t.Errorf("%s: %v, %d calls", c.name, err, hits-before)
			}
		}
		conn, err := c.guard.DialContext(c.ctx, "tcp", s.Listener.Addr().String())
		if err == nil {
			conn.Close()
		}
		if (err == nil) != c.out {
			t.Errorf("%s: dial: %v", c.name, err)
		}
	}
}
