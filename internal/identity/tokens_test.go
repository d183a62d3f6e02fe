package identity_test

import (
	"crypto/ecdsa"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/identity/idptest"
	"github.com/fermata-run/fermata/internal/problem"
)

func TestATokenBecomesACaller(t *testing.T) {
	l := newLab(t, func(c *identity.Tokens) { c.Issuers[0].Grant = []string{"manifest:read"} })
	c, err := l.bearer(l.idp.Token(l.standard().With(idptest.Claims{
		"scope": "runs:read * openid runs:create", "groups": []string{"finance"}, "realm_access": map[string]any{"roles": []string{"lead"}},
	})))
	if err != nil {
		t.Fatal(err)
	}
	s := c.Subject
	if s.Issuer != l.idp.URL || s.SubjectID != "ann" || s.Tenant != "acme" || s.Lane != "oauth2" || s.Kind != "user" || s.Actor != nil {
		t.Errorf("%+v", s)
	}
	if !slices.Equal(c.Groups, []string{"finance"}) || !slices.Equal(c.Roles, []string{"lead"}) || c.Assurance != identity.Bearer {
		t.Errorf("%+v", c)
	}
	if !c.Holds("runs:read") || !c.Holds("runs:create") || !c.Holds("manifest:read") || c.Holds("fermata:keys:write") {
		t.Errorf("scopes %v", c.Scopes) // the star of a token stands for nothing
	}
	if want := l.now().Add(10 * time.Minute); !c.Expires.Equal(want) {
		t.Errorf("expires %s, want %s", c.Expires, want)
	}
	for _, one := range []string{"bearer ", "BEARER "} {
		if _, err := l.pipe.Authenticate(request(one + l.idp.Token(l.standard()))); err != nil {
			t.Errorf("%s: %v", one, err)
		}
	}
}

// An issuer vouches for a tenant: what reaches beyond it is for the operator to give.
func TestScopesBeyondTheTenant(t *testing.T) {
	cl := func(l *lab) idptest.Claims {
		return l.standard().With(idptest.Claims{"scope": "runs:read fermata:audit:manage fermata:seams"})
	}
	l := newLab(t, nil)
	c, err := l.bearer(l.idp.Token(cl(l)))
	if err != nil || !slices.Equal(c.Scopes, []string{"runs:read"}) {
		t.Errorf("%v, %v", c.Scopes, err)
	}
	l = newLab(t, func(c *identity.Tokens) { c.Issuers[0].Scopes = []string{"fermata:audit:manage"} })
	if c, err = l.bearer(l.idp.Token(cl(l))); err != nil || !slices.Equal(c.Scopes, []string{"fermata:audit:manage"}) {
		t.Errorf("%v, %v", c.Scopes, err)
	}
}

func TestScpAndTenantByClaim(t *testing.T) {
	l := newLab(t, func(c *identity.Tokens) {
		i := &c.Issuers[0]
		i.Tenant, i.TenantClaim, i.Tenants = "", "https://acme.example/org", map[string]string{"org-1": "one"}
		i.Scopes = []string{"runs:read"}
	})
	cl := l.standard().With(idptest.Claims{"scope": nil, "scp": []string{"runs:read", "runs:create"}, "https://acme.example/org": "org-1", "client_id": "ann"})
	c, err := l.bearer(l.idp.Token(cl))
	if err != nil || c.Tenant() != "one" || !slices.Equal(c.Scopes, []string{"runs:read"}) || c.Subject.Kind != "workload" {
		t.Errorf("%+v, %v", c, err)
	}
	for _, org := range []any{"org-2", nil, 7, "one"} {
		_, err := l.bearer(l.idp.Token(cl.With(idptest.Claims{"https://acme.example/org": org})))
		refused(t, fmt.Sprint("org ", org), err, problem.IdentityUnresolvable)
	}
}

