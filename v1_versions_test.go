package fermata_test

import (
	"slices"
	"testing"
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
