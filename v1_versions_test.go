package fermata_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-run/fermata"
)

// Which major a request is for (spec v2 versioning.md §1.3, docs/adr/0024).
func TestV1Negotiation(t *testing.T) {
	t.Parallel()
	s := start(t, withV1)
	s.register(flow("one", []any{step("a", "core.noop", nil)}, []any{}))
	id := s.run1("one")
	s.await1(id, "completed")
	const unknown = "/runs/default~2Fhhhhhhhhhhhhhhhhhhhhhh"
	for _, c := range []struct {
		path, version string
		status        int
		served        string
	}{
		{"/.well-known/openwop", "", 200, "1.0"}, {"/.well-known/openwop", "1", 200, "1.0"}, {"/.well-known/openwop", "1.1", 200, "1.0"},
		{"/.well-known/openwop", "2", 200, "2.0"}, {"/.well-known/openwop", "2.0", 200, "2.0"},
		{"/.well-known/openwop", "9.0", 406, "2.0"}, {"/.well-known/openwop", "x", 406, "2.0"},
		{"/v1/runs/" + id, "", 200, "1.0"}, {"/v1/runs/" + id, "1", 200, "1.0"}, {"/v1/runs/" + id, "1.0", 200, "1.0"}, {"/v1/runs/" + id, "1.7", 200, "1.0"},
		{"/v1/runs/" + id, "2.0", 400, "1.0"}, {"/v1/runs/" + id, "2", 400, "1.0"}, {"/v1/runs/" + id, "x", 400, "1.0"},
		{"/v1/openapi.json", "", 200, "1.0"}, {"/v1/openapi.json", "2.0", 400, "1.0"}, {"/v1/nothing", "", 404, "1.0"}, {"/v1", "", 404, "1.0"},
		{"/runs/" + id, "2.0", 200, "2.0"}, {"/runs/" + id, "", 200, "2.0"}, {"/runs/default~2F" + id, "", 200, "2.0"},
		{unknown, "", 404, "2.0"}, {"/runs/" + id, "3", 406, "2.0"},
		{"/runs/" + id, "1.0", 200, "1.0"}, {"/openapi.json", "1", 200, "1.0"}, {"/openapi.json", "", 200, "2.0"},
		{"/host/fermata/live", "1.0", 200, ""}, {"/host/fermata/live", "9", 200, ""},
	} {
		header := []string{"OpenWOP-Version", c.version}
		a := s.do("GET", c.path, nil, header...)
		if a.status != c.status || a.header.Get("OpenWOP-Version") != c.served {
			t.Errorf("GET %s as %q: %d, %q; want %d, %q: %s", c.path, c.version, a.status, a.header.Get("OpenWOP-Version"), c.status, c.served, a.body)
		}
		switch code := a.str("error"); {
		case c.status == 406:
			list := a.json["details"].(map[string]any)["protocolVersions"].([]any)
			if code != "protocol_version_unsupported" || !slices.Equal(list, []any{"1.0", "2.0"}) {
				t.Errorf("%s: %s", c.path, a.body)
			}
		case c.status == 400 && code != "protocol_version_mismatch":
			t.Errorf("%s: %s", c.path, a.body)
		}
	}
	for _, v := range []string{"", "2"} {
		doc := s.do("GET", "/.well-known/openwop", nil, "OpenWOP-Version", v).json
		if !slices.Equal(doc["protocolVersions"].([]any), []any{"1.0", "2.0"}) || doc["preferredVersion"] != "1.0" {
			t.Errorf("as %q: %v, %v preferred", v, doc["protocolVersions"], doc["preferredVersion"])
		}
	}
}

// A version that is named twice is none: a host that took the first and a cache that took
// the last would see two requests in one. And no cache gives an answer in one version to
// who asks for another.
func TestV1NamedTwiceAndVary(t *testing.T) {
	t.Parallel()
	s := start(t, withV1)
	s.register(noop("one"))
	id := s.run1("one")
	s.await1(id, "completed")
	ask := func(path string, versions ...string) *http.Response {
		req, err := http.NewRequest("GET", s.http.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+testKey)
		req.Header["Openwop-Version"] = versions
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res
	}
	for _, c := range []struct {
		path   string
		status int
	}{{"/runs/" + id, 406}, {"/v1/runs/" + id, 400}, {"/.well-known/openwop", 406}, {"/openapi.json", 406}} {
		for _, versions := range [][]string{{"1.0", "2.0"}, {"2.0", "1.0"}, {"2.0", "2.0"}, {"1.0", "1.0"}, {"", "1.0"}, {"1.0, 2.0"}} {
			if res := ask(c.path, versions...); res.StatusCode != c.status {
				t.Errorf("%s as %q: %d, want %d", c.path, versions, res.StatusCode, c.status)
			}
		}
		for _, versions := range [][]string{nil, {"1.0"}, {"2.0"}, {"9"}} {
			got, bare := ask(c.path, versions...).Header.Values("Vary"), !strings.HasPrefix(c.path, "/v1/")
			if n := len(got); bare && (n != 1 || got[0] != "OpenWOP-Version") || !bare && n != 0 {
				t.Errorf("%s as %q varies by %q", c.path, versions, got)
			}
		}
	}
	if got := ask("/host/fermata/live").Header.Values("Vary"); len(got) > 0 {
		t.Errorf("a path without a version varies by %q", got)
	}
	newer := start(t)
	if got := newer.do("GET", "/.well-known/openwop", nil).header.Values("Vary"); !slices.Equal(got, []string{"OpenWOP-Version"}) {
		t.Errorf("without v1 discovery varies by %q", got)
	}
}