// What is wrong with a token has one code each (spec v2 identity.md §6).
func TestClaimsThatAreRefused(t *testing.T) {
	l := newLab(t, func(c *identity.Tokens) { c.Issuers[0].Required = []string{"runs:read"} })
	now := l.now()
	in := func(d time.Duration) int64 { return now.Add(d).Unix() }
	for _, c := range []struct {
		name   string
		claims idptest.Claims
		code   problem.Code
	}{
		{"another audience", idptest.Claims{"aud": base + "/"}, problem.AudienceMismatch},
		{"no audience", idptest.Claims{"aud": nil}, problem.AudienceMismatch},
		{"audience in another case", idptest.Claims{"aud": strings.ToUpper(base)}, problem.AudienceMismatch},
		{"audience of a kind", idptest.Claims{"aud": map[string]any{"a": base}}, problem.AudienceMismatch},
		{"another issuer", idptest.Claims{"iss": "https://evil.example"}, problem.IdentityUnverified},
		{"the issuer with a slash", idptest.Claims{"iss": l.idp.URL + "/"}, problem.IdentityUnverified},
		{"no issuer", idptest.Claims{"iss": nil}, problem.IdentityUnverified},
		{"no exp", idptest.Claims{"exp": nil}, problem.IdentityUnverified},
		{"exp as a text", idptest.Claims{"exp": "9999999999"}, problem.IdentityUnverified},
		{"over", idptest.Claims{"exp": in(0)}, problem.IdentityUnverified},
		{"not yet", idptest.Claims{"nbf": in(time.Minute)}, problem.IdentityUnverified},
		{"nbf of a kind", idptest.Claims{"nbf": true}, problem.IdentityUnverified},
		{"issued later", idptest.Claims{"iat": in(time.Minute)}, problem.IdentityUnverified},
		{"no sub", idptest.Claims{"sub": nil}, problem.IdentityUnresolvable},
		{"sub with a slash", idptest.Claims{"sub": "a/b"}, problem.IdentityUnresolvable},
		{"sub with a space", idptest.Claims{"sub": "a b"}, problem.IdentityUnresolvable},
		{"sub too long", idptest.Claims{"sub": strings.Repeat("a", 257)}, problem.IdentityUnresolvable},
		{"groups of a kind", idptest.Claims{"groups": map[string]any{}}, problem.IdentityUnresolvable},
		{"a required scope is missing", idptest.Claims{"scope": "runs:create"}, problem.Forbidden},
		{"bound to something unknown", idptest.Claims{"cnf": map[string]any{"kid": "x"}}, problem.IdentityUnverified},
		{"cnf is empty", idptest.Claims{"cnf": map[string]any{}}, problem.IdentityUnverified},
		{"bound and presented as a bearer", idptest.Claims{"cnf": map[string]any{"jkt": "x"}}, problem.SenderConstraintMissing},
		{"bound to a certificate, without one", idptest.Claims{"cnf": map[string]any{"x5t#S256": "x"}}, problem.SenderConstraintMissing},
	} {
		_, err := l.bearer(l.idp.Token(l.standard().With(c.claims)))
		refused(t, c.name, err, c.code)
	}
	if _, err := l.bearer(l.idp.Token(l.standard().With(idptest.Claims{"nbf": in(20 * time.Second), "iat": in(20 * time.Second)}))); err != nil {
		t.Errorf("within the clock's skew: %v", err)
	}
	if _, err := l.bearer(l.idp.Token(l.standard().With(idptest.Claims{"aud": []string{"https://other.example", base}}))); err != nil {
		t.Errorf("an access token for two: %v", err)
	}
}

