package conformance

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// lane is a member of auth.lanes[].
type lane struct {
	Lane             string   `json:"lane"`
	Issuers          []string `json:"issuers"`
	Revocation       string   `json:"revocation"`
	Window           int64    `json:"revocationWindowSeconds"`
	MinimumAssurance string   `json:"minimumAssurance"`
	Proofs           []string `json:"delegationProofs"`
}

// rules are the revocation rules of each lane, and windowed those that name a
// window (spec v2 identity.md §2.2).
var (
	rules = map[string][]string{
		"api-key": {"next-request"}, "session": {"next-request"}, "oauth2": {"exp-and-recheck", "exp-only"}, "oidc": {"exp-and-recheck", "exp-only"},
		"mtls": {"crl", "ocsp", "short-lived"}, "saml": {"not-on-or-after"}, "scim": {"bound-connection"}, "ldap": {"rebind"},
		"workload": {"delegation-expiry"}, "anonymous": nil,
	}
	windowed = []string{"exp-and-recheck", "exp-only", "short-lived", "rebind"}
	proofsOf = map[string][]string{"oauth2": {"dpop", "mtls-key-binding"}, "oidc": {"dpop", "mtls-key-binding"}, "workload": {"svid-chain"}, "mtls": {"mtls-key-binding"}}
)

var laneChecks = []check{
	must("lanes.advertised", "identity.md §2.1, §2.2", "every lane names its issuers and a revocation rule of its own, with a window where the rule has one", func(p *probe) {
		seen := map[string]bool{}
		for _, l := range p.lanes() {
			allowed, known := rules[l.Lane]
			p.want(!seen[l.Lane], "the lane %s is advertised twice", l.Lane)
			p.want(len(l.Issuers) > 0, "the lane %s trusts nobody", l.Lane)
			p.want(!known || l.Lane == "anonymous" || slices.Contains(allowed, l.Revocation), "the lane %s has the revocation rule %q", l.Lane, l.Revocation)
			p.want(!slices.Contains(windowed, l.Revocation) || l.Window >= 1, "the lane %s (%s) names no window", l.Lane, l.Revocation)
			for _, proof := range l.Proofs {
				p.want(!known || slices.Contains(proofsOf[l.Lane], proof), "the lane %s accepts the delegation proof %q", l.Lane, proof)
			}
			seen[l.Lane] = true
		}
	}).gated("auth"),

	must("lanes.trust-root", "identity.md §2.2", "the subject of a run comes from a lane that is advertised, and its issuer is one the lane trusts", func(p *probe) {
		s := member(p.snapshot(p.over("completed")).obj()["owner"], "subject")
		i := slices.IndexFunc(p.lanes(), func(l lane) bool { return l.Lane == text(member(s, "lane")) })
		p.want(i >= 0, "the lane %s is not advertised", member(s, "lane"))
		p.want(slices.Contains(p.lanes()[i].Issuers, text(member(s, "issuer"))), "the lane does not name the issuer %s", member(s, "issuer"))
	}).gated("auth"),

	must("lanes.fail-closed", "identity.md §2.1", "no credential, and whatever only asserts an identity, is refused on every operation", func(p *probe) {
		asserted := []string{"X-Forwarded-User", "X-Remote-User", "X-Authenticated-User", "X-Forwarded-Client-Cert", "X-Ssl-Client-Verify", "Client-Cert", "X-Api-Key", "Cookie"}
		for _, name := range append([]string{"X-Nothing"}, asserted...) {
			for _, a := range p.onRun(foreignRun, "Authorization", "", name, "conformance=Hash; "+p.s.cfg.APIKey) {
				p.want(a.status == 401, "%s with the header %s answered %s", a.line(), name, a.brief())
			}
		}
		a := p.get("/runs?access_token="+url.QueryEscape(p.s.cfg.APIKey), "Authorization", "")
		p.want(a.status == 401, "a key in the query answered %s", a.brief())
	}),

	must("lanes.one-credential", "identity.md §2.1", "two credentials in one request are refused, whichever comes first", func(p *probe) {
		good, bad := "Bearer "+p.s.cfg.APIKey, "Bearer "+nonce()
		for _, pair := range [][2]string{{good, bad}, {bad, good}, {good, good}} {
			status, code := p.doubled("/runs", pair)
			p.want(status == 401 || status == 400, "two Authorization headers answered %d %s", status, code)
		}
	}),

	must("lanes.forged-token", "identity.md §2.1", "a token without a signature, or one that brings its own key, is refused", func(p *probe) {
		issuer := "https://idp.conformance.invalid"
		for _, l := range p.lanes() {
			if l.Lane == "oidc" || l.Lane == "oauth2" {
				issuer = l.Issuers[0]
			}
		}
		for _, header := range []string{
			`{"alg":"none"}`, `{"alg":"None","typ":"at+jwt"}`, `{"alg":"HS256","typ":"at+jwt"}`, `{"alg":"RS256","kid":"../../dev/null"}`,
			`{"alg":"ES256","typ":"at+jwt","jwk":{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}}`,
			`{"alg":"ES256","jku":"` + issuer + `/keys"}`, `{"alg":"RS256","crit":["x"],"x":1}`,
		} {
			for _, sig := range []string{"", ".", "." + part("conformance")} {
				token := part(header) + "." + part(fmt.Sprintf(`{"iss":%q,"sub":"conformance","aud":%q,"iat":1,"exp":9999999999,"scope":"runs:read"}`, issuer, p.s.cfg.BaseURL)) + sig
				p.refused(p.get("/runs", "Authorization", "Bearer "+token), 401, "unauthenticated", "identity_unverified")
			}
		}
	}),

	must("lanes.challenge", "identity.md §2.5", "on a host with lanes of tokens a 401 points at the host's metadata, and says invalid_token exactly if a credential was presented", func(p *probe) {
		at := p.metadataURL()
		none := p.get("/runs", "Authorization", "")
		c := challengeOf(none.header)
		p.want(none.status == 401 && c["resource_metadata"] == at && c["error"] == "", "without a credential: %s, %q", none.brief(), none.header.Get("WWW-Authenticate"))
		bad := p.get("/runs", "Authorization", "Bearer "+nonce())
		c = challengeOf(bad.header)
		p.want(bad.status == 401 && c["resource_metadata"] == at && c["error"] == "invalid_token", "with a bad one: %s, %q", bad.brief(), bad.header.Get("WWW-Authenticate"))
	}).gated("auth"),

	must("lanes.no-oracle", "identity.md §2.5", "a refusal that is about another tenant's resource asks for no scope", func(p *probe) {
		for _, a := range p.onRun(foreignRun) {
			c := challengeOf(a.header)
			p.want(a.status == 403 || a.status == 404, "%s answered %s", a.line(), a.brief())
			p.want(c["error"] != "insufficient_scope" && c["scope"] == "", "%s: %q", a.line(), a.header.Get("WWW-Authenticate"))
		}
	}),

	must("lanes.metadata", "identity.md §2.5", "the metadata of the protected resource names the API, the issuers of its lanes of tokens and its scopes", func(p *probe) {
		at := p.metadataURL()
		u, err := url.Parse(at)
		p.want(err == nil && u.Host != "", "resource_metadata is %q", at)
		const inserted = "/.well-known/oauth-protected-resource"
		path, ok := strings.CutPrefix(u.EscapedPath(), inserted)
		p.want(ok, "%s is not at %s", at, inserted)
		a := p.ok(p.get(u.EscapedPath(), "Authorization", ""), 200, "")
		p.want(a.str("resource") == u.Scheme+"://"+u.Host+path, "the resource is %q, and its metadata at %q", a.str("resource"), at)
		var servers, scopes []string
		_ = json.Unmarshal(a.obj()["authorization_servers"], &servers)
		_ = json.Unmarshal(a.obj()["scopes_supported"], &scopes)
		var want []string
		dpop, cert := true, true
		for _, l := range p.tokenLanes() {
			for _, iss := range l.Issuers {
				if strings.Contains(iss, "://") {
					want = append(want, iss)
				}
			}
			dpop, cert = dpop && l.MinimumAssurance != "bearer", cert && l.MinimumAssurance != "bearer"
		}
		slices.Sort(servers)
		slices.Sort(want)
		p.want(slices.Equal(servers, slices.Compact(want)), "authorization_servers is %v, and the lanes trust %v", servers, want)
		p.want(len(scopes) > 0, "no scope is supported")
		p.want(dpop || string(a.obj()["dpop_bound_access_tokens_required"]) != "true", "DPoP is said to be required, and a lane takes bearers")
		p.want(cert || string(a.obj()["tls_client_certificate_bound_access_tokens"]) != "true", "certificates are said to be required, and a lane takes bearers")
	}).gated("auth"),
}