// Without the setting there is no trace of v1.
func TestV1IsOffByDefault(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, path := range []string{"/v1/openapi.json", "/v1/runs/0123456789abcdef", "/v1"} {
		s.do("GET", path, nil).refused(t, 404, "not_found")
	}
	doc := s.do("GET", "/.well-known/openwop", nil).want(t, 200).json
	if !slices.Equal(doc["protocolVersions"].([]any), []any{"2.0"}) || doc["preferredVersion"] != "2.0" {
		t.Errorf("%v, %v preferred", doc["protocolVersions"], doc["preferredVersion"])
	}
	s.do("GET", "/.well-known/openwop", nil, "OpenWOP-Version", "1.0").refused(t, 406, "protocol_version_unsupported")
	s.do("GET", "/runs/0123456789abcdef", nil).refused(t, 400, "validation_error")
}

// Under v2 a bare id stands in the caller's tenant while v1 is served, and nowhere else.
func TestV1BareIDsUnderV2(t *testing.T) {
	t.Parallel()
	s := start(t, withV1)
	s.register(gate("g"))
	id := s.run1("g")
	s.await1(id, "waiting-approval")
	other := s.key("other-key-other-key-other-key-othe2", "other", "*")
	for _, c := range []struct{ method, path string }{{"GET", ""}, {"POST", "/cancel"}, {"POST", ":pause"}, {"GET", "/ancestry"}, {"GET", "/events/poll?timeout=1"}} {
		s.do(c.method, "/runs/"+id+c.path, nil, "Authorization", other).refused(t, 404, "not_found")
		s.do(c.method, "/runs/"+seg("default/"+id)+c.path, nil, "Authorization", other).refused(t, 403, "id_tenant_mismatch")
	}
	s.do("POST", "/runs/"+id+":pause", map[string]any{"drainPolicy": "immediate"}).want(t, 202)
	if got := s.do("GET", "/runs/"+id, nil).want(t, 200); got.str("runId") != "default/"+id || got.str("status") != "paused" {
		t.Errorf("%s", got.body)
	}
}

// A run that a host of v1 left is read under either major.
func TestV1EraRuns(t *testing.T) {
	t.Parallel()
	s := start(t, withV1, withSeams)
	_, id, _ := cutID(s.do("POST", seedSeam, oldRun("run.resuming")).want(t, 201).str("runId"))
	old := s.snapshot1(id)
	fresh := s.do("GET", "/runs/"+id, nil).want(t, 200)
	if old["status"] != "completed" || old["eventLogSchemaVersion"] != 2.0 || fresh.json["status"] != "completed" || fresh.json["eventLogSchemaVersion"] != 2.0 {
		t.Errorf("%v and %s", old, fresh.body)
	}
	if o := old["owner"].(map[string]any); o["principal"] != nil {
		t.Errorf("owner %v: nobody of v1 is known", o)
	}
	if a := s.do("POST", "/v1/runs/"+id+"/cancel", nil).want(t, 200); a.str("status") != "completed" {
		t.Errorf("%s", a.body)
	}
	s.do("GET", "/v1/runs/"+id+":diff?against="+id, nil).want(t, 200)
}

// A page of a listed origin may send and read the headers of v1.
func TestV1Preflight(t *testing.T) {
	t.Parallel()
	const origin = "https://app.example"
	for _, on := range []bool{true, false} {
		s := start(t, func(c *fermata.Config) { c.CORSOrigins, c.V1 = []string{origin}, on })
		path := map[bool]string{true: "/v1/runs", false: "/runs"}[on]
		a := s.do("OPTIONS", path, nil, "Authorization", "", "Origin", origin, "Access-Control-Request-Method", "POST").want(t, 204)
		if got := strings.Contains(a.header.Get("Access-Control-Allow-Headers"), "X-Dedup"); got != on {
			t.Errorf("with v1 %v: admits %q", on, a.header.Get("Access-Control-Allow-Headers"))
		}
		if got := strings.Contains(a.header.Get("Access-Control-Expose-Headers"), "Capabilities-Etag"); got != on {
			t.Errorf("with v1 %v: exposes %q", on, a.header.Get("Access-Control-Expose-Headers"))
		}
	}
}