// A header never says what a token is checked with.
func TestForgedHeaders(t *testing.T) {
	l := newLab(t, nil)
	evil := idptest.NewHolder()
	jwk := json.RawMessage(publicJWK(t, evil.Key()))
	cl := l.standard()
	k := l.idp.Key()
	public := k.Public()
	pub, _ := json.Marshal(public)
	body := func(header map[string]any) string {
		return strings.Join(strings.Split(l.idp.Token(cl, header), ".")[:2], ".")
	}
	mac := hmac.New(sha256.New, pub)
	mac.Write([]byte(body(map[string]any{"alg": "HS256"})))
	for name, token := range map[string]string{
		"none":                       body(map[string]any{"alg": "none"}) + ".",
		"none with a signature":      l.idp.Token(cl, map[string]any{"alg": "none"}),
		"None":                       l.idp.Token(cl, map[string]any{"alg": "None"}),
		"HS256 with the public key":  body(map[string]any{"alg": "HS256"}) + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)),
		"an alg the key is not for":  l.idp.Token(cl, map[string]any{"alg": "RS256"}),
		"an alg that is not allowed": l.idp.Token(cl, map[string]any{"alg": "ES512"}),
		"own jwk":                    idptest.Sign(evil.Key(), map[string]any{"alg": "ES256", "typ": "at+jwt", "jwk": jwk}, cl),
		"own jwk under a known kid":  idptest.Sign(evil.Key(), map[string]any{"alg": "ES256", "typ": "at+jwt", "kid": k.KeyID, "jwk": jwk}, cl),
		"own jku":                    idptest.Sign(evil.Key(), map[string]any{"alg": "ES256", "typ": "at+jwt", "jku": l.idp.URL + "/evil"}, cl),
		"own x5u":                    idptest.Sign(evil.Key(), map[string]any{"alg": "ES256", "typ": "at+jwt", "x5u": l.idp.URL + "/evil"}, cl),
		"crit":                       l.idp.Token(cl, map[string]any{"crit": []string{"exp"}}),
		"b64":                        l.idp.Token(cl, map[string]any{"b64": true}),
		"alg twice":                  idptest.Sign(k.Key.(*ecdsa.PrivateKey), []byte(`{"alg":"ES256","alg":"ES256","kid":"`+k.KeyID+`"}`), cl),
		"iss twice":                  idptest.Sign(k.Key.(*ecdsa.PrivateKey), map[string]any{"alg": "ES256", "kid": k.KeyID}, []byte(`{"iss":"x",`+string(must(json.Marshal(cl)))[1:])),
		"another type":               l.idp.Token(cl, map[string]any{"typ": "dpop+jwt"}),
		"a logout token":             l.idp.Token(cl, map[string]any{"typ": "logout+jwt"}),
		"kid of a path":              l.idp.Token(cl, map[string]any{"kid": "../../../../dev/null"}),
		"kid of a query":             l.idp.Token(cl, map[string]any{"kid": "x' OR '1'='1"}),
		"kid of a URL":               l.idp.Token(cl, map[string]any{"kid": l.idp.URL + "/evil"}),
		"kid too long":               l.idp.Token(cl, map[string]any{"kid": strings.Repeat("k", 300)}),
		"cut":                        l.idp.Token(cl)[:200],
		"one bit off":                flip(l.idp.Token(cl)),
		"padding":                    l.idp.Token(cl) + "=",
	} {
		_, err := l.bearer(token)
		if strings.Count(token, ".") != 2 {
			refused(t, name, err, problem.Unauthenticated)
			continue
		}
		refused(t, name, err, problem.IdentityUnverified)
	}
	if n := l.idp.Hits("/evil"); n > 0 {
		t.Errorf("a header made the host fetch a key, %d times", n)
	}
	if _, err := l.bearer(l.idp.Token(cl)); err != nil {
		t.Errorf("the control: %v", err)
	}
}

func TestWhatIsPresentedBadly(t *testing.T) {
	l := newLab(t, nil)
	good := l.idp.Token(l.standard())
	for name, headers := range map[string][]string{
		"two headers":             {"Bearer " + good, "Bearer " + good},
		"two headers, one empty":  {"Bearer " + good, ""},
		"two in one":              {"Bearer " + good + ", Bearer " + good},
		"two spaces":              {"Bearer  " + good},
		"a tab":                   {"Bearer\t" + good},
		"a space behind":          {"Bearer " + good + " "},
		"basic":                   {"Basic " + good},
		"no scheme":               {good},
		"nothing":                 {},
		"oversized":               {"Bearer " + good + strings.Repeat("a", 20_000)},
		"a key that is not known": {"Bearer " + identity.Generate()},
	} {
		_, err := l.pipe.Authenticate(request(headers...))
		refused(t, name, err, problem.Unauthenticated)
	}
	// Headers that only assert an identity, a query, a form: none of it is looked at.
	r := request()
	for _, h := range []string{"X-Forwarded-User", "X-Forwarded-Client-Cert", "X-Ssl-Client-Cert", "X-Ssl-Client-Verify", "Client-Cert", "X-Authorization", "Cookie"} {
		r.Header.Set(h, "Bearer "+good)
	}
	r.URL.RawQuery = "access_token=" + good
	_, err := l.pipe.Authenticate(r)
	refused(t, "asserted", err, problem.Unauthenticated)
}

