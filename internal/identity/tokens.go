package identity

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fermata-run/fermata/internal/problem"
)

// Tokens configures a lane of signed tokens, oauth2 or oidc.
type Tokens struct {
	// Audience is whom tokens must be made for: exactly this, byte by byte.
	Audience string `json:"audience"`

	// Revocation is exp-only or exp-and-recheck, exp-only if empty. Window bounds
	// how long after a revocation a token may still be taken: one hour if zero.
	Revocation string        `json:"revocation"`
	Window     time.Duration `json:"revocation-window"`

	// MinimumAssurance is bearer, sender-constrained or key-bound; bearer if empty.
	MinimumAssurance string `json:"minimum-assurance"`

	// Skew is how far an issuer's clock may run ahead of the host's; 30 s if zero.
	// It delays no expiry: exp is honoured to the second.
	Skew time.Duration `json:"clock-skew"`

	Issuers []Issuer `json:"issuers"`
}

// Bounds of what may be configured.
const (
	defaultWindow = time.Hour
	maxWindow     = 24 * time.Hour
	defaultSkew   = 30 * time.Second
	maxSkew       = 5 * time.Minute
	maxIssuers    = 50

	// cachedFor bounds how long a token that was verified is not verified again, so
	// that a key its issuer has withdrawn does not outlive the copy of the keys.
	cachedFor = keysFresh
)

// tokenLane takes tokens that an issuer has signed.
type tokenLane struct {
	name    string
	cfg     Tokens
	issuers map[string]*trusted
	rest    bool // also takes tokens of issuers that no lane trusts, to refuse them
	cache   *cache
	dpop    *proofs
	now     func() time.Time
}

// trusted is an issuer with its keys.
type trusted struct {
	*Issuer
	keys *keySource
	out  Outside
}

// newTokenLane makes the oauth2 or the oidc lane. Base is the public URL of the
// API, against which proofs are checked.
func newTokenLane(name string, cfg Tokens, base string, out Outside, now func() time.Time) (*tokenLane, error) {
	if err := cfg.prepare(name); err != nil {
		return nil, fmt.Errorf("lane %s: %w", name, err)
	}
	l := &tokenLane{name: name, cfg: cfg, issuers: map[string]*trusted{}, now: now, cache: newCache(now), dpop: newProofs(base, cfg.Skew, now)}
	for n := range cfg.Issuers {
		i := cfg.Issuers[n]
		if err := i.prepare(out, cfg.Revocation == RecheckedExp); err != nil {
			return nil, fmt.Errorf("lane %s: %w", name, err)
		}
		if l.issuers[i.Issuer] != nil {
			return nil, fmt.Errorf("lane %s: issuer %q is there twice", name, i.Issuer)
		}
		l.issuers[i.Issuer] = &trusted{Issuer: &i, out: out, keys: &keySource{issuer: &i, lane: name, out: out, now: now}}
	}
	return l, nil
}

func (t *Tokens) prepare(name string) error {
	if t.Revocation == "" {
		t.Revocation = ExpOnly
	}
	if t.Window == 0 {
		t.Window = defaultWindow
	}
	if t.Skew == 0 {
		t.Skew = defaultSkew
	}
	if t.MinimumAssurance == "" {
		t.MinimumAssurance = Bearer
	}
	switch {
	case !tokens(name):
		return fmt.Errorf("it takes no tokens")
	case t.Audience == "":
		return fmt.Errorf("audience: say whom tokens must be made for")
	case t.Window < time.Second || t.Window > maxWindow || t.Window%time.Second != 0:
		return fmt.Errorf("revocation-window: %s is not whole seconds from 1s to %s", t.Window, maxWindow)
	case t.Skew < 0 || t.Skew > maxSkew:
		return fmt.Errorf("clock-skew: %s is not from 0s to %s", t.Skew, maxSkew)
	case len(t.Issuers) == 0 || len(t.Issuers) > maxIssuers:
		return fmt.Errorf("issuers: name 1 to %d", maxIssuers)
	}
	return nil
}

// Facet implements Lane.
func (l *tokenLane) Facet() Facet {
	f := Facet{
		Lane: l.name, Revocation: l.cfg.Revocation, WindowSeconds: int64(l.cfg.Window / time.Second),
		MinimumAssurance: l.cfg.MinimumAssurance, DelegationProofs: []string{ProofDPoP, ProofMTLS},
	}
	if l.cfg.MinimumAssurance == KeyBound {
		f.DelegationProofs = []string{ProofMTLS}
	}
	for _, i := range l.cfg.Issuers {
		f.Issuers = append(f.Issuers, i.Issuer)
	}
	return f
}

// Claims implements Lane. A signed token goes to the lane that trusts its issuer,
// and to the last lane of tokens if none does: it is an API key to nobody.
func (l *tokenLane) Claims(c *Credential) bool {
	if c.Scheme != "dpop" && (c.Scheme != "bearer" || !compact(c.Token)) {
		return false
	}
	return l.rest || l.issuers[statedIssuer(c.Token)] != nil
}

// statedIssuer is what a token says of itself, before anything is verified. It
// picks the lane that must verify it.
func statedIssuer(token string) string {
	_, rest, _ := strings.Cut(token, ".")
	payload, _, _ := strings.Cut(rest, ".")
	b, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return ""
	}
	cl, err := parseClaims(b)
	if err != nil {
		return ""
	}
	return cl.text("iss")
}

// verified is a token that has been verified, and what is asked of every request
// that presents it.
type verified struct {
	caller    Caller
	jkt       string // thumbprint of the key that must prove itself; empty for none
	x5t       string // thumbprint of the certificate the connection must have
	delegated bool
	ends      time.Time // when it is over, or its issuer must be asked again
	until     time.Time // when it must be verified again: then or earlier
}

