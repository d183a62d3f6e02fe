package api

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
)

// RunID reads a tenant-bound path parameter in either spelling, projected or
// percent-encoded (spec v2 identity.md §5). The bare form, an id of a 1.x version,
// is refused unless the host serves one: then it stands in the caller's tenant.
func (r *Request) RunID(name string) (ids.Run, error) {
	id, err := ids.ReadRun(r.Params[name], r.Home)
	if err != nil {
		return ids.Run{}, problem.Invalid(name, "%v", err)
	}
	return id, nil
}

// Authored reads a path parameter that a workflow's author chose.
func (r *Request) Authored(name string) (string, error) {
	v := r.Params[name]
	if !ids.ValidAuthored(v) {
		return "", problem.Invalid(name, "want 1 to 128 of A-Z a-z 0-9 . _ ~ : -")
	}
	return v, nil
}

// CheckQuery refuses a query parameter that the operation does not have: a slip
// in a name must not answer another question than the one that was asked.
func (r *Request) CheckQuery() error {
	if r.URL.RawQuery == "" || r.Route.AnyQuery {
		return nil
	}
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return problem.Invalid("query", "the query string is malformed")
	}
	known := make([]string, 0, len(r.Route.Query))
	for _, p := range r.Route.Query {
		known = append(known, p.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(q)) {
		if !slices.Contains(known, name) && !slices.Contains(r.Route.Ignored, name) {
			return problem.Invalid(name, "this operation has no such query parameter").With("known", known)
		}
	}
	return nil
}

// QueryOne reads a query parameter that may be given once.
func (r *Request) QueryOne(name string) (value string, given bool, err error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		// Half a query would be half of what the caller asked for.
		return "", false, problem.Invalid("query", "the query string is malformed")
	}
	vs, ok := q[name]
	switch {
	case !ok:
		return "", false, nil
	case len(vs) > 1:
		return "", true, problem.Invalid(name, "is given more than once")
	}
	return vs[0], true, nil
}

// QueryInt reads a whole number between min and max from the query.
func (r *Request) QueryInt(name string, min, max, fallback int64) (int64, error) {
	v, given, err := r.QueryOne(name)
	if err != nil || !given {
		return fallback, err
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < min || n > max || strings.HasPrefix(v, "+") {
		return 0, problem.Invalid(name, "want a whole number from %d to %d", min, max)
	}
	return n, nil
}

// Matches reports whether a request's If-None-Match names an ETag.
func Matches(h http.Header, etag string) bool {
	for _, line := range h.Values("If-None-Match") {
		for tag := range strings.SplitSeq(line, ",") {
			tag = strings.TrimSpace(tag)
			if tag == "*" || strings.TrimPrefix(tag, "W/") == etag {
				return true
			}
		}
	}
	return false
}
