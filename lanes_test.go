package fermata_test

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/identity/idptest"
)

const publicURL = "http://h.example/api"

var thisMachine = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// withIssuer gives a host an oauth2 lane of one issuer on this machine.
func withIssuer(p *idptest.IDP) func(*fermata.Config) {
	return func(c *fermata.Config) {
		c.Lanes = fermata.Lanes{
			PublicURL: publicURL, Allow: thisMachine,
			OAuth2: &fermata.Tokens{Audience: publicURL, Issuers: []fermata.Issuer{{Issuer: p.URL, Tenant: fermata.DefaultTenant}}},
		}
	}
}

func bearer(token string) []string { return []string{"Authorization", "Bearer " + token} }

func TestATokenStartsARun(t *testing.T) {
	t.Parallel()
	p := idptest.New(t)
	s := start(t, withIssuer(p))
	s.register(flow("hello", []any{step("a", "core.noop", nil)}, []any{}))
	token := p.Token(p.Standard(publicURL, time.Now()))
	a := s.do("POST", "/runs", map[string]any{"workflowId": "hello"}, bearer(token)...).want(t, 201)
	run := s.do("GET", "/runs/"+seg(a.str("runId")), nil, bearer(token)...).want(t, 200)
	subject := run.json["owner"].(map[string]any)["subject"].(map[string]any)
	if subject["issuer"] != p.URL || subject["lane"] != "oauth2" || subject["subjectId"] != "ann" || subject["kind"] != "user" {
		t.Errorf("%v", subject)
	}
	s.do("PUT", "/host/fermata/workflows/other", flow("other", []any{step("a", "core.noop", nil)}, []any{}), bearer(token)...).refused(t, 403, "forbidden")
}

