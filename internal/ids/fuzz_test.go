package ids_test

import (
	"strings"
	"testing"

	"github.com/fermata-run/fermata/internal/ids"
)

// FuzzUnproject: what a segment is read as, it is written as again in the one
// projected form, and no segment holds a second id.
func FuzzUnproject(f *testing.F) {
	for _, s := range []string{"acme~2F0123456789abcdef", "acme/0123456789abcdef", "~2F", "~", "a~2f", "a~7E2F", "..~2F0123456789abcdef", "~C3~A9"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ids.Unproject(s)
		if err != nil {
			return
		}
		if back, err := ids.Unproject(ids.Project(got)); err != nil || back != got {
			t.Errorf("%q is %q and then %q, %v", s, got, back, err)
		}
		id, err := ids.ParseRun(got)
		if err != nil {
			return
		}
		if strings.Count(id.String(), "/") != 1 || !ids.ValidTenant(id.Tenant) || !ids.ValidOpaque(id.Opaque) || strings.ContainsAny(id.Segment(), "/%") {
			t.Errorf("%q is the run %+v", s, id)
		}
	})
}

// FuzzValidSubject: a subject is one word without a slash, whatever the bytes.
func FuzzValidSubject(f *testing.F) {
	f.Add("key-abc")
	f.Add("a b")
	f.Add("a\xff")
	f.Fuzz(func(t *testing.T, s string) {
		if ids.ValidSubject(s) && (s == "" || strings.ContainsAny(s, "/ \t\r\n\x00") || len([]rune(s)) > 256) {
			t.Errorf("%q", s)
		}
	})
}
