package fermata_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/fermata-run/fermata"
)

const (
	fireSeam  = "/conformance/seams/sample/effect-seams/fire"
	retrySeam = "/conformance/seams/sample/test/idempotency/effect-retry"
)

func (s *server) ledger(run any) []any {
	s.t.Helper()
	a := s.do("GET", "/runs/"+strings.ReplaceAll(run.(string), "/", "~2F")+"/effects", nil)
	return a.json["effects"].([]any)
}

// A provider that breaks the connection sees the same key again, and the ledger
// lists both attempts at the one effect.
func TestRetrySeam(t *testing.T) {
	t.Parallel()
	s := start(t, withSeams, func(c *fermata.Config) { c.AllowEgress = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
	var mu sync.Mutex
	var keys []string
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		n := len(keys)
		mu.Unlock()
		if n == 1 {
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(provider.Close)
	a := s.do("POST", retrySeam, map[string]any{"providerUrl": provider.URL})
	if a.status != 201 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if len(keys) != 2 || keys[0] == "" || keys[0] != keys[1] {
		t.Errorf("the provider saw %q", keys)
	}
	rows := s.ledger(a.json["runId"])
	if len(rows) != 2 {
		t.Fatalf("%d attempts: %v", len(rows), rows)
	}
	for _, r := range rows {
		if m := r.(map[string]any); m["effectId"] != a.json["effectId"] || m["providerKey"] != keys[0] {
			t.Errorf("%v", m)
		}
	}
}

func TestFireSeam(t *testing.T) {
	t.Parallel()
	s := start(t, withSeams)
	a := s.do("POST", fireSeam, map[string]any{"seam": "core.http.request"})
	if a.status != 201 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if rows := s.ledger(a.json["runId"]); len(rows) != 1 {
		t.Errorf("%v", rows)
	}
	for _, tc := range []struct {
		path   string
		body   any
		status int
	}{
		{fireSeam, map[string]any{"seam": "no.such"}, 404}, {fireSeam, map[string]any{}, 400},
		{fireSeam, map[string]any{"seam": "core.http.request", "receiverUrl": "nowhere"}, 400}, {fireSeam, map[string]any{"seam": "core.http.request", "x": 1}, 400},
		{retrySeam, map[string]any{}, 400}, {retrySeam, map[string]any{"providerUrl": "ftp://a.example/"}, 400},
	} {
		if a := s.do("POST", tc.path, tc.body); a.status != tc.status {
			t.Errorf("%s %v: %d %s", tc.path, tc.body, a.status, a.body)
		}
	}
}
