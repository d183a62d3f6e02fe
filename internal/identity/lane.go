package identity

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/fermata-run/fermata/internal/problem"
)

// Lane is one way to prove who is calling (spec v2 identity.md §2). A lane
// verifies a credential against its trust root, binds it to this very request,
// checks whom it was made for and says which Subject it means. It decides nothing
// about what that Subject may do.
type Lane interface {
	// Facet is the lane as discovery shows it. It must hold what the lane enforces.
	Facet() Facet

	// Claims reports, by the form of what was presented alone, whether it is for
	// this lane. The first lane that claims a credential is the only one that sees
	// it: what one lane refuses, no weaker one is asked about.
	Claims(c *Credential) bool

	// Authenticate resolves a credential that the lane has claimed. Every refusal
	// is a problem.Error; any other error is the host's and lets nobody in.
	Authenticate(ctx context.Context, c *Credential) (Caller, error)
}

// Facet is a member of auth.lanes[] (spec v2 facets/auth.schema.json).
type Facet struct {
	Lane             string   `json:"lane"`
	Issuers          []string `json:"issuers"`
	Revocation       string   `json:"revocation"`
	WindowSeconds    int64    `json:"revocationWindowSeconds,omitzero"`
	MinimumAssurance string   `json:"minimumAssurance"`
	DelegationProofs []string `json:"delegationProofs,omitempty"`
}

// Names of the lanes that are built in.
const (
	LaneAPIKey = "api-key"
	LaneOAuth2 = "oauth2"
	LaneOIDC   = "oidc"
	LaneMTLS   = "mtls"
)

// How strongly a request is tied to who made it, weakest first (identity.md §2.3).
const (
	Bearer            = "bearer"             // whoever holds it may use it
	SenderConstrained = "sender-constrained" // bound to a key by a proof in the request
	KeyBound          = "key-bound"          // bound to the key of the connection
)

var assurances = map[string]int{Bearer: 1, SenderConstrained: 2, KeyBound: 3}

// Credential is what a request presents. Nothing in it comes from a header that
// only asserts an identity: names of users, tenants or certificates that a proxy
// has added are not looked at.
type Credential struct {
	Scheme string // of the Authorization header, in lower case; empty if there was none
	Token  string
	HTTP   *http.Request
}

// maxToken bounds what any lane looks at, in bytes.
const maxToken = 16 << 10

// presented takes the credential out of a request.
func presented(r *http.Request) (*Credential, error) {
	c := &Credential{HTTP: r}
	switch values := r.Header.Values("Authorization"); {
	case len(values) > 1:
		// Which of them somebody in between has looked at, nobody knows.
		return nil, problem.New(problem.Unauthenticated, "send one Authorization header")
	case len(values) == 0 || values[0] == "":
		return c, nil
	case len(values[0]) > maxToken:
		return nil, problem.New(problem.Unauthenticated, "the credential has more than %d bytes", maxToken)
	default:
		scheme, token, _ := strings.Cut(values[0], " ")
		c.Scheme, c.Token = strings.ToLower(scheme), token
	}
	if c.Token == "" || strings.ContainsFunc(c.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, problem.New(problem.Unauthenticated, "the Authorization header is not one credential behind its scheme")
	}
	return c, nil
}

// certified reports whether the connection was made with a client certificate.
// Its holder has proved the key in the handshake; whether the certificate is one
// to trust is for the lane.
func (c *Credential) certified() bool {
	return c.HTTP.TLS != nil && len(c.HTTP.TLS.PeerCertificates) > 0
}

// Presented reports whether a request carries a credential of any kind.
func Presented(r *http.Request) bool {
	return len(r.Header.Values("Authorization")) > 0 || (&Credential{HTTP: r}).certified()
}

// until is the end of a caller whose lane names one.
func until(ends ...time.Time) time.Time {
	var first time.Time
	for _, t := range ends {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	return first
}
