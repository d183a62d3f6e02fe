package api

import (
	"net/url"
	"slices"
	"strings"
)

// Table is a compiled route table.
type Table struct {
	Routes []Route
	rows   []row
}

type row struct {
	route    *Route
	segments []segment
}

type segment struct {
	literal string // for a fixed segment
	param   string // for a {parameter}
	verb    string // ":pause" behind a parameter
}

// NewTable compiles routes. Rows whose last segment carries a verb are tried
// before rows that take the whole segment as a parameter.
func NewTable(routes []Route) *Table {
	t := &Table{Routes: routes}
	for i := range routes {
		r := row{route: &routes[i]}
		for _, s := range strings.Split(strings.TrimPrefix(routes[i].Pattern, "/"), "/") {
			r.segments = append(r.segments, parseSegment(s))
		}
		t.rows = append(t.rows, r)
	}
	slices.SortStableFunc(t.rows, func(a, b row) int { return b.weight() - a.weight() })
	return t
}

func parseSegment(s string) segment {
	if !strings.HasPrefix(s, "{") {
		return segment{literal: s}
	}
	name, verb, _ := strings.Cut(s[1:], "}")
	return segment{param: name, verb: verb}
}

// weight puts the more particular rows first.
func (r row) weight() int {
	w := 0
	for _, s := range r.segments {
		switch {
		case s.literal != "":
			w += 2
		case s.verb != "":
			w++
		}
	}
	return w
}

// Match finds the row for a request's method and escaped path. With no row it
// returns the methods the path would take; none of them means 404. HEAD finds
// the row of GET, but not one that stays open: it has no header worth the wait.
func (t *Table) Match(method, escapedPath string) (*Route, map[string]string, []string) {
	head := method == "HEAD"
	if head {
		method = "GET"
	}
	parts := strings.Split(strings.TrimPrefix(escapedPath, "/"), "/")
	var allowed []string
	for i := range t.rows {
		r := &t.rows[i]
		params, ok := r.match(parts)
		if !ok {
			continue
		}
		if r.route.Method == method && !(head && r.route.Stream) {
			return r.route, params, nil
		}
		allowed = append(allowed, r.route.Method)
		if last := r.segments[len(r.segments)-1]; last.verb != "" {
			// A known verb is never part of an id: no other row may take it.
			return nil, nil, allowed
		}
	}
	return nil, nil, allowed
}

// runID is the parameter whose values are tenant-bound ids.
const runID = "runId"

// verbBehind reports whether a raw tenant-bound id carries a verb no row has
// taken: its last part, behind the slash, never holds a colon. An operation this
// host lacks is not there (404), rather than an odd id or another method's path.
func verbBehind(raw string) bool {
	colon := strings.LastIndexByte(raw, ':')
	slash := max(strings.LastIndex(raw, "~2F"), strings.LastIndex(strings.ToUpper(raw), "%2F"))
	return colon > slash
}

func (r *row) match(parts []string) (map[string]string, bool) {
	if len(parts) != len(r.segments) {
		return nil, false
	}
	var params map[string]string
	for i, s := range r.segments {
		if s.param == "" {
			if parts[i] != s.literal {
				return nil, false
			}
			continue
		}
		raw := parts[i]
		if s.verb != "" {
			var ok bool
			if raw, ok = strings.CutSuffix(raw, s.verb); !ok {
				return nil, false
			}
		}
		if s.param == runID && verbBehind(raw) {
			return nil, false
		}
		v, err := url.PathUnescape(raw)
		if err != nil || v == "" {
			return nil, false
		}
		if params == nil {
			params = make(map[string]string, 2)
		}
		params[s.param] = v
	}
	return params, true
}
