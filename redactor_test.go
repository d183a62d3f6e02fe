package fermata

import (
	"strings"
	"testing"
)

// TestRedactorKnowsTheDatabase: the passwords of its addresses are in nothing that a host
// says, and what is no secret is left in.
func TestRedactorKnowsTheDatabase(t *testing.T) {
	r := newRedactor(&Config{Store: "postgres://u:of%2Fthe-store@h/d", StoreListen: "postgres://u@h/d?password=of-the-listener"})
	got := r.Line("cannot reach of/the-store, not of%2Fthe-store nor of-the-listener of postgres")
	if strings.Contains(got, "the-store") || strings.Contains(got, "listener") || !strings.Contains(got, "postgres") {
		t.Error(got)
	}
	r = newRedactor(&Config{Store: "postgres://postgres:postgres@h/postgres", StoreListen: SameStore})
	if got := r.Line("about postgres"); got != "about postgres" {
		t.Error(got)
	}
}