// A challenge attaches to what is a 401 or 403 already, and says nothing about
// whether anything exists (identity.md §2.5, auth-challenge-no-oracle).
func TestChallenges(t *testing.T) {
	t.Parallel()
	p := idptest.New(t)
	s := start(t, withIssuer(p))
	s.register(flow("hello", []any{step("a", "core.noop", nil)}, []any{}))
	if err := s.host.AddTestKey(context.Background(), "reader-key-reader-key-reader-key-1", fermata.DefaultTenant, "runs:read"); err != nil {
		t.Fatal(err)
	}
	const at = `Bearer resource_metadata="http://h.example/.well-known/oauth-protected-resource/api"`
	reader := bearer("reader-key-reader-key-reader-key-1")
	token := p.Standard(publicURL, time.Now())
	for _, c := range []struct {
		name, method, path string
		header             []string
		status             int
		want               string
	}{
		{"nothing presented", "GET", "/runs", []string{"Authorization", ""}, 401, at},
		{"a bad key", "GET", "/runs", bearer("x"), 401, at + `, error="invalid_token"`},
		{"a token for others", "GET", "/runs", bearer(p.Token(token.With(idptest.Claims{"aud": "x"}))), 401, at + `, error="invalid_token"`},
		{"a token of the interrupt kind", "GET", "/interrupts/ow2.hs256.nobody.e30.x", []string{"Authorization", ""}, 401, at + `, error="invalid_token"`},
		{"a scope too few", "POST", "/runs", reader, 403, at + `, error="insufficient_scope", scope="runs:create"`},
		{"a scope too few, with a key", "POST", "/runs", append(slices.Clone(reader), "Idempotency-Key", "a-key-of-22-characters-x"), 403, at + `, error="insufficient_scope", scope="runs:create"`},
		{"the same again", "POST", "/runs", append(slices.Clone(reader), "Idempotency-Key", "a-key-of-22-characters-x"), 403, at + `, error="insufficient_scope", scope="runs:create"`},
		{"another tenant's run", "GET", "/runs/other~2Frun-0123456789abcdef", reader, 403, ""},
		{"no such run", "GET", "/runs/default~2Frun-0123456789abcdef", reader, 404, ""},
		{"no such workflow", "GET", "/workflows/nobody", nil, 404, ""},
		{"no such operation", "GET", "/nothing", []string{"Authorization", ""}, 404, ""},
		{"a success", "GET", "/runs", reader, 200, ""},
	} {
		var body any
		if c.method == "POST" {
			body = map[string]any{"workflowId": "hello"}
		}
		a := s.do(c.method, c.path, body, c.header...).want(t, c.status)
		if got := a.header.Get("WWW-Authenticate"); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestDiscoveryOfLanes(t *testing.T) {
	t.Parallel()
	p := idptest.New(t)
	s := start(t, withIssuer(p))
	doc := s.do("GET", "/.well-known/openwop", nil, "Authorization", "").want(t, 200)
	auth := doc.json["auth"].(map[string]any)
	var lanes []string
	for _, l := range auth["lanes"].([]any) {
		m := l.(map[string]any)
		lanes = append(lanes, m["lane"].(string)+" "+m["revocation"].(string)+" "+m["minimumAssurance"].(string))
	}
	if want := []string{"oauth2 exp-only bearer", "api-key next-request bearer"}; !slices.Equal(lanes, want) {
		t.Errorf("%q", lanes)
	}
	if doc.json["authorization"].(map[string]any)["failClosed"] != true {
		t.Errorf("%v", doc.json["authorization"])
	}
	meta := s.do("GET", "/.well-known/oauth-protected-resource/api", nil, "Authorization", "").want(t, 200)
	if meta.json["resource"] != publicURL || !slices.Equal(meta.json["authorization_servers"].([]any), []any{p.URL}) {
		t.Errorf("%s", meta.body)
	}
	if _, ok := meta.json["dpop_bound_access_tokens_required"]; ok {
		t.Errorf("%s", meta.body)
	}
	s.do("GET", "/.well-known/oauth-protected-resource", nil).want(t, 404)

	plain := start(t)
	plain.do("GET", "/.well-known/oauth-protected-resource/api", nil).want(t, 404)
	if lanes := plain.do("GET", "/.well-known/openwop", nil).json["auth"].(map[string]any)["lanes"].([]any); len(lanes) != 1 {
		t.Errorf("%v", lanes)
	}
	if got := plain.do("GET", "/runs", nil, "Authorization", "").want(t, 401).header.Get("WWW-Authenticate"); got != "Bearer" {
		t.Errorf("%q", got)
	}
}

// Issuers are called through the guarded dialer: what the operator has not
// admitted is not called, whatever a name resolves to.
func TestIssuersAreCalledThroughTheGuard(t *testing.T) {
	t.Parallel()
	p := idptest.New(t)
	cfg := fermata.Config{DataDir: t.TempDir(), BootstrapKey: testKey}
	withIssuer(p)(&cfg)
	cfg.Lanes.Allow = nil
	if _, err := fermata.Open(context.Background(), cfg); err == nil || !strings.Contains(err.Error(), "may not be called") {
		t.Errorf("a thisMachine issuer that nobody admitted: %v", err)
	}
	byName := strings.Replace(p.URL, "http://127.0.0.1", "https://localhost", 1)
	s := start(t, withIssuer(p), func(c *fermata.Config) {
		c.Lanes.Allow, c.Lanes.OAuth2.Issuers[0].Issuer = nil, byName
	})
	s.do("GET", "/runs", nil, bearer(p.Token(p.Standard(publicURL, time.Now()).With(idptest.Claims{"iss": byName})))...).
		refused(t, 503, "service_unavailable")
	if n := p.Hits("/keys"); n > 0 {
		t.Errorf("the issuer was called %d times", n)
	}
	if len(s.host.Relaxations()) > 0 {
		t.Errorf("%v", s.host.Relaxations())
	}
	if r := start(t, withIssuer(p)).host.Relaxations(); len(r) != 1 || r[0].Name != "issuers-without-tls" {
		t.Errorf("%v", r)
	}
	cfg.Lanes.Allow, cfg.Mode = thisMachine, "production"
	if _, err := fermata.Open(context.Background(), cfg); err == nil || !strings.Contains(err.Error(), "production") {
		t.Errorf("a production host with a relaxation: %v", err)
	}
}

// sessions is a lane of an embedder.
func sessions(expires time.Time) fermata.Lane {
	return fermata.Lane{
		Name: "session", Revocation: "next-request", MinimumAssurance: "bearer", Issuers: []string{"urn:shop:session"},
		Claims: func(r *http.Request) bool { _, err := r.Cookie("sid"); return err == nil },
		Authenticate: func(r *http.Request) (fermata.Identity, error) {
			c, err := r.Cookie("sid")
			if err != nil {
				return fermata.Identity{}, err
			}
			id := fermata.Identity{Issuer: "urn:shop:session", SubjectID: c.Value, Tenant: fermata.DefaultTenant, Kind: "user", Assurance: "bearer", Scopes: []string{"runs:read", "runs:create"}, Expires: expires}
			switch c.Value {
			case "gone":
				return id, fermata.ErrRevoked
			case "bad":
				return id, errors.New("no such session")
			case "liar":
				id.Issuer = "https://idp.example"
			case "panic":
				panic("a lane that panics")
			}
			return id, nil
		},
	}
}

func TestAnEmbeddersOwnLane(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *fermata.Config) { c.Lanes.Own = []fermata.Lane{sessions(time.Time{})} })
	none := []string{"Authorization", "", "Cookie"}
	s.do("GET", "/runs", nil, append(none, "sid=ann")...).want(t, 200)
	s.do("GET", "/runs", nil, append(none, "sid=gone")...).refused(t, 401, "credential_revoked")
	s.do("GET", "/runs", nil, append(none, "sid=bad")...).refused(t, 401, "identity_unverified")
	s.do("GET", "/runs", nil, append(none, "sid=liar")...).refused(t, 401, "identity_unresolvable")
	s.do("GET", "/runs", nil, append(none, "sid=panic")...).refused(t, 500, "internal_error")
	s.do("GET", "/runs", nil, append(none, "other=ann")...).refused(t, 401, "unauthenticated")
	// What the lane has claimed no other lane is asked about, a good key neither.
	s.do("GET", "/runs", nil, "Cookie", "sid=bad").refused(t, 401, "identity_unverified")
	s.do("GET", "/runs", nil).want(t, 200)

	for _, name := range []string{"api-key", "saml", "anonymous", "other"} {
		l := sessions(time.Time{})
		l.Name = name
		if _, err := fermata.Open(context.Background(), fermata.Config{DataDir: t.TempDir(), Lanes: fermata.Lanes{Own: []fermata.Lane{l}}}); err == nil {
			t.Errorf("a lane called %s", name)
		}
	}
}

// What a credential allows ends with it, also for a stream that is open.
func TestAStreamEndsWithItsCredential(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *fermata.Config) { c.Lanes.Own = []fermata.Lane{sessions(time.Now().Add(2 * time.Second))} })
	id := s.gated("wait", map[string]any{})
	ctx, stop := context.WithTimeout(context.Background(), hang)
	defer stop()
	r, err := http.NewRequestWithContext(ctx, "GET", s.http.URL+"/runs/"+seg(id)+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.AddCookie(&http.Cookie{Name: "sid", Value: "ann"})
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	seen := false
	for lines.Scan() {
		seen = seen || strings.Contains(lines.Text(), "run.started")
	}
	if err := lines.Err(); err != nil || !seen {
		t.Errorf("the stream ended with %v, started seen: %v", err, seen)
	}
}

// The metadata of the host lists every scope that an operation asks for.
func TestEveryScopeIsInTheMetadata(t *testing.T) {
	t.Parallel()
	for _, r := range start(t).host.Routes() {
		if r.Scope != "" && !slices.Contains(identity.Scopes(), r.Scope) {
			t.Errorf("%s asks for %s, which identity.Scopes does not list", r.ID, r.Scope)
		}
	}
}
