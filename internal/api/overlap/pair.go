package overlap

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/fermata-run/fermata/internal/api"
)

// Pair serves two majors under one origin (spec v2 versioning.md §1.2, §1.3).
type Pair struct {
	Newer  Wire
	Older  Wire
	Prefix string // of the older wire's paths
	Major  string // of the older wire
}

// discovery is the one resource whose representation the header selects, and the one
// path for which a request without it means the older major: every other bare path is
// the newer one's (docs/adr/0024).
const discovery = "/.well-known/openwop"

// Wire says which wire a request is for, and the request as that wire reads it.
func (p *Pair) Wire(r *http.Request) (Wire, *http.Request) {
	if p.prefixed(r.URL.Path) {
		return p.Older, r
	}
	switch v := api.Asked(r.Header); {
	case r.URL.Path == discovery && (v == "" || api.Major(v) == p.Major):
		return p.Older, r
	case v != "" && api.Major(v) == p.Major && !p.own(r):
		// A bare path under the older major is what the older major has for it.
		return p.Older, p.under(r)
	}
	return p.Newer, r
}

func (p *Pair) prefixed(path string) bool {
	return path == p.Prefix || strings.HasPrefix(path, p.Prefix+"/")
}

// own reports whether a path is the host's own, which has no major (versioning.md §5).
func (p *Pair) own(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, "/host/") || strings.HasPrefix(r.URL.Path, "/.well-known/")
}

// under is a request on a bare path as the older wire spells it.
func (p *Pair) under(r *http.Request) *http.Request {
	c := r.Clone(r.Context())
	u := url.URL{}
	if r.URL != nil {
		u = *r.URL
	}
	u.Path = p.Prefix + u.Path
	if u.RawPath != "" {
		u.RawPath = p.Prefix + u.RawPath
	}
	c.URL = &u
	return c
}

// ServeHTTP implements http.Handler.
func (p *Pair) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !p.prefixed(r.URL.Path) && (r.URL.Path == discovery || !p.own(r)) {
		api.Varies(w.Header()) // whatever comes of it: the header chose who answers
	}
	wire, r := p.Wire(r)
	wire.ServeHTTP(w, r)
}

// Methods implements Wire.
func (p *Pair) Methods(escapedPath string) []string {
	if p.prefixed(escapedPath) {
		return p.Older.Methods(escapedPath)
	}
	return p.Newer.Methods(escapedPath)
}

// Stamp implements Wire.
func (p *Pair) Stamp(h http.Header, r *http.Request) {
	wire, r := p.Wire(r)
	wire.Stamp(h, r)
}

// Routes are those of both.
func (p *Pair) Routes() []api.Route { return append(p.Newer.Routes(), p.Older.Routes()...) }
