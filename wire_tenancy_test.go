package fermata_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-run/fermata/internal/api"
)

// marked is in everything the first tenant has that bears a name.
const marked = "quokka"

// estate is what the first tenant has: for each parameter of a path, one that is
// there and one that never was.
type estate struct {
	s     *server
	there map[string]string
	never map[string]string
}

func (s *server) estate() *estate {
	s.t.Helper()
	e := &estate{s: s, there: map[string]string{}, never: map[string]string{}}
	add := func(name, there, never string) { e.there[name], e.never[name] = there, never }
	s.register(gate(marked + "-flow"))
	s.register(nightly(marked+"-nightly", "1", map[string]any{"cron": "0 3 29 2 *"}))
	id := s.run(marked+"-flow", map[string]any{"tags": []string{marked}, "inputs": map[string]any{}})
	s.await(id, "waiting-approval")
	add("runId", seg(id), "default~2F0123456789abcdefghjkmnpqrs")
	add("nodeId", "ok", "nodewhere")
	add("workflowId", marked+"-flow", "wallaby-flo")
	hook := s.hook(map[string]any{"url": "https://" + marked + ".example.com/x", "events": []string{"run.completed"}})
	add("webhookId", seg(hook), "default~2F0123456789abcdefghjkmnpqrs")
	key := s.do("POST", "/host/fermata/keys", map[string]any{"name": marked, "scopes": []string{"runs:read"}}).want(s.t, 201)
	add("keyId", key.str("keyId"), "key-0123456789abcdef")
	member := s.do("POST", "/host/fermata/members", map[string]any{"subjectId": "ann", "name": marked, "roles": []string{"viewer"}}).want(s.t, 201)
	add("memberId", member.str("memberId"), "mem-0123456789abcdefghij")
	s.do("PUT", "/host/fermata/roles/"+marked, map[string]any{"scopes": []string{"runs:read"}}).want(s.t, 201)
	add("role", marked, "wombat")
	add("tenantId", "default", "nowhere")
	add("ref", s.credential(map[string]any{"name": marked, "secret": "a-secret-of-" + marked, "audiences": []string{"api.example.com"}}), "cred-0123456789abcdef")
	add("token", "ow2.hs256.none.e30.AAAA", "ow2.hs256.nine.e30.AAAA") // of a key nobody has
	return e
}

// request is how a route is asked about what p names. A route that names nothing
// needs no entry; the test sees to it that each parameter is known.
func (e *estate) request(r api.Route, p map[string]string) (path, query string, body any) {
	path = r.Pattern
	for name, v := range p {
		path = strings.ReplaceAll(path, "{"+name+"}", v)
	}
	run := strings.ReplaceAll(p["runId"], "~2F", "/")
	switch r.ID {
	case "createRun":
		return path, "", map[string]any{"workflowId": p["workflowId"]}
	case "bulkCancelRuns":
		return path, "", map[string]any{"runIds": []string{run}}
	case "resolveInterruptByRun", "resolveInterruptByToken":
		return path, "", `{"resumeValue":{"action":"accept"}}`
	case "operateCompensation":
		return path, "", `{"action":"retry"}`
	case "forkRun":
		return path, "", `{"mode":"replay"}`
	case "putWorkflow":
		return path, "", gate(p["workflowId"])
	case "validateWorkflow":
		return path, "", gate(p["workflowId"])
	case "rotateWebhookSecret":
		return path, "", map[string]any{"secret": standardSecret(2)}
	case "registerWebhook":
		return path, "", map[string]any{"url": "http://127.0.0.1/", "events": []string{"run.completed"}} // refused
	case "putMember":
		return path, "", map[string]any{"subjectId": "ann"}
	case "putRole":
		return path, "", map[string]any{"scopes": []string{}}
	case "createKey":
		return path, "", map[string]any{"scopes": []string{"runs:read"}}
	case "createCredential":
		return path, "", map[string]any{"name": "own", "secret": "a-secret-of-this-test", "audiences": []string{"api.example.com"}}
	case "rotateCredential":
		return path, "", map[string]any{"secret": "another-secret-of-this-test"}
	case "createTenant":
		return path, "", map[string]any{"tenantId": p["tenantId"]}
	case "diffRuns", "diffRun":
		return path, "?against=" + run, nil
	}
	if len(r.Query) > 0 {
		for _, q := range r.Query {
			switch q.Name {
			case "workflowId":
				query = "?workflowId=" + p["workflowId"]
			case "timeout":
				query = "?timeout=1"
			}
		}
	}
	if r.Body != nil && !r.Body.Optional {
		body = map[string]any{}
	}
	return path, query, body
}

