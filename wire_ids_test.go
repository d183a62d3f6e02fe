package fermata_test

import (
	"strings"
	"testing"

	"github.com/fermata-run/fermata/internal/api"
)

// A run is reached by the projected and by the percent-encoded spelling of its
// id, on every operation, and by no other.
func TestWireRunIDSpellings(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("gate"))
	id := s.run("gate")
	tenant, opaque, _ := strings.Cut(id, "/")
	for _, good := range []string{tenant + "~2F" + opaque, tenant + "%2F" + opaque, tenant + "%2f" + opaque, tenant + "%7E2F" + opaque, "%64efault~2F" + opaque} {
		if got := s.do("GET", "/runs/"+good, nil).want(t, 200).str("runId"); got != id {
			t.Errorf("%s: runId %s", good, got)
		}
		s.do("GET", "/runs/"+good+"/events/poll?timeout=1", nil).want(t, 200)
	}
	for _, bad := range []string{
		opaque, "~2F" + opaque, tenant + "~2F", tenant + "~2f" + opaque, tenant + "~" + opaque, tenant + "~7E2F" + opaque,
		tenant + "~2F" + opaque[:15], tenant + "~2F" + opaque + "%20", tenant + "%252F" + opaque, tenant + "~2F~2F" + opaque,
		tenant + "%00~2F" + opaque, strings.Repeat("t", 129) + "~2F" + opaque, tenant + "~2F" + strings.Repeat("a", 129), "x", "%ff",
	} {
		for _, r := range s.host.Routes() {
			if !strings.Contains(r.Pattern, "{runId}") {
				continue
			}
			body := anyBody(r)
			p := strings.NewReplacer("{runId}", bad, "{nodeId}", "ok").Replace(r.Pattern)
			if r.ID == "getRunCompensation" { // the protocol's own check asks for a 404
				s.do(r.Method, p, body).refused(t, 404, "not_found")
				continue
			}
			a := s.do(r.Method, p, body).refused(t, 400, "validation_error")
			if a.json["details"].(map[string]any)["field"] != "runId" {
				t.Errorf("%s of %q: %s", r.ID, bad, a.body)
			}
		}
	}
	s.do("GET", "/runs/"+tenant+"/"+opaque, nil).refused(t, 404, "not_found") // two segments
}

// anyBody is a body that a route decodes, for one that needs it.
func anyBody(r api.Route) any {
	switch {
	case r.Body == nil || r.Body.Optional:
		return nil
	case r.ID == "operateCompensation":
		return `{"action":"retry"}`
	case r.ID == "forkRun":
		return `{"mode":"replay"}`
	}
	return `{"resumeValue":{"action":"accept"}}`
}

// An id of another tenant gets the same answer whether the run exists or not.
func TestWireForeignRuns(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("gate"))
	id := s.run("gate")
	s.await(id, "waiting-approval")
	log := len(s.docs(id))
	other := s.key("other-key-other-key-other-key-other-key", "other", "*")
	for _, r := range s.host.Routes() {
		if !strings.Contains(r.Pattern, "{runId}") {
			continue
		}
		body := anyBody(r)
		ask := func(run string) answer {
			p := strings.NewReplacer("{runId}", seg(run), "{nodeId}", "ok").Replace(r.Pattern)
			return s.do(r.Method, p, body, "Authorization", other).refused(t, 403, "id_tenant_mismatch")
		}
		there, nowhere := ask(id), ask("default/0123456789abcdefghjkmnpqrs")
		if string(there.body) != string(nowhere.body) {
			t.Errorf("%s tells an existing run from none:\n%s\n%s", r.ID, there.body, nowhere.body)
		}
		p := strings.NewReplacer("{runId}", "other~2F0123456789abcdefghjkmnpqrs", "{nodeId}", "ok").Replace(r.Pattern)
		s.do(r.Method, p, body, "Authorization", other).refused(t, 404, "not_found")
	}
	if n := len(s.docs(id)); n != log {
		t.Errorf("the run grew from %d to %d events", log, n)
	}
	// Nothing of it shows in another tenant's lists, and its workflow is not there.
	for path, member := range map[string]string{"/runs": "runs", "/host/fermata/interrupts": "interrupts", "/host/fermata/workflows": "workflows"} {
		if list := s.do("GET", path, nil, "Authorization", other).want(t, 200).json[member].([]any); len(list) != 0 {
			t.Errorf("%s shows %v", path, list)
		}
	}
	s.do("GET", "/workflows/gate", nil, "Authorization", other).refused(t, 404, "not_found")
	s.do("POST", "/runs", `{"workflowId":"gate"}`, "Authorization", other).refused(t, 404, "not_found")
	s.do("DELETE", "/host/fermata/workflows/gate", nil, "Authorization", other).refused(t, 404, "not_found")
	s.do("GET", "/workflows/gate", nil).want(t, 200)
}

// A credential does what its scopes say and nothing else.
func TestWireScopes(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("gate"))
	reader := s.key("reader-key-reader-key-reader-key-reader", "default", "runs:read")
	id := s.run("gate")
	s.await(id, "waiting-approval")
	at := "/runs/" + seg(id)
	s.do("GET", at, nil, "Authorization", reader).want(t, 200)
	s.do("GET", "/runs", nil, "Authorization", reader).want(t, 200)
	for path, scope := range map[string]string{
		at + "/cancel": "runs:cancel", at + ":pause": "runs:cancel", at + ":resume": "runs:cancel",
		at + "/interrupts/ok": "approvals:respond", "/runs": "runs:create", "/runs:bulk-cancel": "runs:cancel",
	} {
		var body any
		switch {
		case strings.HasSuffix(path, "ok"):
			body = `{"resumeValue":{"action":"accept"}}`
		case path == "/runs":
			body = `{"workflowId":"gate"}`
		case path == "/runs:bulk-cancel":
			body = map[string]any{"runIds": []string{id}}
		}
		a := s.do("POST", path, body, "Authorization", reader).refused(t, 403, "forbidden")
		if a.json["details"].(map[string]any)["requiredScope"] != scope {
			t.Errorf("%s: %s", path, a.body)
		}
	}
	if st := s.snapshot(id)["status"]; st != "waiting-approval" {
		t.Errorf("status %v", st)
	}
}
