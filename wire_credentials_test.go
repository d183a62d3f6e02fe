package fermata_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/internal/identity"
)

const secretText = "s3cr3t-mate\"rial/+0123456789" // with characters that every encoding changes

// credential keeps one for the loopback and returns its ref.
func (s *server) credential(body map[string]any) string {
	s.t.Helper()
	if body["audiences"] == nil {
		body["audiences"] = []string{"127.0.0.1"}
	}
	a := s.do("POST", "/host/fermata/credentials", body).want(s.t, 201)
	for _, name := range []string{"secret", "username"} {
		if v, _ := body[name].(string); name == "secret" && v != "" && strings.Contains(string(a.body), v) {
			s.t.Errorf("the answer holds the %s: %s", name, a.body)
		}
	}
	return a.str("ref")
}

// calling is a workflow whose one node presents a credential.
func calling(id, url, ref string, extra map[string]any) map[string]any {
	config := map[string]any{"url": url, "credential": map[string]any{"ref": ref}}
	for k, v := range extra {
		config[k] = v
	}
	return flow(id, []any{step("call", "core.http.request", config)}, []any{})
}

// decisions are the egress decisions of a run, as "decision reason destination".
func (s *server) decisions(id string) string {
	s.t.Helper()
	var out []string
	for _, e := range s.events(id) {
		if e["type"] == "egress.decided" {
			p := e["payload"].(map[string]any)
			out = append(out, fmt.Sprint(p["decision"], " ", p["reason"], " ", p["destination"]))
		}
	}
	return strings.Join(out, "; ")
}

func (s *server) failure(id string) (code, reason any) {
	s.t.Helper()
	snap := s.await(id, "failed")
	e := snap["error"].(map[string]any)
	d, _ := e["details"].(map[string]any)
	return e["code"], d["reason"]
}

