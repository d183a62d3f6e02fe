package v1

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/fermata-run/fermata/internal/api"
)

// wantsJSON reports whether a request for events asks for one document: it accepts
// JSON, and events as a stream less or not at all. Whoever names neither has come for
// the stream.
func wantsJSON(h http.Header) bool {
	return accepts(h, "application/json") > accepts(h, eventStream)
}

// accepts is how much a request wants a type that it names.
func accepts(h http.Header, name string) float64 {
	most := 0.0
	for _, line := range h.Values("Accept") {
		for one := range strings.SplitSeq(line, ",") {
			kind, params, _ := strings.Cut(one, ";")
			if strings.EqualFold(strings.TrimSpace(kind), name) {
				most = max(most, weight(params))
			}
		}
	}
	return most
}

// weight is the q of a media range; one that cannot be read is 1, as if it were absent.
func weight(params string) float64 {
	for p := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(p), "=")
		if strings.EqualFold(name, "q") {
			if q, err := strconv.ParseFloat(value, 64); err == nil && q >= 0 && q <= 1 {
				return q
			}
		}
	}
	return 1
}

// pageQuery are parameters with which clients of some hosts read a log page by page, from
// the operation that is for following it. v1's text has neither.
var pageQuery = []api.Param{
	{Name: "fromSequence", Description: "Reads one document that begins with this sequence, unless a stream is what is accepted.", Schema: `{"type":"integer","minimum":0}`},
	{Name: "limit", Description: "Reads one document of at most so many events, unless a stream is what is accepted.", Schema: `{"type":"integer","minimum":1}`},
}

// cut is which part of a log a document shall hold.
type cut struct{ from, most int64 }

// readCut reads what part is asked for. Whoever says so wants a document, though he accepts
// anything, as programs do by themselves: a stream has no such parts. To who accepts a
// stream by name they are parameters that nobody knows.
func readCut(r *api.Request) (c cut, paged bool, err error) {
	const top = 1<<53 - 1
	c.most = top
	if accepts(r.Header, eventStream) > 0 {
		return c, false, nil
	}
	q := r.URL.Query()
	if c.from, err = r.QueryInt("fromSequence", 0, top, 0); err == nil {
		c.most, err = r.QueryInt("limit", 1, top, top)
	}
	return c, q.Has("fromSequence") || q.Has("limit"), err
}
