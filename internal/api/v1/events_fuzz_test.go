package v1

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/problem"
)

// A poll's cursor is a sequence under one of its two names, or refused; -1 is none.
func FuzzPollCursor(f *testing.F) {
	for _, q := range []string{"", "lastSequence=0", "since=0", "lastSequence=1&since=2", "lastSequence=1&since=1", "lastSequence=-1", "since=", "lastSequence=9223372036854775807", "since=9007199254740991", "lastSequence=1e3", "since=%d9%a3", "%", "lastSequence=1;since=2", "afterSequence=4"} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, query string) {
		r := httptest.NewRequest("GET", "/", nil)
		r.URL.RawQuery = query
		after, err := pollCursor(&api.Request{Request: r})
		if err != nil {
			if !problem.Is(err, problem.ValidationError) {
				t.Errorf("%q: %v", query, err)
			}
			return
		}
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatalf("%q is read as %d", query, after)
		}
		given := append(q["lastSequence"], q["since"]...)
		if after < -1 || after > 1<<53-1 || (after == -1) != (len(given) == 0) {
			t.Errorf("%q is read as %d", query, after)
		}
		for _, v := range given {
			if n, err := strconv.ParseInt(v, 10, 64); err != nil || n != after {
				t.Errorf("%q is read as %d", query, after)
			}
		}
	})
}

// Whatever a client accepts, it is given the stream unless it names JSON.
func FuzzAccept(f *testing.F) {
	for _, a := range []string{"", "*/*", "application/json", "text/event-stream", "application/json;q=0.5, text/event-stream;q=0.4", "application/json;q=x", "application/json;q=", ",;,", "application/json;;q=2"} {
		f.Add(a)
	}
	f.Fuzz(func(t *testing.T, accept string) {
		if wantsJSON(http.Header{"Accept": {accept}}) && !strings.Contains(strings.ToLower(accept), "application/json") {
			t.Errorf("%q asks for JSON", accept)
		}
	})
}
