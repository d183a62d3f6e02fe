package identity

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
)

// Authenticator turns a request into a caller, or refuses it.
type Authenticator interface {
	Authenticate(r *http.Request) (Caller, error)
}

// Pipeline is the one way in: every credential, whatever its lane, is verified,
// bound, checked for its audience and resolved to a Subject here, before anything
// is decided about the request (spec v2 identity.md §2.1). It fails closed.
type Pipeline struct {
	lanes    []Lane
	facets   []Facet
	resource *Resource
}

// NewPipeline makes a pipeline of lanes, which are asked in their order. It errs
// if a lane advertises what the protocol does not allow it. A nil resource is a
// host that is no OAuth protected resource.
func NewPipeline(resource *Resource, lanes ...Lane) (*Pipeline, error) {
	p := &Pipeline{lanes: lanes, resource: resource}
	for _, l := range lanes {
		f := l.Facet()
		if err := f.check(); err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(p.facets, func(o Facet) bool { return o.Lane == f.Lane }); i >= 0 {
			return nil, fmt.Errorf("lane %s: there are two of it", f.Lane)
		}
		if tokens(f.Lane) && resource == nil {
			return nil, fmt.Errorf("lane %s: it needs the public URL of the API", f.Lane)
		}
		p.facets = append(p.facets, f)
	}
	if resource != nil {
		resource.describe(p.facets)
	}
	return p, nil
}

// Facets are the lanes as discovery shows them.
func (p *Pipeline) Facets() []Facet { return p.facets }

// Resource describes the host as a protected resource; nil if it is none.
func (p *Pipeline) Resource() *Resource {
	if p.resource == nil || !slices.ContainsFunc(p.facets, func(f Facet) bool { return tokens(f.Lane) }) {
		return nil
	}
	return p.resource
}

// Authenticate implements Authenticator.
func (p *Pipeline) Authenticate(r *http.Request) (Caller, error) {
	c, err := presented(r)
	if err != nil {
		return Caller{}, err
	}
	for i, l := range p.lanes {
		if !l.Claims(c) {
			continue
		}
		caller, err := l.Authenticate(r.Context(), c)
		if err != nil {
			return Caller{}, err
		}
		return caller, resolved(&caller, &p.facets[i])
	}
	if c.Scheme == "" {
		return Caller{}, problem.New(problem.Unauthenticated, "a credential is required: send Authorization: Bearer <credential>")
	}
	return Caller{}, problem.New(problem.Unauthenticated, "no lane of this host takes such a credential")
}

// resolved holds what a lane has answered against what the lane advertises, so
// that no lane, an embedder's neither, lets in what discovery rules out.
func resolved(c *Caller, f *Facet) error {
	s := &c.Subject
	if assurances[c.Assurance] < assurances[f.MinimumAssurance] {
		return problem.New(problem.SenderConstraintMissing, "this lane takes no credential that is not %s", f.MinimumAssurance)
	}
	if s.Lane != f.Lane || !slices.Contains(f.Issuers, s.Issuer) || !ids.ValidSubject(s.SubjectID) || !ids.ValidTenant(s.Tenant) ||
		!slices.Contains(kinds, s.Kind) || strings.HasPrefix(s.Tenant, "anon:") {
		return problem.New(problem.IdentityUnresolvable, "the credential names nobody whom this host knows")
	}
	return nil
}

// kinds are the kinds of subjects that a credential can stand for.
var kinds = []string{"user", "agent", "workload"}

// revocations are the rules that each lane may advertise (identity.md §2.2), and
// windowed those that name a window.
var (
	revocations = map[string][]string{
		LaneAPIKey: {"next-request"}, "session": {"next-request"},
		LaneOAuth2: {RecheckedExp, ExpOnly}, LaneOIDC: {RecheckedExp, ExpOnly},
		LaneMTLS: {"crl", "ocsp", ShortLived}, "saml": {"not-on-or-after"}, "scim": {"bound-connection"},
		"ldap": {"rebind"}, "workload": {"delegation-expiry"},
	}
	windowed = []string{RecheckedExp, ExpOnly, ShortLived, "rebind"}
)

// Rules of revocation that lanes of this host may be configured with.
const (
	RecheckedExp = "exp-and-recheck"
	ExpOnly      = "exp-only"
	ShortLived   = "short-lived"
	CRL          = "crl"
)

func (f *Facet) check() error {
	switch {
	case !slices.Contains(revocations[f.Lane], f.Revocation):
		return fmt.Errorf("lane %s: the revocation rule %q is none of %v", f.Lane, f.Revocation, revocations[f.Lane])
	case slices.Contains(windowed, f.Revocation) && f.WindowSeconds < 1:
		return fmt.Errorf("lane %s: %s needs a window of at least one second", f.Lane, f.Revocation)
	case assurances[f.MinimumAssurance] == 0:
		return fmt.Errorf("lane %s: the minimum assurance %q is none of bearer, sender-constrained, key-bound", f.Lane, f.MinimumAssurance)
	case len(f.Issuers) == 0:
		return fmt.Errorf("lane %s: it trusts no issuer", f.Lane)
	}
	return nil
}

// tokens reports whether a lane takes tokens of an OAuth issuer.
func tokens(lane string) bool { return lane == LaneOAuth2 || lane == LaneOIDC }

// keyLane is the lane of API keys.
type keyLane struct{ keys *APIKeys }

// Lane is the pipeline's view of the keys. It claims every bearer credential, so
// it comes behind the lanes that know theirs by the form.
func (k *APIKeys) Lane() Lane { return keyLane{k} }

func (keyLane) Facet() Facet {
	return Facet{Lane: LaneAPIKey, Issuers: []string{KeyRealm}, Revocation: "next-request", MinimumAssurance: Bearer}
}

func (keyLane) Claims(c *Credential) bool { return c.Scheme == "bearer" }

func (l keyLane) Authenticate(ctx context.Context, c *Credential) (Caller, error) {
	caller, err := l.keys.Authenticate(ctx, "Bearer "+c.Token)
	caller.Assurance = Bearer
	return caller, err
}
