package fermata_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/internal/identity"
)

func withKey(key string) []string { return []string{"Authorization", "Bearer " + key} }

// A key's life on the wire: it is shown once, listed without itself, replaced with
// an overlap, revoked from the next request on, over a restart.
func TestWireKeyLife(t *testing.T) {
	t.Parallel()
	s := start(t)
	made := s.do("POST", "/host/fermata/keys", map[string]any{"name": "ci", "kind": "workload", "scopes": []string{"runs:read"}, "expiresInSeconds": 3600}).want(t, 201)
	first, id := made.str("key"), made.str("keyId")
	if made.str("kind") != "workload" || made.str("state") != "active" || made.str("expiresAt") == "" || made.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%s", made.body)
	}
	s.do("GET", "/runs", nil, withKey(first)...).want(t, 200)
	s.do("GET", "/host/fermata/keys/"+id, nil, withKey(first)...).refused(t, 403, "forbidden")
	for _, path := range []string{"/host/fermata/keys", "/host/fermata/keys/" + id} {
		a := s.do("GET", path, nil).want(t, 200)
		if slices.Contains([]string{first, testKey}, string(a.body)) || a.json["key"] != nil {
			t.Errorf("%s shows a key: %s", path, a.body)
		}
	}
	turned := s.do("POST", "/host/fermata/keys/"+id+":rotate", map[string]any{"overlapSeconds": 60}).want(t, 200)
	second := turned.str("key")
	if second == first || turned.str("keyId") != id || turned.str("previousKeyExpiresAt") == "" {
		t.Errorf("%s", turned.body)
	}
	s.do("GET", "/runs", nil, withKey(first)...).want(t, 200)
	s.do("GET", "/runs", nil, withKey(second)...).want(t, 200)
	s.do("POST", "/host/fermata/keys/"+id+":rotate", map[string]any{"overlapSeconds": 0}).want(t, 200)
	s.do("GET", "/runs", nil, withKey(second)...).refused(t, 401, "credential_revoked")
	s.do("GET", "/runs", nil, withKey(first)...).refused(t, 401, "unauthenticated")
	for range 2 {
		if st := s.do("POST", "/host/fermata/keys/"+id+":revoke", nil).want(t, 200).str("state"); st != "revoked" {
			t.Errorf("state %s", st)
		}
	}
	s.restart()
	s.do("GET", "/runs", nil, withKey(second)...).refused(t, 401, "credential_revoked")
	s.do("POST", "/host/fermata/keys/"+id+":rotate", nil).refused(t, 409, "version_conflict")
	for _, bad := range []map[string]any{
		{"scopes": []string{"runs:read"}, "kind": "robot"}, {"scopes": []string{"runs:read"}, "expiresInSeconds": 0}, {"scopes": []string{"runs:read"}, "expiresInSeconds": -5},
		{"scopes": []string{"runs:read"}, "workspace": "a/b"}, {"scopes": []string{"fermata:host:*x"}}, {"scopes": []string{}}, {"scopes": []string{"runs:**"}},
		{"scopes": []string{"runs:read"}, "name": "a\u0000b"}, {"scopes": []string{"runs:read"}, "extra": 1},
	} {
		s.do("POST", "/host/fermata/keys", bad).refused(t, 400, "validation_error")
	}
}