func part(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

func (p *probe) lanes() []lane {
	var list []lane
	_ = p.s.facet(&list, "auth", "lanes")
	return list
}

// tokenLanes are the lanes of tokens; without one the check does not apply.
func (p *probe) tokenLanes() []lane {
	list := slices.DeleteFunc(p.lanes(), func(l lane) bool { return l.Lane != "oauth2" && l.Lane != "oidc" })
	if len(list) == 0 {
		p.inapplicable("the host advertises neither an oauth2 nor an oidc lane")
	}
	return list
}

// metadataURL is where a challenge says that the metadata is.
func (p *probe) metadataURL() string {
	p.tokenLanes()
	a := p.get("/runs", "Authorization", "")
	at := challengeOf(a.header)["resource_metadata"]
	p.want(at != "", "the challenge %q names no metadata", a.header.Get("WWW-Authenticate"))
	return at
}

// challengeOf reads the parameters of a Bearer challenge; nil if there is none.
func challengeOf(h http.Header) map[string]string {
	rest, ok := strings.CutPrefix(h.Get("WWW-Authenticate"), "Bearer")
	if !ok {
		return nil
	}
	out := map[string]string{}
	for rest != "" {
		name, value, ok := strings.Cut(strings.TrimLeft(rest, " ,"), `="`)
		if !ok {
			break
		}
		value, rest, _ = strings.Cut(value, `"`)
		out[strings.ToLower(name)] = value
	}
	return out
}

// doubled asks with two Authorization headers.
func (p *probe) doubled(path string, credentials [2]string) (status int, code string) {
	r, err := http.NewRequestWithContext(p.ctx, http.MethodGet, p.s.cfg.BaseURL+path, nil)
	if err != nil {
		p.fail("%v", err)
	}
	r.Header.Set(versionHeader, "2")
	r.Header["Authorization"] = credentials[:]
	res, err := p.s.cfg.HTTPClient.Do(r)
	if err != nil {
		p.fail("GET %s with two credentials: no answer: %v", path, err)
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	a := answer{"GET", path, res.StatusCode, res.Header, b}
	p.keep(a)
	return a.status, a.code()
}
