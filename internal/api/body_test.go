package api

import (
	"errors"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/problem"
)

// deadlines notes the read deadlines that are set.
type deadlines struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error { d.set = append(d.set, t); return nil }

func TestReadBody(t *testing.T) {
	const limit = 100
	broken := io.MultiReader(strings.NewReader(`{"a":`), errReader{})
	for name, c := range map[string]struct {
		body io.Reader
		head [2]string
		want problem.Code
		text string
	}{
		"a body":            {strings.NewReader(`{}`), [2]string{}, "", `{}`},
		"none":              {strings.NewReader(``), [2]string{}, "", ``},
		"none, of any type": {strings.NewReader(``), [2]string{"Content-Type", "text/plain"}, "", ``},
		"at the limit":      {strings.NewReader(strings.Repeat("x", limit)), [2]string{}, "", strings.Repeat("x", limit)},
		"past it":           {strings.NewReader(strings.Repeat("x", limit+1)), [2]string{}, problem.PayloadTooLarge, ""},
		"past it in chunks": {io.MultiReader(strings.NewReader(strings.Repeat("x", limit)), strings.NewReader("y")), [2]string{}, problem.PayloadTooLarge, ""},
		"broken off":        {broken, [2]string{}, problem.ValidationError, ""},
		"text":              {strings.NewReader(`{}`), [2]string{"Content-Type", "text/plain"}, problem.UnsupportedMediaType, ""},
		"a form":            {strings.NewReader(`{}`), [2]string{"Content-Type", "application/x-www-form-urlencoded"}, problem.UnsupportedMediaType, ""},
		"bad parameters":    {strings.NewReader(`{}`), [2]string{"Content-Type", "application/json; charset"}, problem.UnsupportedMediaType, ""},
		"with UTF-8":        {strings.NewReader(`{}`), [2]string{"Content-Type", "application/json; charset=UTF-8"}, "", `{}`},
		"with Latin 1":      {strings.NewReader(`{}`), [2]string{"Content-Type", "application/json; charset=iso-8859-1"}, problem.UnsupportedMediaType, ""},
		"compressed":        {strings.NewReader(`{}`), [2]string{"Content-Encoding", "gzip"}, problem.UnsupportedMediaType, ""},
		"not compressed":    {strings.NewReader(`{}`), [2]string{"Content-Encoding", "Identity"}, "", `{}`},
	} {
		r := httptest.NewRequest("POST", "/x", c.body)
		r.Header.Set("Content-Type", "application/json")
		if c.head[0] != "" {
			r.Header.Set(c.head[0], c.head[1])
		}
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		b, err := ReadBody(w, r, limit)
		if c.want != "" && !problem.Is(err, c.want) || c.want == "" && err != nil || string(b) != c.text {
			t.Errorf("%s: %q, %v", name, b, err)
		}
		for i, at := range w.set { // each is lifted again
			if len(w.set)%2 != 0 || at.IsZero() != (i%2 == 1) {
				t.Errorf("%s: read deadlines %v", name, w.set)
			}
		}
		if c.want == "" && len(w.set) == 0 {
			t.Errorf("%s: read without a deadline", name)
		}
	}
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, errors.New("connection reset") }
