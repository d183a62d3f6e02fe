package host

import (
	"testing"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/identity"
)

func caller(tenant string) identity.Caller {
	return identity.Caller{Subject: event.Subject{Tenant: tenant, SubjectID: "s"}, Scopes: []string{"*"}}
}

// A cursor is good for the very list it came from, and for nothing else.
func TestCursorBelongsToItsList(t *testing.T) {
	queries := []ListRuns{{}, {WorkflowID: "w"}, {Status: "running"}, {WorkflowID: "w", Status: "running"}, {WorkflowID: "running"}, {WorkflowID: `w"`}}
	keys := map[string]bool{}
	for _, tenant := range []string{"t", "u", "t\x00"} {
		for _, q := range queries {
			keys[cursorKey(caller(tenant), q)] = true
		}
	}
	if len(keys) != 18 {
		t.Errorf("%d different lists, want 18", len(keys))
	}
	const at = "01hzxw8k2q3r4s5t6v7w8x9y0z"
	for a := range keys {
		c := makeCursor(at, a)
		for b := range keys {
			got, ok := readCursor(c, b)
			if ok != (a == b) || ok && got != at {
				t.Errorf("cursor of %q in %q: %q, %v", a, b, got, ok)
			}
		}
	}
}

func TestCursorOfNobody(t *testing.T) {
	c := makeCursor("0123456789abcdef", "k")
	for i := range c {
		b := []byte(c)
		if b[i]++; b[i] == c[i] {
			continue
		}
		if at, ok := readCursor(string(b), "k"); ok {
			t.Errorf("byte %d changed: %q", i, at)
		}
	}
	for _, s := range []string{"", "x", "AAAAAAAAAAAA", c + "=", c + "\n", " " + c, c[1:], c[:len(c)-2]} {
		if at, ok := readCursor(s, "k"); ok {
			t.Errorf("%q: %q", s, at)
		}
	}
}
