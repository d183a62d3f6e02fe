package stream

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/problem"
)

// Last-Event-ID is digits or refused, and never a cursor that cannot be counted on from.
func FuzzLastEventID(f *testing.F) {
	for _, s := range []string{"", "0", "-1", "9223372036854775807", "99999999999999999999999", "1e3", " 1", "٣", "0x1", "1,2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header["Last-Event-Id"] = []string{s}
		after, resumed, err := LastEventID(&api.Request{Request: r})
		digits := s != "" && strings.Trim(s, "0123456789") == ""
		switch {
		case err != nil:
			if !problem.Is(err, problem.ValidationError) || digits {
				t.Errorf("%q: %v", s, err)
			}
		case s == "":
			if resumed || after != -1 {
				t.Errorf("an absent cursor: %d", after)
			}
		case !digits || !resumed || after < 0 || after+1 < after:
			t.Errorf("%q is read as %d", s, after)
		}
	})
}