// Nobody comes by more than they have: not by a key, a role, a member or a rotation.
func TestWireNoAmplification(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := s.key("owner-key-owner-key-owner-key-owner-key", "acme", "*")
	scopes, _ := identity.RoleScopes(identity.Admin)
	admin := s.key("admin-key-admin-key-admin-key-admin-key", "acme", scopes...)
	as := func(key, method, path string, body any) answer { return s.do(method, path, body, "Authorization", key) }
	const keys, members, roles = "/host/fermata/keys", "/host/fermata/members", "/host/fermata/roles/"
	ownerKey := as(owner, "POST", keys, map[string]any{"scopes": []string{"*"}}).want(t, 201).str("keyId")

	for _, scope := range []string{"*", "fermata:*", "fermata:roles:write", "fermata:host:admin", "fermata:host:*", "*:read"} {
		as(admin, "POST", keys, map[string]any{"scopes": []string{scope}}).refused(t, 403, "forbidden")
		as(admin, "PUT", roles+"more", map[string]any{"scopes": []string{scope}}).refused(t, 403, "forbidden")
	}
	for _, scope := range []string{"fermata:host:admin", "fermata:host:*"} {
		as(owner, "POST", keys, map[string]any{"scopes": []string{scope}}).refused(t, 403, "forbidden")
		as(owner, "PUT", roles+"more", map[string]any{"scopes": []string{scope}}).refused(t, 403, "forbidden")
	}
	as(admin, "POST", members, map[string]any{"subjectId": "eve", "roles": []string{"owner"}}).refused(t, 403, "forbidden")
	as(admin, "POST", keys+"/"+ownerKey+":rotate", nil).refused(t, 403, "forbidden")
	as(admin, "POST", keys+"/"+ownerKey+":revoke", nil).refused(t, 403, "forbidden")
	chief := as(owner, "POST", members, map[string]any{"subjectId": "chief", "roles": []string{"owner"}}).want(t, 201).str("memberId")
	as(admin, "DELETE", members+"/"+chief, nil).refused(t, 403, "forbidden")
	as(admin, "POST", members, map[string]any{"subjectId": "chief", "roles": []string{}}).refused(t, 403, "forbidden")
	as(owner, "PUT", roles+"owner", map[string]any{"scopes": []string{}}).refused(t, 400, "validation_error")

	// What an admin may give, it gives; with the role, not the key, the right goes.
	low := as(admin, "POST", keys, map[string]any{"scopes": []string{"manifest:read"}}).want(t, 201)
	holder := "Bearer " + low.str("key")
	as(holder, "GET", "/runs", nil).refused(t, 403, "forbidden")
	m := as(admin, "POST", members, map[string]any{"subjectId": low.str("keyId"), "roles": []string{"viewer"}}).want(t, 201).str("memberId")
	as(holder, "GET", "/runs", nil).want(t, 200)
	as(holder, "POST", "/runs", map[string]any{"workflowId": "x"}).refused(t, 403, "forbidden")
	as(owner, "PUT", roles+"maker", map[string]any{"scopes": []string{"runs:create"}}).want(t, 201)
	as(admin, "POST", members, map[string]any{"subjectId": low.str("keyId"), "roles": []string{"viewer", "maker"}}).want(t, 200)
	as(holder, "POST", "/runs", map[string]any{"workflowId": "x"}).refused(t, 404, "not_found")
	as(owner, "DELETE", roles+"maker", nil).want(t, 204)
	as(holder, "POST", "/runs", map[string]any{"workflowId": "x"}).refused(t, 403, "forbidden")
	as(admin, "DELETE", members+"/"+m, nil).want(t, 204)
	as(holder, "GET", "/runs", nil).refused(t, 403, "forbidden")
	// The same subject of another issuer is somebody else.
	as(owner, "POST", members, map[string]any{"subjectId": low.str("keyId"), "issuer": "https://idp.example", "roles": []string{"owner"}}).want(t, 201)
	as(holder, "GET", "/runs", nil).refused(t, 403, "forbidden")
}

