package fermata_test

import (
	"context"
	"strings"
	"testing"
)

// A slip in the name of a query parameter is said, except where the text says
// that it is ignored.
func TestWireUnknownQuery(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("gate"))
	id := s.waiting()
	for _, path := range []string{
		"/runs/" + seg(id) + "?statu=x", "/runs/" + seg(id) + "/events?streamMod=debug", "/runs/" + seg(id) + "/events/poll?timeout=1&afterSequenc=1",
		"/workflows/gate?version=1.0", "/host/fermata/workflows?limi=1", "/host/fermata/interrupts?cursr=x", "/host/fermata/workflows/gate?Version=1.0",
	} {
		a := s.do("GET", path, nil).refused(t, 400, "validation_error")
		_, query, _ := strings.Cut(path, "?")
		name := strings.Split(query[strings.LastIndex(query, "&")+1:], "=")[0]
		if d, _ := a.json["details"].(map[string]any); d["field"] != name {
			t.Errorf("%s: %s", path, a.body)
		}
	}
	s.do("POST", "/runs?dry=1", map[string]any{"workflowId": "gate"}).refused(t, 400, "validation_error")
	s.do("GET", "/runs/"+seg(id)+"?x=1", nil, "Authorization", "").refused(t, 401, "unauthenticated")
	// spec v2 runs.md §List, events.md §Poll
	s.do("GET", "/runs?staus=failed", nil).want(t, 200)
	if a := s.do("GET", "/runs/"+seg(id)+"/events/poll?timeout=1&since=1&lastSequence=1", nil).want(t, 200); len(a.json["events"].([]any)) < 3 {
		t.Errorf("%s", a.body)
	}
	s.do("GET", "/host/fermata/live?x=1", nil).want(t, 200)
}

// The default of a sensitive variable is for those who may change workflows.
func TestWireSensitiveDefault(t *testing.T) {
	t.Parallel()
	s := start(t)
	secret, open := map[string]any{"name": "key", "type": "string", "sensitive": true, "defaultValue": "s3cret"},
		map[string]any{"name": "size", "type": "string", "defaultValue": "large"}
	s.register(flow("w", []any{step("a", "core.noop", nil)}, []any{}, map[string]any{"variables": []any{secret, open}}))
	s.register(flow("plain", []any{step("a", "core.noop", nil)}, []any{}, map[string]any{"variables": []any{open}}))
	const only = "read-only-read-only-read-only-read"
	if err := s.host.AddTestKey(context.Background(), only, "default", "manifest:read"); err != nil {
		t.Fatal(err)
	}
	auth := []string{"Authorization", "Bearer " + only}
	for _, path := range []string{"/workflows/", "/host/fermata/workflows/"} {
		whole := s.do("GET", path+"w", nil).want(t, 200)
		if !strings.Contains(string(whole.body), "s3cret") {
			t.Errorf("an editor does not see the default: %s", whole.body)
		}
		got := s.do("GET", path+"w", nil, auth...).want(t, 200)
		if strings.Contains(string(got.body), "s3cret") || !strings.Contains(string(got.body), "[REDACTED]") || !strings.Contains(string(got.body), "large") {
			t.Errorf("a reader sees %s", got.body)
		}
		if a, b := whole.header.Get("ETag"), got.header.Get("ETag"); a == b {
			t.Errorf("two representations share the validator %s", a)
		}
		s.do("GET", path+"w", nil, append(auth, "If-None-Match", got.header.Get("ETag"))...).want(t, 304)
		a, b := s.do("GET", path+"plain", nil), s.do("GET", path+"plain", nil, auth...)
		if string(a.body) != string(b.body) || a.header.Get("ETag") != b.header.Get("ETag") {
			t.Errorf("what hides nothing differs: %s and %s", a.body, b.body)
		}
	}
}