// shape is an answer with everything in it that may differ between two requests
// about the same thing taken out.
func shape(a answer, p map[string]string) string {
	var b strings.Builder
	fmt.Fprintln(&b, a.status)
	names := []string{}
	for n := range a.header {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		if a.status < 400 && n != "Content-Type" || n == "Date" {
			fmt.Fprintln(&b, n)
			continue
		}
		fmt.Fprintln(&b, n, a.header.Values(n))
	}
	if a.status >= 400 {
		body := string(a.body)
		// What the caller has said itself, the longest first.
		names := slices.SortedFunc(maps.Keys(p), func(a, b string) int { return len(p[b]) - len(p[a]) })
		for _, name := range names {
			v := p[name]
			body = strings.ReplaceAll(strings.ReplaceAll(body, v, "{"+name+"}"), strings.ReplaceAll(v, "~2F", "/"), "{"+name+"}")
		}
		if a.header.Get("Content-Length") != "" {
			b2 := strings.ReplaceAll(b.String(), a.header.Get("Content-Length"), "N")
			b.Reset()
			b.WriteString(b2)
		}
		b.WriteString(body)
	}
	return b.String()
}

// adds are routes that make what they name.
var adds = []string{"putMember", "putRole", "putWorkflow"}

// Every route, with the ids of the first tenant and with ids that never were, asked
// by the owner of a second tenant: each answer is the same byte for byte, holds
// nothing of the first tenant, and the first tenant has everything it had.
func TestWireSecondTenantLearnsNothing(t *testing.T) {
	t.Parallel()
	s := start(t, withWebhooks)
	e := s.estate()
	other := s.key("second-key-second-key-second-key-second", "second", "*")
	admin := s.key("third-key-third-key-third-key-third-key", "third", "*", "fermata:host:admin")
	before := e.inventory()
	tried := 0
	for _, r := range s.host.Routes() {
		for _, part := range strings.Split(r.Pattern, "/") {
			if name, _, ok := strings.Cut(strings.TrimPrefix(part, "{"), "}"); ok && e.there[name] == "" {
				t.Errorf("%s: nobody has tried {%s} with another tenant's", r.ID, name)
			}
		}
		if r.Scope == "" || r.ID == "exportAuditLog" || slices.Contains(adds, r.ID) {
			continue // for everybody, or a stream of the caller's own, or below
		}
		tried++
		ask := func(p map[string]string) answer {
			path, query, body := e.request(r, p)
			return s.do(r.Method, path+query, body, "Authorization", other)
		}
		there, never := ask(e.there), ask(e.never)
		if a, b := shape(there, e.there), shape(never, e.never); a != b {
			t.Errorf("%s tells what is there from what is not:\n%s\n---\n%s", r.ID, a, b)
		}
		if r.Method == "GET" && strings.Contains(string(there.body), marked) && !strings.Contains(string(there.body), `"error"`) {
			t.Errorf("%s shows something of the first tenant:\n%s", r.ID, there.body)
		}
		// Not even an administrator of the host, of another tenant, gets in.
		path, query, body := e.request(r, e.there)
		if strings.Contains(path, "runs/"+e.there["runId"]) || strings.Contains(path, "webhooks/"+e.there["webhookId"]) {
			s.do(r.Method, path+query, body, "Authorization", admin).refused(t, 403, "id_tenant_mismatch")
		}
	}
	// What adds to the second tenant does not meet what the first one has.
	for _, r := range s.host.Routes() {
		if slices.Contains(adds, r.ID) {
			path, query, body := e.request(r, e.there)
			s.do(r.Method, path+query, body, "Authorization", other).want(t, 201)
		}
	}
	if tried < 40 {
		t.Errorf("only %d routes", tried)
	}
	if after := e.inventory(); after != before {
		t.Errorf("the first tenant had\n%s\nand has\n%s", before, after)
	}
}

// inventory is all that the first tenant can list of its own.
func (e *estate) inventory() string {
	e.s.t.Helper()
	var b strings.Builder
	for _, path := range []string{"/runs", "/runs/" + e.there["runId"], "/runs/" + e.there["runId"] + "/events/poll", "/host/fermata/workflows",
		"/host/fermata/schedules", "/host/fermata/interrupts", "/host/fermata/webhooks", "/host/fermata/members", "/host/fermata/roles", "/host/fermata/keys", "/host/fermata/credentials"} {
		a := e.s.do("GET", path, nil).want(e.s.t, 200)
		var v any
		if err := json.Unmarshal(a.body, &v); err != nil {
			e.s.t.Fatal(err)
		}
		stripUse(v)
		text, _ := json.Marshal(v)
		fmt.Fprintf(&b, "%s %s\n", path, text)
	}
	return b.String()
}