// Whoever is bound to a workspace acts in it and sees nothing of another.
func TestWireWorkspaces(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("gate"))
	ctx := context.Background()
	for _, ws := range []string{"eu", "us"} {
		if err := s.host.AddTestGrants(ctx, ws+"-key-0123456789-0123456789-0123456789", "default", identity.Grants{Scopes: []string{"*"}, Workspace: ws}); err != nil {
			t.Fatal(err)
		}
	}
	eu, us := "Bearer eu-key-0123456789-0123456789-0123456789", "Bearer us-key-0123456789-0123456789-0123456789"
	id := s.do("POST", "/runs", map[string]any{"workflowId": "gate"}, "Authorization", eu).want(t, 201).str("runId")
	plain := s.run("gate")
	s.await(id, "waiting-approval")
	s.await(plain, "waiting-approval")
	if ws := s.snapshot(id)["owner"].(map[string]any)["workspace"]; ws != "eu" {
		t.Errorf("workspace %v", ws)
	}
	e := &estate{s: s}
	for _, r := range s.host.Routes() {
		if r.Scope == "" {
			continue
		}
		path, query, body := e.request(r, map[string]string{"runId": seg(id), "nodeId": "ok", "workflowId": "gate", "tenantId": "made", "webhookId": seg(id)})
		switch {
		case !identity.InWorkspace(r.Scope):
			a := s.do(r.Method, path+query, body, "Authorization", us)
			if a.status != 403 {
				t.Errorf("%s is open to a workspace's key: %d %s", r.ID, a.status, a.body)
			}
		case slices.Contains(splitParams(r.Pattern), "runId"):
			s.do(r.Method, path+query, body, "Authorization", us).refused(t, 403, "run_forbidden")
			there := seg(plain)
			path, query, body := e.request(r, map[string]string{"runId": there, "nodeId": "ok"})
			s.do(r.Method, path+query, body, "Authorization", us).refused(t, 403, "run_forbidden")
		}
	}
	for path, member := range map[string]string{"/runs": "runs", "/host/fermata/interrupts": "interrupts", "/runs?workflowId=gate": "runs", "/runs?status=waiting-approval": "runs"} {
		for key, want := range map[string]int{eu: 1, us: 0, "Bearer " + testKey: 2} {
			if list := s.do("GET", path, nil, "Authorization", key).want(t, 200).json[member].([]any); len(list) != want {
				t.Errorf("%s has %d entries, want %d", path, len(list), want)
			}
		}
	}
	a := s.do("POST", "/runs:bulk-cancel", map[string]any{"runIds": []string{id}}, "Authorization", us).want(t, 200)
	if res := a.json["results"].([]any)[0].(map[string]any); res["error"].(map[string]any)["error"] != "run_forbidden" {
		t.Errorf("%s", a.body)
	}
	s.do("POST", "/runs/"+seg(id)+"/interrupts/ok", map[string]any{"resumeValue": map[string]any{"action": "accept"}}, "Authorization", eu).want(t, 200)
	s.await(id, "completed")
	s.do("GET", "/runs/"+seg(id), nil, "Authorization", us).refused(t, 403, "run_forbidden")
	// A key of one workspace, held by a member of another, is neither's.
	s.do("POST", "/host/fermata/members", map[string]any{"subjectId": "test-us-key-0-default", "workspace": "eu"}).want(t, 201)
	s.do("GET", "/runs", nil, "Authorization", us).refused(t, 403, "workspace_membership_required")
}

func splitParams(pattern string) []string {
	var out []string
	for {
		i, j := indexes(pattern)
		if i < 0 {
			return out
		}
		out = append(out, pattern[i+1:j])
		pattern = pattern[j+1:]
	}
}

func indexes(s string) (int, int) {
	i := slices.Index([]byte(s), '{')
	if i < 0 {
		return -1, -1
	}
	return i, slices.Index([]byte(s), '}')
}

