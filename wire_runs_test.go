package fermata_test

import (
	"net/url"
	"strings"
	"testing"
)

func TestWireCreateRun(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("gate"))
	s.register(flow("one", []any{step("a", "core.noop", nil)}, []any{}))
	for _, workflow := range []string{"gate", "one"} {
		a := s.do("POST", "/runs", map[string]any{"workflowId": workflow}).want(t, 201)
		id := a.str("runId")
		if !strings.HasPrefix(id, "default/") {
			t.Errorf("runId %s", id)
		}
		base, _ := url.Parse(s.http.URL + "/runs")
		for member, status := range map[string]int{"eventsUrl": 200, "statusUrl": 200} {
			link, err := base.Parse(a.str(member))
			if err != nil || link.Host != base.Host || link.Scheme != base.Scheme || strings.Contains(link.EscapedPath(), "%2F") {
				t.Errorf("%s %q leads elsewhere", member, a.str(member))
				continue
			}
			if member == "statusUrl" {
				s.do("GET", link.RequestURI(), nil).want(t, status)
			} else {
				s.subscribe(id, "").close()
				s.do("GET", link.RequestURI()+"/poll?timeout=1", nil).want(t, status)
			}
		}
	}
	// The start event echoes the owner and says how the run came in.
	id := s.run("one")
	s.subscribe(id, "").frames()
	started := s.events(id)[0]["payload"].(map[string]any)
	if started["transport"] != "rest" || started["workflowId"] != "one" {
		t.Errorf("run.started %v", started)
	}
	if a, b := jsonOf(t, started["owner"]), jsonOf(t, s.snapshot(id)["owner"]); a != b {
		t.Errorf("owner %s, in the snapshot %s", a, b)
	}
}

func TestWireInputsAreChecked(t *testing.T) {
	t.Parallel()
	s := start(t)
	v := func(name, typ string, more map[string]any) any {
		m := map[string]any{"name": name, "type": typ}
		for k, x := range more {
			m[k] = x
		}
		return m
	}
	s.register(flow("typed", []any{step("a", "core.noop", nil)}, []any{}, map[string]any{"variables": []any{
		v("must", "string", map[string]any{"required": true}), v("n", "number", nil), v("b", "boolean", nil),
		v("o", "object", nil), v("l", "array", nil), v("d", "string", map[string]any{"required": true, "defaultValue": "x"}),
	}, "channels": map[string]any{"ch": map[string]any{"reducer": "append"}}}))
	for inputs, field := range map[string]string{
		`{}`: "inputs.must", `{"must":null}`: "inputs.must", `{"must":1}`: "inputs.must", `{"must":"x","n":"1"}`: "inputs.n",
		`{"must":"x","b":0}`: "inputs.b", `{"must":"x","o":[]}`: "inputs.o", `{"must":"x","l":{}}`: "inputs.l",
		`{"must":"x","ch":1}`: "inputs.ch", `[]`: "inputs", `"x"`: "inputs", `null`: "inputs",
		`{"must":"x"}`: "", `{"must":"","n":1e400,"b":false,"o":{},"l":[]}`: "",
	} {
		a := s.do("POST", "/runs", `{"workflowId":"typed","inputs":`+inputs+`}`)
		if field == "" {
			a.want(t, 201)
			continue
		}
		a.refused(t, 400, "validation_error")
		if got := a.json["details"].(map[string]any)["field"]; got != field {
			t.Errorf("%s: details name %v, want %s", inputs, got, field)
		}
	}
	if n := len(s.do("GET", "/runs", nil).json["runs"].([]any)); n != 2 {
		t.Errorf("%d runs", n)
	}
}

