package overlap

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/fermata-run/fermata/internal/api"
)

// named is a wire that says who answered what.
type named string

func (n named) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Wire", string(n)+" "+r.URL.EscapedPath())
}
func (n named) Methods(path string) []string         { return []string{string(n) + " " + path} }
func (n named) Stamp(h http.Header, _ *http.Request) { h.Set("Stamp", string(n)) }
func (n named) Routes() []api.Route                  { return []api.Route{{ID: string(n)}} }

func TestPair(t *testing.T) {
	p := &Pair{Newer: named("new"), Older: named("old"), Prefix: "/v1", Major: "1"}
	for _, c := range []struct{ path, version, want string }{
		{"/.well-known/openwop", "", "old /.well-known/openwop"}, {"/.well-known/openwop", "1.4", "old /.well-known/openwop"},
		{"/.well-known/openwop", "2.0", "new /.well-known/openwop"}, {"/.well-known/openwop", "9", "new /.well-known/openwop"}, {"/.well-known/openwop", "zero", "new /.well-known/openwop"},
		{"/.well-known/oauth-protected-resource", "1", "new /.well-known/oauth-protected-resource"}, {"/.well-known/oauth-protected-resource", "", "new /.well-known/oauth-protected-resource"},
		{"/runs", "", "new /runs"}, {"/runs", "2", "new /runs"}, {"/runs", "1", "old /v1/runs"}, {"/runs/a%2Fb:pause", "1.0", "old /v1/runs/a%2Fb:pause"}, {"/runs", "x", "new /runs"},
		{"/v1/runs", "", "old /v1/runs"}, {"/v1/runs", "2", "old /v1/runs"}, {"/v1", "", "old /v1"}, {"/v1x/runs", "", "new /v1x/runs"}, {"/v11", "1", "old /v1/v11"},
		{"/host/fermata/live", "1", "new /host/fermata/live"},
	} {
		r := httptest.NewRequest("GET", c.path, nil)
		if c.version != "" {
			r.Header.Set(api.VersionHeader, c.version)
		}
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)
		if got := w.Header().Get("Wire"); got != c.want {
			t.Errorf("%s as %q: %s, want %s", c.path, c.version, got, c.want)
		}
		h := http.Header{}
		if p.Stamp(h, r); h.Get("Stamp") != c.want[:3] {
			t.Errorf("%s as %q is stamped by %s", c.path, c.version, h.Get("Stamp"))
		}
		if r.URL.Path != httptest.NewRequest("GET", c.path, nil).URL.Path {
			t.Errorf("the request itself was changed to %s", r.URL.Path)
		}
	}
	if got := p.Methods("/v1/runs")[0] + p.Methods("/runs")[0]; got != "old /v1/runsnew /runs" {
		t.Errorf("methods of %s", got)
	}
	if len(p.Routes()) != 2 {
		t.Errorf("routes %v", p.Routes())
	}
}