// A suspended tenant is shut out on every route, tokens too, and its runs stand
// still: over a restart, and until it is let in again. What somebody paused before
// stays paused.
func TestWireSuspendedTenant(t *testing.T) {
	t.Parallel()
	s := start(t)
	made := s.do("POST", "/host/fermata/tenants", map[string]any{"tenantId": "acme"}).want(t, 201)
	key := "Bearer " + made.json["ownerKey"].(map[string]any)["key"].(string)
	as := func(method, path string, body any) answer { return s.do(method, path, body, "Authorization", key) }
	as("PUT", "/host/fermata/workflows/gate", gate("gate")).want(t, 201)
	as("PUT", "/host/fermata/workflows/nap", flow("nap", []any{step("nap", "core.delay", map[string]any{"delayMs": 1500})}, []any{})).want(t, 201)
	begin := func(wf, status string) string {
		t.Helper()
		id := as("POST", "/runs", map[string]any{"workflowId": wf}).want(t, 201).str("runId")
		for range 2000 {
			if as("GET", "/runs/"+seg(id), nil).str("status") == status {
				return id
			}
			time.Sleep(2 * time.Millisecond)
		}
		t.Fatalf("%s is not %s", id, status)
		return ""
	}
	waiting, held := begin("gate", "waiting-approval"), begin("gate", "waiting-approval")
	as("POST", "/runs/"+seg(held)+":pause", nil).want(t, 202)
	token := as("POST", "/host/fermata/runs/"+seg(waiting)+"/interrupts/ok/tokens", nil).want(t, 201).str("token")
	napping := as("POST", "/runs", map[string]any{"workflowId": "nap"}).want(t, 201).str("runId")

	s.do("POST", "/host/fermata/tenants/default:suspend", nil).refused(t, 400, "validation_error")
	s.do("POST", "/host/fermata/tenants/acme:suspend", nil).want(t, 200)
	for _, r := range s.host.Routes() {
		if r.Scope == "" {
			continue
		}
		a := as(r.Method, r.Pattern, nil)
		if d, _ := a.json["details"].(map[string]any); a.status != 403 || d["reason"] != "tenant-suspended" {
			t.Errorf("%s: %d %s", r.ID, a.status, a.body)
		}
	}
	s.do("GET", "/interrupts/"+token, nil, "Authorization", "").refused(t, 403, "forbidden")
	s.do("POST", "/interrupts/"+token, `{"resumeValue":{"action":"accept"}}`, "Authorization", "").refused(t, 403, "forbidden")
	s.do("GET", "/runs", nil).want(t, 200) // the other tenant's
	settled := func() {
		t.Helper()
		for range 4000 {
			if s.do("GET", "/host/fermata/tenants/acme", nil).want(t, 200).json["settled"] == true {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
		t.Fatal("the runs were not brought in line")
	}
	settled()
	s.restart()
	settled()
	status := func(id string) string {
		t.Helper()
		tenant, opaque, _ := cutID(id)
		rows, err := s.host.Store().Runs().Get(context.Background(), runID(tenant, opaque))
		if err != nil {
			t.Fatal(err)
		}
		return rows.Status
	}
	for _, id := range []string{waiting, held, napping} {
		if st := status(id); st != "paused" {
			t.Errorf("%s is %s", id, st)
		}
	}
	s.do("POST", "/host/fermata/tenants/acme:activate", nil).want(t, 200)
	settled()
	if st := as("GET", "/runs/"+seg(waiting), nil).want(t, 200).str("status"); st != "waiting-approval" {
		t.Errorf("the run that waited is %s", st)
	}
	if st := as("GET", "/runs/"+seg(held), nil).want(t, 200).str("status"); st != "paused" {
		t.Errorf("the run that was held is %s", st)
	}
	for range 4000 {
		if status(napping) == "completed" {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if st := status(napping); st != "completed" {
		t.Errorf("the run that slept is %s", st)
	}
	s.do("POST", "/interrupts/"+token, `{"resumeValue":{"action":"accept"}}`, "Authorization", "").want(t, 200)
}

// A credential of a tenant that is not there is nobody's.
func TestWireUnknownTenant(t *testing.T) {
	t.Parallel()
	s := start(t)
	key := s.key("later-key-later-key-later-key-later-key", "later", "*")
	s.do("GET", "/runs", nil, "Authorization", key).want(t, 200)
	caller := identity.Local("nowhere")
	rec := httptest.NewRecorder()
	req := httptest.NewRequest("GET", "/runs", nil)
	s.host.Handler().ServeHTTP(rec, req.WithContext(identity.WithCaller(context.Background(), caller)))
	if rec.Code != http.StatusUnauthorized {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

// BenchmarkAuthenticatedGetRun measures what a credential costs a read, against the
// same read of a caller who needs none, in one run.
func BenchmarkAuthenticatedGetRun(b *testing.B) {
	s := &server{t: b, dir: b.TempDir(), cfg: fermata.Config{BootstrapKey: testKey}}
	s.cfg.DataDir = s.dir
	s.up()
	b.Cleanup(s.down)
	s.register(gate("g"))
	id := s.run("g")
	s.await(id, "waiting-approval")
	get := func(ctx context.Context, key string) {
		req := httptest.NewRequest("GET", "/runs/"+seg(id), nil).WithContext(ctx)
		if key != "" {
			req.Header.Set("Authorization", "Bearer "+key)
		}
		rec := httptest.NewRecorder()
		if s.host.Handler().ServeHTTP(rec, req); rec.Code != 200 {
			b.Fatal(rec.Code, rec.Body)
		}
	}
	local := identity.WithCaller(context.Background(), identity.Local("default"))
	var floor, with time.Duration
	for b.Loop() {
		begin := time.Now()
		get(local, "")
		between := time.Now()
		get(context.Background(), testKey)
		floor, with = floor+between.Sub(begin), with+time.Since(between)
	}
	n := float64(b.N)
	b.ReportMetric(float64(floor.Nanoseconds())/n/1e3, "µs-floor")
	b.ReportMetric(float64(with.Nanoseconds())/n/1e3, "µs-key")
	b.ReportMetric(float64((with-floor).Nanoseconds())/n/1e3, "µs-more")
	b.ReportMetric(float64(with)/float64(floor), "ratio")
}
