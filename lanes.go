package fermata

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/fermata-run/fermata/internal/egress"
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/problem"
)

// Lanes are the ways in beside API keys. The zero value has none: whoever presents
// no key is refused.
type Lanes struct {
	// PublicURL is the base URL under which the world calls the API, such as
	// https://h.example/api. Lanes of tokens need it: it is whom proofs are made
	// for, and where the host describes itself (RFC 9728). Where it has a path, the
	// handler must also be reachable at /.well-known/oauth-protected-resource and
	// that path, at the root of the host.
	PublicURL string

	OIDC   *Tokens
	OAuth2 *Tokens
	MTLS   *ClientCertificates

	// Own are lanes of the embedder, asked before all others.
	Own []Lane

	// Allow admits private address ranges to issuers' servers. An issuer that is a
	// literal address in one may do without TLS, which relaxes a protection.
	Allow []netip.Prefix

	// RootCAs are the authorities that issuers' servers are held against; nil for
	// the system's.
	RootCAs *x509.CertPool
}

// Tokens is a lane of tokens that an OAuth 2.0 or OpenID Connect issuer signs;
// Issuer an issuer it trusts, Introspection where that is asked again.
type (
	Tokens        = identity.Tokens
	Issuer        = identity.Issuer
	Introspection = identity.Introspection
)

// ClientCertificates is the lane of certificates that clients connect with, and
// CertificateHolder a holder of them.
type (
	ClientCertificates = identity.Certificates
	CertificateHolder  = identity.Client
)

// Lane is an embedder's own way to authenticate. What it returns is held against
// what it says of itself here, which is also what discovery shows.
type Lane struct {
	// Name is session, ldap, workload, mtls, oidc or oauth2 (spec v2 identity.md
	// §2.2), and Revocation a rule that the protocol has for it.
	Name             string
	Revocation       string
	RevocationWindow time.Duration // where the rule names one
	MinimumAssurance string        // bearer, sender-constrained or key-bound

	// Issuers are the trust roots it may vouch for.
	Issuers []string

	// Claims says, by the form of a request alone, whether its credential is for
	// this lane. What a lane claims no other lane sees.
	Claims func(r *http.Request) bool

	// Authenticate verifies the credential. Any error refuses the request: one that
	// is ErrRevoked as a revoked credential, any other as one that does not stand up
	// to verification.
	Authenticate func(r *http.Request) (Identity, error)
}

// ErrRevoked is returned by a Lane for a credential that was good once.
var ErrRevoked = errors.New("the credential has been revoked")

// Identity is who makes a request, as a Lane has found out.
type Identity struct {
	Issuer    string // one of the lane's
	SubjectID string // stable and opaque; no slash or white space
	Tenant    string
	Kind      string // user, agent or workload
	Assurance string // what was proved: bearer, sender-constrained or key-bound
	Scopes    []string
	Groups    []string
	Roles     []string

	// Expires is when a stream that this identity opens must end; zero for never.
	Expires time.Time
}

// ownLane is the pipeline's view of an embedder's lane.
type ownLane struct{ l Lane }

func (o ownLane) Facet() identity.Facet {
	return identity.Facet{
		Lane: o.l.Name, Issuers: o.l.Issuers, Revocation: o.l.Revocation, MinimumAssurance: o.l.MinimumAssurance,
		WindowSeconds: int64(o.l.RevocationWindow / time.Second),
	}
}

func (o ownLane) Claims(c *identity.Credential) bool { return o.l.Claims(c.HTTP) }

func (o ownLane) Authenticate(_ context.Context, c *identity.Credential) (identity.Caller, error) {
	id, err := o.l.Authenticate(c.HTTP)
	if err != nil {
		p := problem.New(problem.IdentityUnverified, "the credential does not stand up to verification")
		if errors.Is(err, ErrRevoked) {
			p = problem.New(problem.CredentialRevoked, "the credential has been revoked")
		}
		p.Cause = err
		return identity.Caller{}, p
	}
	return identity.Caller{
		Subject:    event.Subject{Issuer: id.Issuer, SubjectID: id.SubjectID, Tenant: id.Tenant, Lane: o.l.Name, Kind: id.Kind},
		Scopes:     id.Scopes,
		Membership: identity.Membership{Groups: id.Groups, Roles: id.Roles, Source: o.l.Name},
		Assurance:  id.Assurance, Expires: id.Expires,
	}, nil
}

// pipeline puts the lanes together that callers come in by.
func (h *Host) pipeline() (*identity.Pipeline, error) {
	cfg := h.cfg.Lanes
	var own []identity.Lane
	for _, l := range cfg.Own {
		if l.Claims == nil || l.Authenticate == nil {
			return nil, fmt.Errorf("lane %s: it needs Claims and Authenticate", l.Name)
		}
		if l.Name == identity.LaneAPIKey || l.Name == "saml" || l.Name == "scim" {
			return nil, fmt.Errorf("lane %s: it cannot be an embedder's own", l.Name)
		}
		own = append(own, ownLane{l})
	}
	client := h.issuers.Client()
	return identity.Build(identity.Config{PublicURL: cfg.PublicURL, OIDC: cfg.OIDC, OAuth2: cfg.OAuth2, MTLS: cfg.MTLS},
		h.keys.Lane(), identity.Outside{Client: client, Check: h.mayCallIssuer}, h.clock.Now, own...)
}

// mayCallIssuer judges an address that the operator has named, so that names of an
// inner network are fine. What they resolve to is judged when it is called.
func (h *Host) mayCallIssuer(u *url.URL) error {
	_, err := netip.ParseAddr(u.Hostname())
	if u.Scheme != "https" || err == nil {
		return h.issuers.CheckRegistration(u)
	}
	return h.issuers.CheckURL(u)
}

// issuerGuard is the way out to issuers' servers.
func issuerGuard(l Lanes) *egress.Guard {
	return egress.New(egress.Options{
		AllowPrefixes: l.Allow, TLS: &tls.Config{RootCAs: l.RootCAs}, HeaderTimeout: 5 * time.Second,
		TotalTimeout: 10 * time.Second, MaxBodyBytes: 1 << 20,
	})
}
