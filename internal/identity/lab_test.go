package identity_test

import (
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/identity/idptest"
	"github.com/fermata-run/fermata/internal/problem"
)

const base = "https://h.example/api"

// lab is a pipeline with an issuer of its own and a clock that tests move.
type lab struct {
	t    testing.TB
	idp  *idptest.IDP
	pipe *identity.Pipeline

	mu    sync.Mutex
	clock time.Time
}

func (l *lab) now() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.clock
}

func (l *lab) advance(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock = l.clock.Add(d)
}

func outside() identity.Outside {
	return identity.Outside{
		Client: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		Check: func(u *url.URL) error {
			if u.Scheme != "https" && u.Hostname() != "127.0.0.1" {
				return errors.New("not here")
			}
			return nil
		},
	}
}

// newLab makes a pipeline whose oauth2 lane trusts one issuer.
func newLab(t testing.TB, change func(*identity.Tokens)) *lab {
	t.Helper()
	return newLabOf(t, identity.LaneOAuth2, change)
}

func newLabOf(t testing.TB, lane string, change func(*identity.Tokens)) *lab {
	t.Helper()
	l := &lab{t: t, idp: idptest.New(t), clock: time.Now().Truncate(time.Second)}
	cfg := identity.Tokens{Audience: base, Issuers: []identity.Issuer{{Issuer: l.idp.URL, Tenant: "acme", GroupsClaim: "groups", RolesClaim: "realm_access.roles"}}}
	if lane == identity.LaneOAuth2 {
		cfg.Issuers[0].JWKS = l.idp.URL + "/keys"
	}
	if change != nil {
		change(&cfg)
	}
	c := identity.Config{PublicURL: base, OAuth2: &cfg}
	if lane == identity.LaneOIDC {
		c.OAuth2, c.OIDC = nil, &cfg
	}
	var err error
	if l.pipe, err = identity.Build(c, identity.NewAPIKeys(&memory{}).Lane(), outside(), l.now); err != nil {
		t.Fatal(err)
	}
	return l
}

// request is a request to the host, as its handler sees it.
func request(authorization ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1/runs/acme~2Frun?x=1", nil)
	for _, a := range authorization {
		r.Header.Add("Authorization", a)
	}
	return r
}

func (l *lab) standard() idptest.Claims { return l.idp.Standard(base, l.now()) }

// bearer presents a token.
func (l *lab) bearer(token string) (identity.Caller, error) {
	return l.pipe.Authenticate(request("Bearer " + token))
}

// refused asks that a request is refused with a code, and returns the cause.
func refused(t testing.TB, what string, err error, code problem.Code) {
	t.Helper()
	if !problem.Is(err, code) {
		t.Errorf("%s: want %s, got %v", what, code, err)
	}
}

func connection(certs ...*tls.Certificate) *tls.ConnectionState {
	s := &tls.ConnectionState{HandshakeComplete: true}
	for _, c := range certs {
		s.PeerCertificates = append(s.PeerCertificates, c.Leaf)
	}
	return s
}
