package identity_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/problem"
)

// What would let somebody in by mistake stops the start.
func TestLanesThatCannotBeMeant(t *testing.T) {
	sound := func() identity.Config {
		return identity.Config{PublicURL: base, OIDC: &identity.Tokens{Audience: base, Issuers: []identity.Issuer{{Issuer: "https://idp.example", Tenant: "acme"}}}}
	}
	first := func(change func(*identity.Issuer)) func(*identity.Config) {
		return func(c *identity.Config) { change(&c.OIDC.Issuers[0]) }
	}
	for want, change := range map[string]func(*identity.Config){
		"public URL":                    func(c *identity.Config) { c.PublicURL = "" },
		"the public URL holds more":     func(c *identity.Config) { c.PublicURL = "https://h.example/api?x=1" },
		"plain path":                    func(c *identity.Config) { c.PublicURL = "https://h.example/a/../b" },
		"audience":                      func(c *identity.Config) { c.OIDC.Audience = "" },
		"issuers: name":                 func(c *identity.Config) { c.OIDC.Issuers = nil },
		"there twice":                   func(c *identity.Config) { c.OIDC.Issuers = append(c.OIDC.Issuers, c.OIDC.Issuers[0]) },
		"trusted by lane oidc already":  func(c *identity.Config) { c.OAuth2 = sound().OIDC },
		"revocation rule":               func(c *identity.Config) { c.OIDC.Revocation = "next-request" },
		"revocation-window":             func(c *identity.Config) { c.OIDC.Window = 1500 * time.Millisecond },
		"clock-skew":                    func(c *identity.Config) { c.OIDC.Skew = time.Hour },
		"minimum assurance":             func(c *identity.Config) { c.OIDC.MinimumAssurance = "some" },
		"introspection: exp-and-rechec": func(c *identity.Config) { c.OIDC.Revocation = identity.RecheckedExp },
		"introspection: the lane's":     first(func(i *identity.Issuer) { i.Introspection = &identity.Introspection{} }),
		`"HS256" is none`:               first(func(i *identity.Issuer) { i.Algorithms = []string{"HS256"} }),
		`"none" is none`:                first(func(i *identity.Issuer) { i.Algorithms = []string{"RS256", "none"} }),
		"its address may not be called": first(func(i *identity.Issuer) { i.Issuer = "http://idp.example" }),
		"not an issuer's URL":           first(func(i *identity.Issuer) { i.Issuer = "idp" }),
		"jwks":                          first(func(i *identity.Issuer) { i.JWKS = "https://keys.example/jwks" }),
		"and this address does not":     first(func(i *identity.Issuer) { i.JWKS = "http://idp.example/keys" }),
		"either tenant or tenant-claim": first(func(i *identity.Issuer) { i.Tenant = "" }),
		"is not a tenant":               first(func(i *identity.Issuer) { i.Tenant = "anon:acme" }),
		"not a scope":                   first(func(i *identity.Issuer) { i.Grant = []string{"*"} }),
		"kind":                          first(func(i *identity.Issuer) { i.Kind = "anonymous" }),
		"no certificate":                func(c *identity.Config) { c.MTLS = &identity.Certificates{} },
	} {
		c := sound()
		change(&c)
		_, err := identity.Build(c, identity.NewAPIKeys(&memory{}).Lane(), outside(), time.Now)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	if _, err := identity.Build(sound(), identity.NewAPIKeys(&memory{}).Lane(), outside(), time.Now); err != nil {
		t.Errorf("the control: %v", err)
	}
}

func TestWhatIsAdvertised(t *testing.T) {
	issuer := func(name string) []identity.Issuer { return []identity.Issuer{{Issuer: name, Tenant: "acme"}} }
	c := identity.Config{
		PublicURL: "https://H.example/api/",
		OIDC:      &identity.Tokens{Audience: base, Issuers: issuer("https://one.example"), MinimumAssurance: identity.KeyBound},
		OAuth2:    &identity.Tokens{Audience: base, Issuers: issuer("https://two.example"), Window: time.Minute, MinimumAssurance: identity.KeyBound},
	}
	p, err := identity.Build(c, identity.NewAPIKeys(&memory{}).Lane(), outside(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	var lanes []string
	for _, f := range p.Facets() {
		lanes = append(lanes, f.Lane+" "+f.Revocation+" "+strings.Join(f.Issuers, ","))
	}
	if want := []string{"oidc exp-only https://one.example", "oauth2 exp-only https://two.example", "api-key next-request urn:fermata:api-key"}; !slices.Equal(lanes, want) {
		t.Errorf("%q", lanes)
	}
	r := p.Resource()
	if r.Metadata.Resource != base || r.URL() != "https://h.example/.well-known/oauth-protected-resource/api" || r.Path() != "/.well-known/oauth-protected-resource/api" {
		t.Errorf("%+v", r)
	}
	if want := []string{"https://one.example", "https://two.example"}; !slices.Equal(r.Metadata.AuthorizationServers, want) || !r.Metadata.CertificateRequired || r.Metadata.DPoPRequired {
		t.Errorf("%+v", r.Metadata)
	}
	if !slices.Contains(r.Metadata.ScopesSupported, identity.RunsCreate) {
		t.Errorf("%v", r.Metadata.ScopesSupported)
	}
	alone, err := identity.Build(identity.Config{PublicURL: base}, identity.NewAPIKeys(&memory{}).Lane(), outside(), time.Now)
	if err != nil || alone.Resource() != nil {
		t.Errorf("a host of API keys alone is a protected resource: %v", err)
	}
}

// loose is a lane that answers whatever a test wants.
type loose struct {
	facet  identity.Facet
	caller identity.Caller
}

func (l loose) Facet() identity.Facet            { return l.facet }
func (loose) Claims(c *identity.Credential) bool { return c.Scheme == "bearer" }
func (l loose) Authenticate(context.Context, *identity.Credential) (identity.Caller, error) {
	return l.caller, nil
}

// The pipeline holds every lane to what it advertises.
func TestALaneCannotExceedItsFacet(t *testing.T) {
	facet := identity.Facet{Lane: "session", Issuers: []string{"urn:h:session"}, Revocation: "next-request", MinimumAssurance: identity.SenderConstrained}
	sound := identity.Caller{
		Subject:   event.Subject{Issuer: "urn:h:session", SubjectID: "ann", Tenant: "acme", Lane: "session", Kind: "user"},
		Assurance: identity.SenderConstrained,
	}
	for name, x := range map[string]struct {
		change func(*identity.Caller)
		code   problem.Code
	}{
		"below its floor":     {func(c *identity.Caller) { c.Assurance = identity.Bearer }, problem.SenderConstraintMissing},
		"no assurance":        {func(c *identity.Caller) { c.Assurance = "" }, problem.SenderConstraintMissing},
		"another issuer":      {func(c *identity.Caller) { c.Subject.Issuer = "https://idp.example" }, problem.IdentityUnresolvable},
		"another lane":        {func(c *identity.Caller) { c.Subject.Lane = "oidc" }, problem.IdentityUnresolvable},
		"no subject":          {func(c *identity.Caller) { c.Subject.SubjectID = "" }, problem.IdentityUnresolvable},
		"a slash":             {func(c *identity.Caller) { c.Subject.SubjectID = "a/b" }, problem.IdentityUnresolvable},
		"no tenant":           {func(c *identity.Caller) { c.Subject.Tenant = "" }, problem.IdentityUnresolvable},
		"an anonymous tenant": {func(c *identity.Caller) { c.Subject.Tenant = "anon:acme" }, problem.IdentityUnresolvable},
		"anonymous":           {func(c *identity.Caller) { c.Subject.Kind = "anonymous" }, problem.IdentityUnresolvable},
	} {
		c := sound
		x.change(&c)
		p, err := identity.NewPipeline(nil, loose{facet, c})
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Authenticate(request("Bearer x"))
		refused(t, name, err, x.code)
	}
	p, err := identity.NewPipeline(nil, loose{facet, sound})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Authenticate(request("Bearer x")); err != nil {
		t.Errorf("the control: %v", err)
	}
	if _, err := identity.NewPipeline(nil, loose{facet, sound}, loose{facet, sound}); err == nil {
		t.Error("two of one lane")
	}
	for _, rule := range []string{"exp-only", "", "crl"} {
		f := facet
		f.Revocation, f.WindowSeconds = rule, 60
		if _, err := identity.NewPipeline(nil, loose{f, sound}); err == nil {
			t.Errorf("a session lane advertises %q", rule)
		}
	}
}