func TestWireCredentialIsPresented(t *testing.T) {
	t.Parallel()
	s := start(t, loopback)
	echo := newTill(t, nil)
	bearer := s.credential(map[string]any{"secret": secretText})
	basic := s.credential(map[string]any{"kind": "basic", "username": "ann", "secret": secretText})
	for name, c := range map[string]struct {
		ref   string
		extra map[string]any
		seen  func(r *http.Request) string
		want  string
	}{
		"bearer": {bearer, nil, func(r *http.Request) string { return r.Header.Get("Authorization") }, "Bearer " + secretText},
		"header": {bearer, map[string]any{"credentialAs": "header", "credentialName": "x-api-key"}, func(r *http.Request) string { return r.Header.Get("X-Api-Key") }, secretText},
		"query":  {bearer, map[string]any{"credentialAs": "query", "credentialName": "key", "method": "POST"}, func(r *http.Request) string { return r.URL.Query().Get("key") }, secretText},
		"basic":  {basic, map[string]any{"query": map[string]any{"a": 1}}, func(r *http.Request) string { u, p, _ := r.BasicAuth(); return u + ":" + p }, "ann:" + secretText},
	} {
		s.register(calling(name, echo.URL, c.ref, c.extra))
		id := s.run(name)
		s.await(id, "completed")
		echo.mu.Lock()
		got := c.seen(echo.seen[len(echo.seen)-1])
		echo.mu.Unlock()
		if got != c.want {
			t.Errorf("%s: the other side saw %q", name, got)
		}
		if d := s.decisions(id); d != "allowed ok 127.0.0.1" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// A credential goes where it is meant for and nowhere else, and whatever is decided
// is in the log before anything leaves.
func TestWireCredentialAudience(t *testing.T) {
	t.Parallel()
	s := start(t, loopback)
	echo := newTill(t, nil)
	over := s.credential(map[string]any{"secret": secretText, "audiences": []string{"api.example.com", "*.example.org"}})
	open := s.credential(map[string]any{"secret": secretText, "audiences": []string{"api.example.com"}, "outOfAudience": "downgrade"})
	fine := s.credential(map[string]any{"secret": secretText})
	away := newTill(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		http.Redirect(w, r, strings.Replace(echo.URL, "127.0.0.1", "localhost", 1), http.StatusFound)
	})
	for name, c := range map[string]struct {
		url, ref  string
		extra     map[string]any
		code      any
		decisions string
	}{
		"elsewhere":  {echo.URL, over, nil, "egress_denied", "denied out-of-audience 127.0.0.1"},
		"downgraded": {echo.URL, open, nil, nil, "downgraded out-of-audience 127.0.0.1"},
		"closed":     {"http://169.254.169.254/", fine, nil, "egress_denied", "denied ssrf-blocked 169.254.169.254"},
		"no tls":     {"http://api.example.com/", over, nil, "egress_denied", "denied policy-denied api.example.com"},
		"redirected": {away.URL, fine, map[string]any{"followRedirects": true}, "egress_denied", "allowed ok 127.0.0.1; denied policy-denied localhost"},
	} {
		s.register(calling(strings.ReplaceAll(name, " ", "-"), c.url, c.ref, c.extra))
		before := echo.calls()
		id := s.run(strings.ReplaceAll(name, " ", "-"))
		if c.code == nil {
			s.await(id, "completed")
			echo.mu.Lock()
			if got := echo.seen[before].Header.Get("Authorization"); got != "" {
				t.Errorf("%s: it went along as %q", name, got)
			}
			echo.mu.Unlock()
		} else {
			if code, _ := s.failure(id); code != c.code {
				t.Errorf("%s: %v", name, code)
			}
			if echo.calls() != before {
				t.Errorf("%s: something was called", name)
			}
		}
		if d := s.decisions(id); d != c.decisions {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestWireCredentialResolution(t *testing.T) {
	t.Parallel()
	s := start(t, loopback)
	echo := newTill(t, nil)
	mine := s.credential(map[string]any{"secret": secretText, "scope": "user"})
	shared := s.credential(map[string]any{"secret": secretText, "name": "stripe"})
	foreign := s.key("another-tenants-key-another-tenants-key", "beta", "*")
	ref := func(ref, scope string) map[string]any {
		m := map[string]any{"ref": ref}
		if scope != "" {
			m["scope"] = scope
		}
		return map[string]any{"credential": m}
	}
	bob := s.do("POST", "/host/fermata/keys", map[string]any{"name": "bob", "scopes": []string{"runs:create", "runs:read", "fermata:credentials:read", "fermata:credentials:write"}}).want(t, 201).str("key")
	for name, c := range map[string]struct {
		config map[string]any
		key    string
		code   any
	}{
		"mine": {ref(mine, "user"), testKey, nil}, "shared": {ref(shared, ""), testKey, nil}, "shared-bob": {ref(shared, "tenant"), bob, nil},
		"bob": {ref(mine, "user"), bob, "credential_forbidden"}, "bob-unscoped": {ref(mine, ""), bob, "credential_forbidden"},
		"absent": {ref("cred_0123456789abcdef", ""), testKey, "credential_not_found"}, "mixed": {ref(shared, "user"), testKey, "credential_not_found"},
		"workspace": {ref(shared, "workspace"), testKey, "credential_not_found"}, "version": {ref(shared+"@7", ""), testKey, "credential_not_found"},
		"nonsense": {ref("../../etc", ""), testKey, "credential_not_found"},
	} {
		s.register(calling("r-"+name, echo.URL, "", c.config))
		id := s.do("POST", "/runs", map[string]any{"workflowId": "r-" + name}, "Authorization", "Bearer "+c.key).want(t, 201).str("runId")
		if c.code == nil {
			s.await(id, "completed")
		} else if code, _ := s.failure(id); code != c.code {
			t.Errorf("%s: %v", name, code)
		}
	}
	// Neither another tenant nor another user finds what is not theirs.
	s.do("GET", "/host/fermata/credentials/"+shared, nil, "Authorization", foreign).refused(t, 404, "credential_not_found")
	s.do("DELETE", "/host/fermata/credentials/"+shared, nil, "Authorization", foreign).refused(t, 404, "credential_not_found")
	if l := s.do("GET", "/host/fermata/credentials", nil, "Authorization", foreign).want(t, 200); len(l.json["credentials"].([]any)) != 0 {
		t.Errorf("%s", l.body)
	}
	s.do("DELETE", "/host/fermata/credentials/"+mine, nil, "Authorization", "Bearer "+bob).refused(t, 404, "credential_not_found")
	l := s.do("GET", "/host/fermata/credentials", nil, "Authorization", "Bearer "+bob).want(t, 200)
	if list := l.json["credentials"].([]any); len(list) != 1 || list[0].(map[string]any)["ref"] != shared {
		t.Errorf("%s", l.body)
	}
}

// A workspace's credential is for its runs, and for who is bound to it: neither another
// workspace nor a run of the whole tenant has it, and who is bound to one has nothing of
// the tenant's to change.
func TestWireCredentialsOfWorkspaces(t *testing.T) {
	t.Parallel()
	s := start(t, loopback)
	echo := newTill(t, nil)
	as := map[string]string{"tenant": "Bearer " + testKey}
	for _, ws := range []string{"eu", "us"} {
		key := ws + "-credentials-key-0123456789-0123456789"
		if err := s.host.AddTestGrants(t.Context(), key, "default", identity.Grants{Scopes: []string{"*"}, Workspace: ws}); err != nil {
			t.Fatal(err)
		}
		as[ws] = "Bearer " + key
	}
	body := map[string]any{"secret": secretText, "audiences": []string{"127.0.0.1"}}
	made := s.do("POST", "/host/fermata/credentials", body, "Authorization", as["eu"]).want(t, 201)
	if made.json["scope"] != "workspace" || made.json["workspace"] != "eu" {
		t.Errorf("%s", made.body)
	}
	mine, shared := made.str("ref"), s.credential(map[string]any{"secret": "shared-secret-text"})
	for _, w := range []map[string]any{{"scope": "tenant"}, {"scope": "workspace", "workspace": "us"}} {
		w["secret"], w["audiences"] = secretText, []string{"127.0.0.1"}
		s.do("POST", "/host/fermata/credentials", w, "Authorization", as["eu"]).refused(t, 403, "forbidden")
	}
	for who, sees := range map[string]map[string]int{
		"eu": {mine: 200, shared: 404}, "us": {mine: 404, shared: 404}, "tenant": {mine: 200, shared: 200},
	} {
		for ref, status := range sees {
			if a := s.do("GET", "/host/fermata/credentials/"+ref, nil, "Authorization", as[who]); a.status != status {
				t.Errorf("%s of %s: %d %s", ref, who, a.status, a.body)
			}
		}
		seen := 0
		for _, status := range sees {
			if status == 200 {
				seen++
			}
		}
		if l := s.do("GET", "/host/fermata/credentials", nil, "Authorization", as[who]).want(t, 200); len(l.json["credentials"].([]any)) != seen {
			t.Errorf("%s: %s", who, l.body)
		}
	}
	s.do("DELETE", "/host/fermata/credentials/"+mine, nil, "Authorization", as["us"]).refused(t, 404, "credential_not_found")
	s.register(calling("pays", echo.URL, "", map[string]any{"credential": map[string]any{"ref": mine, "scope": "workspace"}}))
	for who, want := range map[string]any{"eu": nil, "us": "credential_forbidden", "tenant": "credential_forbidden"} {
		id := s.do("POST", "/runs", map[string]any{"workflowId": "pays"}, "Authorization", as[who]).want(t, 201).str("runId")
		if want == nil {
			s.await(id, "completed")
		} else if code, _ := s.failure(id); code != want {
			t.Errorf("%s: %v", who, code)
		}
	}
	s.do("DELETE", "/host/fermata/credentials/"+mine, nil, "Authorization", as["eu"]).want(t, 204)
}

// During the overlap both resolve, the old one by its version; after it the old one
// is gone.
func TestWireCredentialRotation(t *testing.T) {
	t.Parallel()
	s := start(t, loopback)
	echo := newTill(t, nil)
	ref := s.credential(map[string]any{"secret": "the-first-secret"})
	present := func(name, at string) (saw string, code any) {
		s.register(calling(name, echo.URL, at, nil))
		id := s.run(name)
		snap := s.await(id, "completed", "failed")
		if e, ok := snap["error"].(map[string]any); ok {
			return "", e["code"]
		}
		echo.mu.Lock()
		defer echo.mu.Unlock()
		return strings.TrimPrefix(echo.seen[len(echo.seen)-1].Header.Get("Authorization"), "Bearer "), nil
	}
	path := "/host/fermata/credentials/" + ref
	if v := s.do("POST", path+":rotate", map[string]any{"secret": "the-second-secret"}).want(t, 200); v.json["version"] != 2.0 {
		t.Errorf("%s", v.body)
	}
	for at, want := range map[string]string{ref: "the-second-secret", ref + "@2": "the-second-secret", ref + "@1": "the-first-secret"} {
		if saw, code := present("p"+strings.ReplaceAll(at[len(ref):], "@", "-")+"x", at); saw != want {
			t.Errorf("%s: %q %v", at, saw, code)
		}
	}
	s.do("POST", path+":rotate", map[string]any{"secret": "the-third-secret", "overlapSeconds": 0}).want(t, 200)
	for at, want := range map[string]any{ref + "@1": "credential_not_found", ref + "@2": "credential_not_found", ref + "@3": nil} {
		if _, code := present("q"+strings.ReplaceAll(at[len(ref):], "@", "-"), at); code != want {
			t.Errorf("%s: %v", at, code)
		}
	}
	s.do("DELETE", path, nil).want(t, 204)
	if _, code := present("gone", ref); code != "credential_not_found" {
		t.Error(code)
	}
}

func TestWireCredentialOfARun(t *testing.T) {
	t.Parallel()
	s := start(t, loopback)
	s.register(gate("g"))
	id, other := s.run("g"), s.run("g")
	ref := s.credential(map[string]any{"secret": secretText, "scope": "run", "runId": id})
	s.do("POST", "/host/fermata/credentials", map[string]any{"secret": secretText, "scope": "run", "runId": "default/0123456789abcdef", "audiences": []string{"a.example"}}).refused(t, 404, "not_found")
	s.do("POST", "/host/fermata/credentials", map[string]any{"secret": secretText, "scope": "run", "runId": "beta/0123456789abcdef", "audiences": []string{"a.example"}}).refused(t, 403, "id_tenant_mismatch")
	s.do("POST", "/runs/"+seg(other)+"/cancel", nil).want(t, 200)
	s.do("POST", "/host/fermata/credentials", map[string]any{"secret": secretText, "scope": "run", "runId": other, "audiences": []string{"a.example"}}).refused(t, 409, "run_terminal")
	if v := s.do("GET", "/host/fermata/credentials/"+ref, nil).want(t, 200); v.str("runId") != id {
		t.Errorf("%s", v.body)
	}
}

func TestWireCredentialRefusals(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *fermata.Config) { c.CredentialsDir = t.TempDir() })
	long := strings.Repeat("x", 300)
	for field, body := range map[string]map[string]any{
		"audiences": {"audiences": []string{"*.com"}}, "scope": {"scope": "world"}, "kind": {"kind": "oauth"}, "secret": {"secret": "short"},
		"username": {"username": "ann"}, "runId": {"scope": "run"}, "name": {"name": long}, "expiresAt": {"expiresAt": "yesterday"},
		"redactionPolicy": {"redactionPolicy": "never"}, "outOfAudience": {"outOfAudience": "allow"}, "source.store": {"secret": "", "source": map[string]any{"store": "vault", "name": "x"}},
		"source.name": {"secret": "", "source": map[string]any{"store": "file", "name": "../../etc/passwd"}}, "scopes": {"scopes": []string{"a", "a"}},
	} {
		full := map[string]any{"secret": secretText, "audiences": []string{"api.example.com"}}
		for k, v := range body {
			full[k] = v
			if v == "" {
				delete(full, k)
			}
		}
		a := s.do("POST", "/host/fermata/credentials", full).refused(t, 400, "validation_error")
		if got := a.json["details"].(map[string]any)["field"]; got != field {
			t.Errorf("%s: %v", field, got)
		}
		if strings.Contains(string(a.body), "s3cr3t") {
			t.Errorf("%s: the material is quoted: %s", field, a.body)
		}
	}
	for _, bad := range []string{"http://a.example", "a.example:443", "A.example", "a..example", "*", "*.", "-a.example", "a/b", ""} {
		s.do("POST", "/host/fermata/credentials", map[string]any{"secret": secretText, "audiences": []string{bad}}).refused(t, 400, "validation_error")
	}
	for _, w := range []map[string]any{{"scope": "workspace"}, {"scope": "workspace", "workspace": "a b"}, {"workspace": "sales"}, {"scope": "tenant", "workspace": "sales"}} {
		w["secret"], w["audiences"] = secretText, []string{"a.example"}
		if a := s.do("POST", "/host/fermata/credentials", w).refused(t, 400, "validation_error"); a.json["details"].(map[string]any)["field"] != "workspace" {
			t.Errorf("%s", a.body)
		}
	}
	s.do("POST", "/host/fermata/credentials", `{"secret":"0123456789","audiences":["a.example"],"value":"x"}`).refused(t, 400, "validation_error")
	if l := s.do("GET", "/host/fermata/credentials", nil).want(t, 200); len(l.json["credentials"].([]any)) != 0 {
		t.Errorf("something was kept: %s", l.body)
	}
	// A workflow names a credential and never holds one; nor does an input port choose it.
	s.credential(map[string]any{"secret": secretText})
	s.do("PUT", "/host/fermata/workflows/held", flow("held", []any{step("a", "core.noop", map[string]any{"token": secretText})}, []any{})).refused(t, 400, "validation_error")
	for _, c := range []map[string]any{
		{"ref": "x", "secret": "y"}, {"scope": "tenant"}, {"ref": "x", "scope": "world"},
	} {
		s.do("PUT", "/host/fermata/workflows/odd", calling("odd", "https://a.example", "", map[string]any{"credential": c})).refused(t, 400, "validation_error")
	}
}

// What stays in a store outside is read when it is needed.
func TestWireCredentialSources(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) {
		if err := os.MkdirAll(filepath.Join(dir, "default"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "default", "stripe"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("FERMATA_CREDENTIAL_DEFAULT__STRIPE", "from-the-environment")
	s := start(t, loopback, func(c *fermata.Config) { c.CredentialsDir = dir })
	echo := newTill(t, nil)
	file := s.credential(map[string]any{"source": map[string]any{"store": "file", "name": "stripe"}})
	env := s.credential(map[string]any{"source": map[string]any{"store": "env", "name": "STRIPE"}})
	absent := s.credential(map[string]any{"source": map[string]any{"store": "env", "name": "NOBODY"}})
	n := 0
	present := func(ref string) (string, any) {
		n++
		name := fmt.Sprint("w", n)
		s.register(calling(name, echo.URL, ref, nil))
		snap := s.await(s.run(name), "completed", "failed")
		if e, ok := snap["error"].(map[string]any); ok {
			return "", e["code"]
		}
		return strings.TrimPrefix(echo.seen[len(echo.seen)-1].Header.Get("Authorization"), "Bearer "), nil
	}
	if _, code := present(file); code != "credential_not_found" {
		t.Error(code)
	}
	for _, text := range []string{"first-in-the-file", "second-in-the-file"} {
		write(text + "\n")
		if saw, code := present(file); saw != text {
			t.Errorf("%q %v", saw, code)
		}
	}
	if saw, code := present(env); saw != "from-the-environment" {
		t.Errorf("%q %v", saw, code)
	}
	if _, code := present(absent); code != "credential_not_found" {
		t.Error(code)
	}
	s.do("POST", "/host/fermata/credentials/"+file+":rotate", map[string]any{"secret": secretText}).refused(t, 400, "validation_error")
}

// Keys are rotated while the host runs; sealed values open afterwards, also after a
// restart.
func TestWireVaultRotation(t *testing.T) {
	t.Parallel()
	s := start(t, loopback)
	echo := newTill(t, nil)
	ref := s.credential(map[string]any{"secret": secretText})
	weak := s.do("POST", "/host/fermata/keys", map[string]any{"scopes": []string{"fermata:credentials:write"}}).want(t, 201).str("key")
	s.do("POST", "/host/fermata/vault:rotate", nil, "Authorization", "Bearer "+weak).refused(t, 403, "forbidden")
	a := s.do("POST", "/host/fermata/vault:rotate", map[string]any{"dataKeys": true}).want(t, 200)
	if a.json["values"].(float64) < 2 || a.json["dataKeys"].(float64) < 2 {
		t.Errorf("%s", a.body)
	}
	s.restart()
	s.register(calling("after", echo.URL, ref, nil))
	s.await(s.run("after"), "completed")
}

func TestWireCredentialsAreAdvertised(t *testing.T) {
	t.Parallel()
	s := start(t)
	var rec struct {
		Scopes           []string
		EncryptionAtRest bool
		Rotation         string
		Sharing          bool
	}
	s.facet(&rec, "credentials")
	if fmt.Sprint(rec) != "{[user workspace tenant] true two-key-overlap true}" {
		t.Errorf("%+v", rec)
	}
}