// Both bounds of an exp-only lane hold, each where the other does not (§2.2).
func TestExpOnlyBounds(t *testing.T) {
	l := newLab(t, func(c *identity.Tokens) { c.Window = 5 * time.Minute })
	now := l.now()
	at := func(d time.Duration) int64 { return now.Add(d).Unix() }
	for _, c := range []struct {
		name     string
		iat, exp any
		ok       bool
	}{
		{"inside", at(0), at(4 * time.Minute), true},
		{"to the second", at(0), at(5 * time.Minute), true},
		{"total alone", at(-2 * time.Minute), at(4 * time.Minute), false},
		{"remaining alone", at(2 * time.Minute), at(6 * time.Minute), false},
		{"no iat", nil, at(time.Minute), false},
		{"iat of a kind", "now", at(time.Minute), false},
	} {
		_, err := l.bearer(l.idp.Token(l.standard().With(idptest.Claims{"iat": c.iat, "exp": c.exp, "nbf": nil})))
		if c.ok && err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if !c.ok {
			refused(t, c.name, err, problem.CredentialLifetimeExceeded)
		}
	}
}

// exp is honoured to the second, also for a token that is remembered.
func TestExpiryOfARememberedToken(t *testing.T) {
	l := newLab(t, nil)
	token := l.idp.Token(l.standard())
	for range 3 {
		if _, err := l.bearer(token); err != nil {
			t.Fatal(err)
		}
	}
	if n := l.idp.Hits("/keys"); n != 1 {
		t.Errorf("keys were fetched %d times", n)
	}
	l.advance(10*time.Minute - time.Second)
	if _, err := l.bearer(token); err != nil {
		t.Errorf("a second before: %v", err)
	}
	l.advance(time.Second)
	_, err := l.bearer(token)
	refused(t, "at exp", err, problem.IdentityUnverified)
}

func rechecked(c *identity.Tokens) {
	c.Revocation, c.Window = identity.RecheckedExp, time.Minute
	i := &c.Issuers[0]
	i.Introspection = &identity.Introspection{URL: i.Issuer + "/introspect", ClientID: "host", Secret: "introspection-secret"}
}

// A revoked token is refused within the window, and where the issuer cannot be
// asked nobody gets in (§2.2 exp-and-recheck).
func TestExpAndRecheck(t *testing.T) {
	l := newLab(t, rechecked)
	token := l.idp.Token(l.standard())
	for range 5 {
		if _, err := l.bearer(token); err != nil {
			t.Fatal(err)
		}
	}
	if n := l.idp.Hits("/introspect"); n != 1 {
		t.Errorf("asked %d times within the window", n)
	}
	l.advance(time.Minute)
	if _, err := l.bearer(token); err != nil || l.idp.Hits("/introspect") != 2 {
		t.Errorf("%v, asked %d times", err, l.idp.Hits("/introspect"))
	}
	l.idp.Revoke(token)
	l.advance(time.Minute)
	_, err := l.bearer(token)
	refused(t, "revoked", err, problem.CredentialRevoked)
	_, err = l.bearer(token)
	refused(t, "revoked, again", err, problem.CredentialRevoked)

	early := l.idp.Token(l.standard().With(idptest.Claims{"jti": "early"}))
	l.idp.Revoke(early)
	_, err = l.bearer(early)
	refused(t, "revoked before it was ever seen", err, problem.CredentialRevoked)

	other := l.idp.Token(l.standard().With(idptest.Claims{"jti": "other"}))
	if _, err := l.bearer(other); err != nil {
		t.Fatal(err)
	}
	l.idp.Down(true)
	if _, err := l.bearer(other); err != nil {
		t.Errorf("within the window: %v", err)
	}
	l.advance(time.Minute)
	_, err = l.bearer(other)
	refused(t, "nobody to ask", err, problem.ServiceUnavailable)
	l.idp.Down(false)
	if _, err := l.bearer(other); err != nil {
		t.Errorf("the issuer is back: %v", err)
	}
}

func TestKeysRotate(t *testing.T) {
	l := newLabOf(t, identity.LaneOIDC, nil)
	old := l.idp.Token(l.standard())
	if _, err := l.bearer(old); err != nil {
		t.Fatal(err)
	}
	// Keys that nobody has are looked for once in a while, not whenever asked.
	for i := range 50 {
		_, err := l.bearer(l.idp.Token(l.standard(), map[string]any{"kid": fmt.Sprint("nobody-", i)}))
		refused(t, "unknown kid", err, problem.IdentityUnverified)
	}
	if n := l.idp.Hits("/keys"); n != 1 {
		t.Errorf("unknown keys made the host fetch %d times at once", n-1)
	}
	l.advance(10 * time.Second)
	l.idp.Rotate()
	if _, err := l.bearer(l.idp.Token(l.standard())); err != nil {
		t.Errorf("a new key: %v", err)
	}
	if n := l.idp.Hits("/keys"); n != 2 {
		t.Errorf("fetched %d times", n)
	}
	_, err := l.bearer(l.idp.Token(l.standard().With(idptest.Claims{"jti": "x"}), map[string]any{"kid": "key-1"}))
	refused(t, "the key that was replaced", err, problem.IdentityUnverified)
}