func unverified(cause error) error {
	p := problem.New(problem.IdentityUnverified, "the credential does not stand up to verification")
	p.Cause = cause
	return p
}

// Authenticate implements Lane.
func (l *tokenLane) Authenticate(ctx context.Context, c *Credential) (Caller, error) {
	if !compact(c.Token) {
		return Caller{}, unverified(fmt.Errorf("not a signed token"))
	}
	v, err := l.cache.get(ctx, sha256.Sum256([]byte(c.Token)), func(ctx context.Context) (*verified, error) {
		return l.verify(ctx, c.Token)
	})
	if err != nil {
		return Caller{}, err
	}
	caller := v.caller
	caller.Expires = v.ends
	caller.Assurance, err = l.bind(c, v)
	return caller, err
}

// verify does all that depends on the token alone.
func (l *tokenLane) verify(ctx context.Context, token string) (*verified, error) {
	s, err := parseSigned(token, algorithms)
	if err != nil {
		return nil, unverified(err)
	}
	cl, err := parseClaims(s.payload)
	if err != nil {
		return nil, unverified(err)
	}
	iss := l.issuers[cl.text("iss")]
	if iss == nil {
		return nil, unverified(fmt.Errorf("the issuer is not trusted"))
	}
	if !slices.Contains(iss.Algorithms, s.header.Alg) || !slices.Contains(iss.Types, mediaType(s.header.Typ)) {
		return nil, unverified(fmt.Errorf("the issuer's tokens have another algorithm or type"))
	}
	if err := iss.checkSignature(ctx, s); err != nil {
		return nil, err
	}
	v := &verified{}
	if v.ends, err = l.checkTimes(cl); err != nil {
		return nil, err
	}
	if err := l.checkAudience(cl, &s.header); err != nil {
		return nil, err
	}
	if v.jkt, v.x5t, err = bindings(cl); err != nil {
		return nil, err
	}
	if v.caller, err = iss.resolve(l.name, cl); err != nil {
		return nil, err
	}
	v.delegated = v.caller.Subject.Actor != nil
	if l.cfg.Revocation == RecheckedExp {
		asked := l.now()
		if err := iss.recheck(ctx, token); err != nil {
			return nil, err
		}
		v.ends = until(v.ends, asked.Add(l.cfg.Window))
	}
	v.until = until(v.ends, l.now().Add(cachedFor))
	return v, nil
}

func (t *trusted) checkSignature(ctx context.Context, s *signed) error {
	keys, err := t.keys.find(ctx, &s.header)
	if err != nil {
		return err
	}
	for _, k := range keys {
		if s.verify(k) == nil {
			return nil
		}
	}
	return unverified(fmt.Errorf("none of %d keys of the issuer has signed it", len(keys)))
}

// checkTimes holds exp, iat and nbf against the clock, and on an exp-only lane
// against the window (identity.md §2.2): both bounds, since neither implies the
// other. It returns exp.
func (l *tokenLane) checkTimes(cl claims) (time.Time, error) {
	now := l.now()
	exp, ok := cl.at("exp")
	if !ok {
		return exp, unverified(fmt.Errorf("it has no exp"))
	}
	if !now.Before(exp) {
		if cl["act"] != nil {
			return exp, problem.New(problem.DelegationExpired, "the delegated credential is past its lifetime")
		}
		return exp, unverified(fmt.Errorf("it has expired"))
	}
	iat, dated := cl.at("iat")
	if l.cfg.Revocation == ExpOnly && (!dated || exp.Sub(iat) > l.cfg.Window || exp.Sub(now) > l.cfg.Window) {
		return exp, problem.New(problem.CredentialLifetimeExceeded,
			"this lane takes no credential that is good for more than %d seconds from its iat or from now", int64(l.cfg.Window/time.Second)).
			With("revocationWindowSeconds", int64(l.cfg.Window/time.Second))
	}
	early := now.Add(l.cfg.Skew)
	if nbf, ok := cl.at("nbf"); dated && iat.After(early) || ok && nbf.After(early) || cl["nbf"] != nil && !ok || cl["iat"] != nil && !dated {
		return exp, unverified(fmt.Errorf("it is not valid yet"))
	}
	return exp, nil
}

// checkAudience asks that the token was made for this host. An ID token that was
// made for anybody else beside it is not a credential here (identity.md §2.1).
func (l *tokenLane) checkAudience(cl claims, h *header) error {
	aud, ok := cl.texts("aud")
	wrong := !ok || !slices.Contains(aud, l.cfg.Audience)
	if l.name == LaneOIDC && mediaType(h.Typ) != "at+jwt" {
		wrong = wrong || len(aud) != 1
	}
	if wrong {
		return problem.New(problem.AudienceMismatch, "the credential was not made for this host")
	}
	return nil
}

// bindings reads the keys a token is bound to (RFC 9449 §6, RFC 8705 §3.1). One
// that is bound in a way not known here is refused rather than taken for unbound.
func bindings(cl claims) (jkt, x5t string, err error) {
	raw := cl["cnf"]
	if raw == nil {
		return "", "", nil
	}
	cnf, err := parseClaims(raw)
	if err != nil || len(cnf) == 0 {
		return "", "", unverified(fmt.Errorf("its cnf is not an object"))
	}
	for name := range cnf {
		v, ok := cnf.texts(name)
		if name != "jkt" && name != "x5t#S256" || !ok || len(v) != 1 || strings.TrimSpace(v[0]) == "" {
			return "", "", unverified(fmt.Errorf("it is bound in a way that is not known here"))
		}
	}
	return cnf.text("jkt"), cnf.text("x5t#S256"), nil
}