// The ETag of a snapshot changes with every event and with nothing else.
func TestWireSnapshotETag(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("gate"))
	id := s.run("gate")
	s.await(id, "waiting-approval")
	at := "/runs/" + seg(id)
	seen := map[string]bool{}
	check := func() string {
		t.Helper()
		a := s.do("GET", at, nil).want(t, 200)
		etag := a.header.Get("ETag")
		if len(etag) < 3 || etag[0] != '"' || seen[etag] {
			t.Fatalf("ETag %q, seen before: %v", etag, seen[etag])
		}
		seen[etag] = true
		b := s.do("GET", at, nil).want(t, 200)
		if b.header.Get("ETag") != etag || string(a.body) != string(b.body) {
			t.Errorf("two reads without an event between differ")
		}
		for _, inm := range []string{etag, "W/" + etag, "*", `"x", ` + etag} {
			s.do("GET", at, nil, "If-None-Match", inm).want(t, 304)
		}
		s.do("GET", at, nil, "If-None-Match", `"x"`).want(t, 200)
		return etag
	}
	old := check()
	for _, verb := range []string{":pause", ":resume"} {
		s.do("POST", at+verb, nil).want(t, 202)
		now := check()
		s.do("GET", at, nil, "If-None-Match", old).want(t, 200)
		old = now
	}
	s.do("POST", at+"/cancel", nil).want(t, 200)
	check()
	// A run that is not there, or not the caller's, has no validator to match.
	s.do("GET", "/runs/default~2F0123456789abcdef", nil, "If-None-Match", "*").refused(t, 404, "not_found")
	s.do("GET", "/runs/other~2F0123456789abcdef", nil, "If-None-Match", "*").refused(t, 403, "id_tenant_mismatch")
}

func TestWireWorkflows(t *testing.T) {
	t.Parallel()
	s := start(t)
	one := gate("w")
	created := s.do("PUT", "/host/fermata/workflows/w", one).want(t, 201)
	again := s.do("PUT", "/host/fermata/workflows/w", one).want(t, 200)
	if created.str("digest") != again.str("digest") || created.json["created"] != true || again.json["created"] != false {
		t.Errorf("%s\n%s", created.body, again.body)
	}
	changed := gate("w")
	changed["description"] = "other"
	s.do("PUT", "/host/fermata/workflows/w", changed).refused(t, 409, "version_conflict")
	s.do("PUT", "/host/fermata/workflows/v", one).refused(t, 400, "validation_error")
	s.do("PUT", "/host/fermata/workflows/a%20b", one).refused(t, 400, "validation_error")
	id := s.run("w")
	changed["version"] = "2.0"
	s.do("PUT", "/host/fermata/workflows/w", changed).want(t, 201)
	latest := s.do("GET", "/workflows/w", nil).want(t, 200)
	if latest.str("version") != "2.0" || s.do("GET", "/host/fermata/workflows/w?version=1.0", nil).want(t, 200).str("version") != "1.0" {
		t.Errorf("versions: %s", latest.body)
	}
	s.do("GET", "/host/fermata/workflows/w?version=3.0", nil).refused(t, 404, "not_found")
	s.do("GET", "/workflows/w", nil, "If-None-Match", latest.header.Get("ETag")).want(t, 304)
	bad := gate("w")
	bad["nodes"] = append(bad["nodes"].([]any), step("x", "acme.unknown", nil))
	a := s.do("PUT", "/host/fermata/workflows/w", bad)
	if a.status != 400 && a.status != 422 || a.json["details"].(map[string]any)["issues"] == nil {
		t.Errorf("an unknown type: %d %s", a.status, a.body)
	}
	s.do("POST", "/host/fermata/workflows:validate", changed).want(t, 200)
	s.do("DELETE", "/host/fermata/workflows/w", nil).want(t, 204)
	s.do("DELETE", "/host/fermata/workflows/w", nil).refused(t, 404, "not_found")
	s.do("GET", "/workflows/w", nil).refused(t, 404, "not_found")
	s.do("POST", "/runs", `{"workflowId":"w"}`).refused(t, 404, "not_found")
	s.await(id, "waiting-approval") // its run goes on
	s.answer(id, "ok", map[string]any{"action": "accept"}).want(t, 200)
	s.await(id, "completed")
}