// An issuer that is down is relied on for a while, then nobody gets in.
func TestStaleKeys(t *testing.T) {
	l := newLab(t, nil)
	fresh := func() error {
		_, err := l.bearer(l.idp.Token(l.standard().With(idptest.Claims{"jti": l.now().String()})))
		return err
	}
	if err := fresh(); err != nil {
		t.Fatal(err)
	}
	l.idp.Down(true)
	l.advance(30 * time.Minute)
	if err := fresh(); err != nil {
		t.Errorf("stale: %v", err)
	}
	l.advance(30 * time.Minute)
	refused(t, "too stale", fresh(), problem.ServiceUnavailable)
	before := l.idp.Hits("/keys")
	for range 20 {
		refused(t, "too stale", fresh(), problem.ServiceUnavailable)
	}
	if n := l.idp.Hits("/keys") - before; n > 0 {
		t.Errorf("an issuer that is down was asked %d times at once", n)
	}
	l.idp.Down(false)
	l.advance(10 * time.Second)
	if err := fresh(); err != nil {
		t.Errorf("it is back: %v", err)
	}
}

// Metadata is held against what the operator has said.
func TestMetadataIsNoWayAround(t *testing.T) {
	for name, m := range map[string][2]string{
		"another issuer":         {"issuer", "https://other.example"},
		"keys at another host":   {"jwks_uri", "https://other.example/keys"},
		"keys at another port":   {"jwks_uri", "http://127.0.0.1:1/keys"},
		"keys at no address":     {"jwks_uri", "file:///etc/passwd"},
		"keys behind user names": {"jwks_uri", "https://127.0.0.1@other.example/keys"},
	} {
		l := newLabOf(t, identity.LaneOIDC, nil)
		l.idp.Metadata(m[0], m[1])
		_, err := l.bearer(l.idp.Token(l.standard()))
		refused(t, name, err, problem.ServiceUnavailable)
		if n := l.idp.Hits("/keys"); n > 0 {
			t.Errorf("%s: keys were fetched", name)
		}
	}
	// Keys that would do, at an address that nobody has named.
	l, other := newLabOf(t, identity.LaneOIDC, nil), idptest.New(t)
	l.idp.Metadata("jwks_uri", other.URL+"/keys")
	_, err := l.bearer(other.Token(l.standard()))
	refused(t, "another server's keys", err, problem.ServiceUnavailable)
	if n := other.Hits("/keys"); n > 0 {
		t.Errorf("they were fetched %d times", n)
	}
	l = newLabOf(t, identity.LaneOIDC, func(c *identity.Tokens) { c.Issuers[0].Hosts = []string{strings.TrimPrefix(other.URL, "http://")} })
	l.idp.Metadata("jwks_uri", other.URL+"/keys")
	if _, err := l.bearer(other.Token(l.standard())); err != nil {
		t.Errorf("at a host that is named: %v", err)
	}
}

// What an operator has ruled out for an issuer is out, whatever its keys could do.
func TestAlgorithmsAndTypesOfAnIssuer(t *testing.T) {
	l := newLab(t, func(c *identity.Tokens) { c.Issuers[0].Algorithms = []string{"RS256", "PS256"} })
	_, err := l.bearer(l.idp.Token(l.standard()))
	refused(t, "an algorithm", err, problem.IdentityUnverified)
	l = newLab(t, func(c *identity.Tokens) { c.Issuers[0].Types = []string{"application/at+jwt"} })
	_, err = l.bearer(l.idp.Token(l.standard(), map[string]any{"typ": "JWT"}))
	refused(t, "a type", err, problem.IdentityUnverified)
	for _, typ := range []string{"at+jwt", "application/AT+JWT"} {
		if _, err := l.bearer(l.idp.Token(l.standard().With(idptest.Claims{"jti": typ}), map[string]any{"typ": typ})); err != nil {
			t.Errorf("%s: %v", typ, err)
		}
	}
}

