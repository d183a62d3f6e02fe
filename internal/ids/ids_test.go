package ids_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/ids"
)

func TestGrammars(t *testing.T) {
	long := strings.Repeat("a", 128)
	for _, c := range []struct {
		name string
		ok   func(string) bool
		good []string
		bad  []string
	}{
		{"tenant", ids.ValidTenant,
			[]string{"a", "acme", "anon:x", "A.b_c~d-e", long},
			[]string{"", "anon:", "a/b", "a b", "a:b", "anon:a:b", "é", long + "a", "a%2F"}},
		{"opaque", ids.ValidOpaque,
			[]string{"0123456789abcdef", "A.b_c~d-e0123456", long},
			[]string{"", "0123456789abcde", "0123456789abcde/", "0123456789abcde:", long + "a"}},
		{"authored", ids.ValidAuthored,
			[]string{"a", "a:b", "x.y-z_~", long},
			[]string{"", "a/b", "a b", "a\x00", long + "a"}},
		{"type", ids.ValidTypeID,
			[]string{"core.noop", "core.http.request", "core.approvalGate", "a.b_c-d1"},
			[]string{"", "core", "Core.noop", "core.Noop", "core..noop", ".core", "core.", "core.1", "co re.x", strings.Repeat("a", 255) + ".b"}},
	} {
		for _, s := range c.good {
			if !c.ok(s) {
				t.Errorf("%s: %q is refused", c.name, s)
			}
		}
		for _, s := range c.bad {
			if c.ok(s) {
				t.Errorf("%s: %q is accepted", c.name, s)
			}
		}
	}
}

// Lists page by id, newest first, so order must never reverse: not within a
// millisecond, not when the clock goes back, not across goroutines.
func TestMintedIDsAscend(t *testing.T) {
	var m ids.Minter
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	last := ""
	for i := range 5000 {
		at := now.Add(time.Duration(i/100) * time.Millisecond)
		if i%7 == 0 {
			at = at.Add(-time.Hour)
		}
		id := m.Next(at)
		if id <= last {
			t.Fatalf("%s follows %s", id, last)
		}
		if !ids.ValidOpaque(id) || strings.Contains(id, "~") || len(id) != 26 {
			t.Fatalf("%q is no opaque segment a host may mint", id)
		}
		last = id
	}
	seen := sync.Map{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			prev := ""
			for range 1000 {
				id := m.Next(now)
				if _, dup := seen.LoadOrStore(id, true); dup || id <= prev {
					t.Errorf("%s is there already or precedes %s", id, prev)
					return
				}
				prev = id
			}
		})
	}
	wg.Wait()
}

func TestDerivedIDsDependOnEveryPart(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_000)
	base := ids.Derive(at, "run", "node", "1", "0")
	if base != ids.Derive(at, "run", "node", "1", "0") {
		t.Error("the same parts give another id")
	}
	for _, other := range [][]string{
		{"run", "node", "1", "1"}, {"run", "node", "10", ""}, {"run", "node1", "", "0"}, {"runnode", "", "1", "0"}, {"run", "node", "1"},
	} {
		if ids.Derive(at, other...) == base {
			t.Errorf("%q collides", other)
		}
	}
	if !ids.ValidOpaque(base) {
		t.Errorf("%q is no opaque segment", base)
	}
}

func TestEventAndInterruptIDs(t *testing.T) {
	r := ids.Run{Tenant: "acme", Opaque: "0123456789abcdef"}
	seen := map[string]string{}
	note := func(id, what string) {
		if was, dup := seen[id]; dup {
			t.Errorf("%s and %s share the id %s", was, what, id)
		}
		seen[id] = what
	}
	note(ids.Event(r, 0), "event 0")
	note(ids.Event(r, 1), "event 1")
	note(ids.Event(r, 36), "event 36")
	note(ids.Interrupt(r, "a", 1, 0).String(), "a 1 0")
	note(ids.Interrupt(r, "a", 1, 1).String(), "a 1 1")
	note(ids.Interrupt(r, "a", 11, 0).String(), "a 11 0")
	note(ids.Interrupt(r, "b", 1, 0).String(), "b 1 0")
	note(ids.Interrupt(ids.Run{Tenant: "beta", Opaque: r.Opaque}, "a", 1, 0).String(), "another tenant")
}

func FuzzParseRun(f *testing.F) {
	for _, s := range []string{"acme/0123456789abcdef", "anon:x/0123456789abcdef", "0123456789abcdef", "a/b/c", "/", "a/", "acme/0123456789abcde~"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ids.ParseRun(s)
		if err != nil {
			return
		}
		if r.String() != s {
			t.Errorf("%q reads back as %q", s, r.String())
		}
		if !ids.ValidTenant(r.Tenant) || !ids.ValidOpaque(r.Opaque) {
			t.Errorf("%q was accepted with malformed parts", s)
		}
	})
}

// A projected id holds nothing that a path segment may not, and reads back.
func FuzzProject(f *testing.F) {
	for _, s := range []string{"acme/0123", "a~b/c", "~2F", "~7E", "é/\x00", "anon:x/y"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p := ids.Project(s)
		if strings.ContainsAny(p, "/") {
			t.Errorf("%q keeps a slash as %q", s, p)
		}
		back, err := ids.Unproject(p)
		if err != nil || back != s {
			t.Errorf("%q projects to %q, which reads back as %q, %v", s, p, back, err)
		}
	})
}
