package identity

import (
	"crypto"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/fermata-run/fermata/internal/problem"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"
)

// ProofHeader carries a proof of possession (RFC 9449).
const ProofHeader = "DPoP"

const (
	maxProof     = 4 << 10
	maxJTI       = 256
	proofAge     = 60 * time.Second // a proof older than this is none
	maxRemembers = 100_000          // proofs that were used
)

// proofs checks DPoP proofs, and that each is used once.
type proofs struct {
	base  string // public URL of the API, without a slash at its end
	skew  time.Duration
	now   func() time.Time
	begun time.Time

	mu   sync.Mutex
	used map[[32]byte]time.Time // until when it must be remembered
}

func newProofs(base string, skew time.Duration, now func() time.Time) *proofs {
	return &proofs{base: strings.TrimSuffix(base, "/"), skew: skew, now: now, begun: now(), used: map[[32]byte]time.Time{}}
}

// check asks that the request carries one fresh proof, made for this method, this
// address and this token with the key the token is bound to.
func (p *proofs) check(c *Credential, jkt string) error {
	values := c.HTTP.Header.Values(ProofHeader)
	if len(values) == 0 {
		return problem.New(problem.SenderConstraintMissing, "the credential is bound to a key, and the request carries no proof of it")
	}
	if len(values) > 1 || len(values[0]) > maxProof {
		return unverified(errors.New("more than one proof, or one too long"))
	}
	s, key, err := parseProof(values[0])
	if err != nil {
		return unverified(err)
	}
	thumb, err := key.Thumbprint(crypto.SHA256)
	if err != nil || subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(thumb)), []byte(jkt)) != 1 {
		return unverified(errors.New("the proof is of another key"))
	}
	cl, err := parseClaims(s.payload)
	if err != nil {
		return unverified(err)
	}
	if err := p.checkClaims(c, cl); err != nil {
		return unverified(err)
	}
	return p.once(jkt, cl.text("jti"))
}

// parseProof parses a proof and verifies it with the key it brings along: that is
// the one place where a token's own key counts, since it proves only itself.
func parseProof(proof string) (*signed, *jose.JSONWebKey, error) {
	s, err := parseSigned(proof, algorithms)
	if err != nil {
		return nil, nil, err
	}
	var key jose.JSONWebKey
	if s.header.JWK == nil || json.Unmarshal(s.header.JWK, &key) != nil || !usable(&key) || !fits(&key, s.header.Alg) {
		return nil, nil, errors.New("the proof brings no public key of its algorithm")
	}
	if s.header.Typ != "dpop+jwt" {
		return nil, nil, errors.New("the proof has another type")
	}
	return s, &key, s.verify(key)
}

func (p *proofs) checkClaims(c *Credential, cl claims) error {
	now := p.now()
	iat, ok := cl.at("iat")
	sum := sha256.Sum256([]byte(c.Token))
	jti := cl.text("jti")
	switch {
	case !ok || iat.Before(now.Add(-proofAge)) || iat.After(now.Add(p.skew)):
		return errors.New("the proof was not made just now")
	case iat.Before(p.begun.Truncate(time.Second)):
		// What was used before this process began is not known any more.
		return errors.New("the proof is older than this process")
	case jti == "" || len(jti) > maxJTI:
		return errors.New("the proof has no jti")
	case cl.text("htm") != c.HTTP.Method:
		return errors.New("the proof is for another method")
	case !sameTarget(cl.text("htu"), p.base+c.HTTP.URL.EscapedPath()):
		return errors.New("the proof is for another address")
	case subtle.ConstantTimeCompare([]byte(cl.text("ath")), []byte(base64.RawURLEncoding.EncodeToString(sum[:]))) != 1:
		return errors.New("the proof is for another token")
	}
	return nil
}

// sameTarget compares two addresses as RFC 9449 §4.3 says: without query and
// fragment, and normalised (RFC 3986 §6.2).
func sameTarget(a, b string) bool {
	x, errX := target(a)
	y, errY := target(b)
	return errX == nil && errY == nil && x == y
}

func target(s string) (string, error) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.User != nil {
		return "", errors.New("not an address")
	}
	scheme, host, port := strings.ToLower(u.Scheme), strings.ToLower(u.Hostname()), u.Port()
	if port == map[string]string{"http": "80", "https": "443"}[scheme] {
		port = ""
	}
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	return scheme + "://" + host + ":" + port + upperEscapes(path), nil
}

// upperEscapes writes %2f as %2F.
func upperEscapes(path string) string {
	b := []byte(path)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], strings.ToUpper(string(b[i+1:i+3])))
		}
	}
	return string(b)
}

// once remembers that a proof was used. If there are more than can be remembered,
// none is taken: to forget one would be to take it twice.
func (p *proofs) once(jkt, jti string) error {
	key := sha256.Sum256([]byte(jkt + "\x00" + jti))
	now := p.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if end, ok := p.used[key]; ok && now.Before(end) {
		return unverified(errors.New("the proof was used before"))
	}
	if len(p.used) >= maxRemembers {
		for k, end := range p.used {
			if !now.Before(end) {
				delete(p.used, k)
			}
		}
		if len(p.used) >= maxRemembers {
			e := problem.New(problem.ServiceUnavailable, "the host has too many proofs to remember")
			e.RetryAfter = proofAge
			return e
		}
	}
	// A proof from the future can come again for longer.
	p.used[key] = now.Add(proofAge + p.skew + time.Second)
	return nil
}