// An ID token is a bearer only for the host it was made for, and nobody else
// (identity.md §2.1).
func TestIDTokens(t *testing.T) {
	l := newLabOf(t, identity.LaneOIDC, nil)
	id := map[string]any{"typ": "JWT"}
	if c, err := l.bearer(l.idp.Token(l.standard(), id)); err != nil || c.Subject.Lane != "oidc" {
		t.Errorf("%+v, %v", c, err)
	}
	_, err := l.bearer(l.idp.Token(l.standard().With(idptest.Claims{"aud": []string{base, "app"}}), id))
	refused(t, "an ID token for two", err, problem.AudienceMismatch)
	_, err = l.bearer(l.idp.Token(l.standard().With(idptest.Claims{"aud": "app"}), id))
	refused(t, "an ID token for an app", err, problem.AudienceMismatch)
}

func TestChainsOfActors(t *testing.T) {
	l := newLab(t, nil)
	h := idptest.NewHolder()
	chain := func(links ...map[string]any) idptest.Claims { // the caller first
		var act map[string]any
		for _, a := range slices.Backward(links) {
			if act != nil {
				a["act"] = act
			}
			act = a
		}
		return l.standard().With(idptest.Claims{"act": act, "cnf": map[string]any{"jkt": h.Thumbprint()}})
	}
	a := func(sub string, more ...string) map[string]any {
		m := map[string]any{"sub": sub}
		if len(more) > 0 {
			m["scope"] = more[0]
		}
		return m
	}
	present := func(cl idptest.Claims) (identity.Caller, error) {
		token := l.idp.Token(cl)
		r := request("DPoP " + token)
		r.Header.Set("DPoP", h.Proof("GET", base+"/runs/acme~2Frun", token, l.now(), nil, nil))
		return l.pipe.Authenticate(r)
	}
	c, err := present(chain(a("d"), a("c"), a("b"), a("a")))
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	for s := c.Subject.Actor; s != nil; s = s.Actor {
		seen = append(seen, s.SubjectID)
	}
	if !slices.Equal(seen, []string{"d", "c", "b", "a"}) || c.Assurance != identity.SenderConstrained {
		t.Errorf("%v, %s", seen, c.Assurance)
	}
	for _, x := range []struct {
		name   string
		claims idptest.Claims
		code   problem.Code
	}{
		{"five", chain(a("e"), a("d"), a("c"), a("b"), a("a")), problem.DelegationChainTooLong},
		{"twice the same", chain(a("b"), a("a"), a("b")), problem.DelegationChainCyclic},
		{"back to the subject", chain(a("b"), a("ann")), problem.DelegationChainCyclic},
		{"wider than its delegator", chain(a("b", "runs:read runs:create"), a("a", "runs:read")), problem.DelegationScopeAmplified},
		{"wider past one that says nothing", chain(a("c", "runs:create"), a("b"), a("a", "runs:read")), problem.DelegationScopeAmplified},
		{"the token wider than its chain", chain(a("a", "runs:read")), problem.DelegationScopeAmplified},
		{"wider than nothing", chain(a("a", "")), problem.DelegationScopeAmplified},
		{"nobody", chain(map[string]any{}), problem.IdentityUnresolvable},
		{"over", chain(a("a")).With(idptest.Claims{"exp": l.now().Unix()}), problem.DelegationExpired},
		{"no object", l.standard().With(idptest.Claims{"act": "a", "cnf": map[string]any{"jkt": h.Thumbprint()}}), problem.IdentityUnverified},
	} {
		_, err := present(x.claims)
		refused(t, x.name, err, x.code)
	}
	if _, err := present(chain(a("b", "runs:create runs:read manifest:read"), a("a", "runs:create runs:read manifest:read runs:cancel"))); err != nil {
		t.Errorf("narrowing: %v", err)
	}
	_, err = l.bearer(l.idp.Token(chain(a("a")).With(idptest.Claims{"cnf": nil})))
	refused(t, "a chain without a proof", err, problem.IdentityUnverified)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// flip changes one bit of a signature.
func flip(token string) string {
	b := []byte(token)
	i := len(b) - 10
	if b[i] == 'A' {
		b[i] = 'B'
	} else {
		b[i] = 'A'
	}
	return string(b)
}