// stripUse takes out when keys were last used: the inventory is a use.
func stripUse(v any) {
	switch x := v.(type) {
	case map[string]any:
		delete(x, "lastUsedAt")
		for _, inner := range x {
			stripUse(inner)
		}
	case []any:
		for _, inner := range x {
			stripUse(inner)
		}
	}
}

// A cursor of another tenant's list is refused like one that is none, and what a
// body says of another tenant like the ids of a path.
func TestWireCursorsAndBodiesOfAnotherTenant(t *testing.T) {
	t.Parallel()
	s := start(t, withWebhooks)
	e := s.estate()
	other := s.key("second-key-second-key-second-key-second", "second", "*")
	for range 2 {
		s.estateMore(e)
	}
	lists := 0
	for _, r := range s.host.Routes() {
		if !slices.ContainsFunc(r.Query, func(p api.Param) bool { return p.Name == "cursor" }) || strings.Contains(r.Pattern, "{") {
			continue
		}
		cursor, _ := s.do("GET", r.Pattern+"?limit=1", nil).want(t, 200).json["nextCursor"].(string)
		if cursor == "" {
			t.Errorf("%s: no second page to try", r.ID)
			continue
		}
		lists++
		a := s.do("GET", r.Pattern+"?cursor="+cursor, nil, "Authorization", other)
		b := s.do("GET", r.Pattern+"?cursor=AAAAAAAAAAAAAAAAAAAA", nil, "Authorization", other)
		if a.status < 400 || string(a.body) != string(b.body) {
			t.Errorf("%s: %d %s, and of no cursor %s", r.ID, a.status, a.body, b.body)
		}
	}
	if lists < 6 {
		t.Errorf("only %d lists", lists)
	}
	s.do("POST", "/runs", map[string]any{"workflowId": "x", "tenantId": "default"}, "Authorization", other).refused(t, 403, "id_tenant_mismatch")
	res := s.do("POST", "/runs:bulk-cancel", map[string]any{"runIds": []string{strings.ReplaceAll(e.there["runId"], "~2F", "/"), "default/0123456789abcdefghjkmnpqrs"}},
		"Authorization", other).want(t, 200).json["results"].([]any)
	for _, x := range res {
		if x.(map[string]any)["error"].(map[string]any)["error"] != "id_tenant_mismatch" {
			t.Errorf("%v", x)
		}
	}
}

// estateMore adds one more of everything that is listed.
func (s *server) estateMore(e *estate) {
	s.t.Helper()
	n := fmt.Sprint(len(e.there))
	e.there["more"+n] = n
	s.register(gate("more-" + n))
	s.await(s.run("more-"+n), "waiting-approval")
	s.hook(map[string]any{"url": "https://more.example.com/" + n, "events": []string{"run.completed"}})
	s.do("POST", "/host/fermata/keys", map[string]any{"name": n, "scopes": []string{"runs:read"}}).want(s.t, 201)
	s.do("POST", "/host/fermata/members", map[string]any{"subjectId": n}).want(s.t, 201)
	s.do("POST", "/host/fermata/tenants", map[string]any{"tenantId": "t" + n}).want(s.t, 201)
	s.credential(map[string]any{"secret": "a-secret-of-this-test", "audiences": []string{"api.example.com"}})
}

// Each route asks for the scope its row says, before it looks at anything.
func TestWireEveryRouteAsksForItsScope(t *testing.T) {
	t.Parallel()
	s := start(t, withWebhooks)
	e := s.estate()
	nothing := s.key("nothing-key-nothing-key-nothing-key-no", "default", "nothing:at-all")
	open := []string{"getCapabilities", "getOpenAPI", "live", "ready", "inspectInterruptByToken", "resolveInterruptByToken", "getHostDescription"}
	for _, r := range s.host.Routes() {
		path, query, body := e.request(r, e.there)
		if r.Scope == "" {
			if a := s.do(r.Method, path+query, body, "Authorization", nothing); a.status == 200 && r.Method != "GET" && !slices.Contains(open, r.ID) {
				t.Errorf("%s is open to everybody", r.ID)
			}
			continue
		}
		a := s.do(r.Method, path+query, body, "Authorization", nothing).refused(t, 403, "forbidden")
		if d, _ := a.json["details"].(map[string]any); d["requiredScope"] != r.Scope {
			t.Errorf("%s asks for %v, its row says %s", r.ID, a.json["details"], r.Scope)
		}
		s.do(r.Method, path+query, body, "Authorization", "").refused(t, 401, "unauthenticated")
	}
}

