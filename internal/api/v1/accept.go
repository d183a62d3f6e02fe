package v1

import (
	"net/http"
	"strconv"
	"strings"
)

// wantsJSON reports whether a request for events asks for one document: it accepts
// JSON, and events as a stream less or not at all. Whoever names neither has come for
// the stream.
func wantsJSON(h http.Header) bool {
	document, events := 0.0, 0.0
	for _, line := range h.Values("Accept") {
		for one := range strings.SplitSeq(line, ",") {
			kind, params, _ := strings.Cut(one, ";")
			switch strings.ToLower(strings.TrimSpace(kind)) {
			case "application/json":
				document = max(document, weight(params))
			case eventStream:
				events = max(events, weight(params))
			}
		}
	}
	return document > events
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
