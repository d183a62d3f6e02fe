package api

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/fermata-run/fermata/internal/problem"
)

func TestRunID(t *testing.T) {
	for raw, want := range map[string]string{
		"t~2F0123456789abcdef": "t/0123456789abcdef", "t/0123456789abcdef": "t/0123456789abcdef", "anon~3At~2F0123456789abcdef": "anon:t/0123456789abcdef",
		"t/0123456789ab~cdef": "t/0123456789ab~cdef", "t/0123456789abcdef~": "t/0123456789abcdef~", // minted elsewhere, percent-encoded
		"0123456789abcdef": "", "t~2f0123456789abcdef": "", "t~2F": "", "~2F0123456789abcdef": "", "t~2F0123456789abcde": "", "t~2F0123456789abcdef~2Fx": "", "t/0123456789abcdef/": "", "": "",
	} {
		r := &Request{Params: map[string]string{"runId": raw}}
		id, err := r.RunID("runId")
		if want == "" {
			var p *problem.Error
			if !errors.As(err, &p) || p.Code != problem.ValidationError || p.Details["field"] != "runId" {
				t.Errorf("%q: %v, %v", raw, id, err)
			}
			continue
		}
		if err != nil || id.String() != want {
			t.Errorf("%q: %v, %v, want %s", raw, id, err, want)
		}
	}
}

func TestQuery(t *testing.T) {
	for query, want := range map[string]int64{
		"": 7, "n=1": 1, "n=10": 10, "n=010": 10, "other=x": 7,
		"n=0": -1, "n=11": -1, "n=": -1, "n=x": -1, "n=+1": -1, "n=%2B1": -1, "n=1&n=2": -1, "n=1.0": -1, "n=%zz": -1, "x=%zz": -1, "n=1;x=2": -1, "n=9223372036854775808": -1,
	} {
		r := &Request{Request: httptest.NewRequest("GET", "/x", nil)}
		r.URL.RawQuery = query
		n, err := r.QueryInt("n", 1, 10, 7)
		if want < 0 {
			if !problem.Is(err, problem.ValidationError) {
				t.Errorf("%q: %d, %v", query, n, err)
			}
		} else if err != nil || n != want {
			t.Errorf("%q: %d, %v, want %d", query, n, err, want)
		}
	}
}

func TestMatches(t *testing.T) {
	const tag = `"abc"`
	for _, c := range []struct {
		lines []string
		want  bool
	}{
		{nil, false}, {[]string{""}, false}, {[]string{tag}, true}, {[]string{`W/"abc"`}, true}, {[]string{`*`}, true}, {[]string{` * `}, true},
		{[]string{`"x", "abc"`}, true}, {[]string{`"x"`, `"y","abc"`}, true}, {[]string{`abc`}, false}, {[]string{`"ab"`}, false}, {[]string{`w/"abc"`}, false}, {[]string{`"*"`}, false},
	} {
		if got := Matches(http.Header{"If-None-Match": c.lines}, tag); got != c.want {
			t.Errorf("%q: %v", c.lines, got)
		}
	}
}