// tricks are ways of writing an id that have led others astray, and none of them an
// id of this host.
func tricks(tenant, opaque string) []string {
	bound := tenant + "~2F" + opaque
	return []string{
		"..~2F" + opaque, ".~2F" + opaque, "~2F" + opaque, "%2F" + opaque, "..%2f" + opaque, "%2e%2e%2F" + opaque, bound + "~2F..", bound + "%2F..",
		tenant + "%252F" + opaque, tenant + "~252F" + opaque, tenant + "~7E2F" + opaque, tenant + "~2f" + opaque, tenant + "~5C" + opaque, tenant + "%5C" + opaque,
		tenant + "~2F~2F" + opaque, tenant + "%2F%2F" + opaque, tenant + "~2F%00" + opaque, bound + "%00", bound + "%0d%0aX-Injected:%201", bound + "%20", "%20" + bound,
		strings.ToUpper(tenant) + "~2F" + opaque, strings.ToUpper(tenant[:1]) + tenant[1:] + "~2F" + opaque, tenant + "%EF%BC%8F" + opaque, tenant + "~C3~A9~2F" + opaque,
		"anon:" + tenant + "~2F" + opaque, tenant + ";x=1~2F" + opaque, tenant + "~2F" + strings.Repeat("a", 129), strings.Repeat("t", 129) + "~2F" + opaque,
		strings.Repeat("a", 5000), "%c0%af" + bound, "%", "~", tenant + "~2F", bound + "~", bound + "~2",
	}
}

// Every parameter that names something bound to a tenant refuses each trick with a
// registered code, and the same for what is there and what is not.
func TestWireIDTricks(t *testing.T) {
	t.Parallel()
	s := start(t, withWebhooks)
	e := s.estate()
	log := len(s.docs(strings.ReplaceAll(e.there["runId"], "~2F", "/")))
	for _, param := range []string{"runId", "webhookId"} {
		tenant, opaque, _ := strings.Cut(e.there[param], "~2F")
		for _, trick := range tricks(tenant, opaque) {
			for _, r := range s.host.Routes() {
				if !strings.Contains(r.Pattern, "{"+param+"}") {
					continue
				}
				p := map[string]string{"nodeId": "ok", param: trick}
				path, _, body := e.request(r, p)
				if r.Body != nil && body == nil && r.ID == "rotateWebhookSecret" {
					body = "{}"
				}
				a := s.send(r.Method, path, body)
				code, _ := a.json["error"].(string)
				if a.status != 400 && a.status != 403 && a.status != 404 && a.status != 405 || code == "" || a.header.Get("X-Injected") != "" {
					t.Errorf("%s of %q: %d %s", r.ID, trick, a.status, a.body)
				}
				if strings.EqualFold(strings.Split(trick, "~2F")[0], tenant) && strings.Contains(trick, "~2F"+opaque) && !strings.HasPrefix(trick, tenant) && code != "id_tenant_mismatch" {
					t.Errorf("%s of another tenant that differs by case only, %q: %s", r.ID, trick, a.body)
				}
			}
		}
	}
	for _, param := range []string{"keyId", "memberId", "tenantId", "role"} {
		for _, trick := range append(tricks("default", e.there[param]), "..%2f"+e.there[param], e.there[param]+"%2F", "%2e%2e", strings.Repeat("k", 200)) {
			for _, r := range s.host.Routes() {
				if !strings.Contains(r.Pattern, "{"+param+"}") || r.ID == "putRole" && strings.HasPrefix(trick, "aaaa") {
					continue
				}
				path, _, body := e.request(r, map[string]string{param: trick})
				if a := s.send(r.Method, path, body); a.status != 400 && a.status != 404 && a.status != 405 {
					t.Errorf("%s of %q: %d %s", r.ID, trick, a.status, a.body)
				}
			}
		}
	}
	if n := len(s.docs(strings.ReplaceAll(e.there["runId"], "~2F", "/"))); n != log {
		t.Errorf("the run grew from %d to %d events", log, n)
	}
}

// send is do for a path that no well-behaved client would make.
func (s *server) send(method, path string, body any) answer {
	s.t.Helper()
	if path, _, ok := strings.Cut(path, "%"); ok && strings.HasSuffix(path, "\x00") {
		s.t.Fatal(path)
	}
	if _, err := http.NewRequestWithContext(context.Background(), method, s.http.URL+path, nil); err != nil {
		return answer{status: 400, json: map[string]any{"error": "not sent"}, header: http.Header{}}
	}
	return s.do(method, path, body)
}
