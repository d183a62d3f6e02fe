package identity_test

import (
	"crypto/ecdsa"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/identity/idptest"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/go-jose/go-jose/v4"
)

func publicJWK(t testing.TB, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	return must(json.Marshal(jose.JSONWebKey{Key: &key.PublicKey}))
}

const target = base + "/runs/acme~2Frun" // of the requests of these tests

func TestProofs(t *testing.T) {
	l := newLab(t, func(c *identity.Tokens) { c.MinimumAssurance = identity.SenderConstrained })
	h, other := idptest.NewHolder(), idptest.NewHolder()
	l.advance(2 * time.Minute) // so that an old proof is not one of an earlier process
	bound := l.standard().With(idptest.Claims{"cnf": map[string]any{"jkt": h.Thumbprint()}})
	token := l.idp.Token(bound)
	present := func(scheme, token string, proofs ...string) (identity.Caller, error) {
		r := request(scheme + " " + token)
		for _, p := range proofs {
			r.Header.Add("DPoP", p)
		}
		return l.pipe.Authenticate(r)
	}
	proof := func(header, claims map[string]any) string {
		return h.Proof("GET", target, token, l.now(), header, claims)
	}
	c, err := present("DPoP", token, proof(nil, nil))
	if err != nil || c.Assurance != identity.SenderConstrained {
		t.Fatalf("%+v, %v", c, err)
	}
	for _, htu := range []string{"HTTPS://H.example:443/api/runs/acme~2Frun", target + "?x=2#y"} {
		if _, err := present("dpop", token, proof(nil, map[string]any{"htu": htu})); err != nil {
			t.Errorf("%s: %v", htu, err)
		}
	}
	private := must(json.Marshal(jose.JSONWebKey{Key: h.Key()}))
	now := l.now()
	for name, p := range map[string]string{
		"another type":        proof(map[string]any{"typ": "JWT"}, nil),
		"no type":             proof(map[string]any{"typ": nil}, nil),
		"none":                proof(map[string]any{"alg": "none"}, nil),
		"a secret's alg":      proof(map[string]any{"alg": "HS256"}, nil),
		"no key":              proof(map[string]any{"jwk": nil}, nil),
		"a private key":       proof(map[string]any{"jwk": json.RawMessage(private)}, nil),
		"a secret key":        proof(map[string]any{"jwk": map[string]any{"kty": "oct", "k": "AAAA"}}, nil),
		"somebody else's key": other.Proof("GET", target, token, now, nil, nil),
		"a key not its own":   proof(map[string]any{"jwk": json.RawMessage(publicJWK(t, other.Key()))}, nil),
		"another method":      proof(nil, map[string]any{"htm": "POST"}),
		"method in lower case": proof(nil, map[string]any{
			"htm": "get",
		}),
		"another path":     proof(nil, map[string]any{"htu": base + "/runs"}),
		"another host":     proof(nil, map[string]any{"htu": "https://evil.example/api/runs/acme~2Frun"}),
		"another scheme":   proof(nil, map[string]any{"htu": strings.Replace(target, "https", "http", 1)}),
		"another token":    h.Proof("GET", target, token+"x", now, nil, nil),
		"no ath":           proof(nil, map[string]any{"ath": nil}),
		"no jti":           proof(nil, map[string]any{"jti": nil}),
		"jti too long":     proof(nil, map[string]any{"jti": strings.Repeat("j", 300)}),
		"no iat":           proof(nil, map[string]any{"iat": nil}),
		"old":              proof(nil, map[string]any{"iat": now.Add(-61 * time.Second).Unix()}),
		"from the future":  proof(nil, map[string]any{"iat": now.Add(31 * time.Second).Unix()}),
		"not a proof":      "x.y.z",
		"too long":         proof(nil, map[string]any{"x": strings.Repeat("x", 5000)}),
		"crit in a header": proof(map[string]any{"crit": []string{"jwk"}}, nil),
	} {
		_, err := present("DPoP", token, p)
		refused(t, name, err, problem.IdentityUnverified)
	}
	_, err = present("DPoP", token, proof(nil, nil), proof(nil, nil))
	refused(t, "two proofs", err, problem.IdentityUnverified)

	// No way down to a plain bearer.
	_, err = present("DPoP", token)
	refused(t, "no proof", err, problem.SenderConstraintMissing)
	_, err = present("Bearer", token, proof(nil, nil))
	refused(t, "as a bearer", err, problem.SenderConstraintMissing)
	loose := l.idp.Token(l.standard())
	_, err = present("Bearer", loose)
	refused(t, "an unbound token below the floor", err, problem.SenderConstraintMissing)
	_, err = present("DPoP", loose, h.Proof("GET", target, loose, now, nil, nil))
	refused(t, "an unbound token with a proof", err, problem.SenderConstraintMissing)
	_, err = present("DPoP", identity.Generate(), proof(nil, nil))
	refused(t, "an API key", err, problem.IdentityUnverified)
}

// A bearer never gets to be called sender-constrained, on a lane that takes bearers
// neither.
func TestAnUnboundTokenGainsNothingByAProof(t *testing.T) {
	l := newLab(t, nil)
	h := idptest.NewHolder()
	token := l.idp.Token(l.standard())
	r := request("DPoP " + token)
	r.Header.Set("DPoP", h.Proof("GET", target, token, l.now(), nil, nil))
	_, err := l.pipe.Authenticate(r)
	refused(t, "with the scheme DPoP", err, problem.SenderConstraintMissing)
	r = request("Bearer " + token)
	r.Header.Set("DPoP", h.Proof("GET", target, token, l.now(), nil, nil))
	if c, err := l.pipe.Authenticate(r); err != nil || c.Assurance != identity.Bearer {
		t.Errorf("as a bearer: %+v, %v", c, err)
	}
}

// A proof is good for one request, for as long as its iat could be taken.
func TestProofsAreUsedOnce(t *testing.T) {
	l := newLab(t, nil)
	h := idptest.NewHolder()
	token := l.idp.Token(l.standard().With(idptest.Claims{"cnf": map[string]any{"jkt": h.Thumbprint()}}))
	early := h.Proof("GET", target, token, l.now().Add(-time.Second), nil, nil)
	present := func(p string) error {
		r := request("DPoP " + token)
		r.Header.Set("DPoP", p)
		_, err := l.pipe.Authenticate(r)
		return err
	}
	refused(t, "from before this process", present(early), problem.IdentityUnverified)
	ahead := h.Proof("GET", target, token, l.now().Add(29*time.Second), nil, nil)
	if err := present(ahead); err != nil {
		t.Fatal(err)
	}
	for range 9 {
		refused(t, "again", present(ahead), problem.IdentityUnverified)
		l.advance(10 * time.Second) // as long as its iat is fresh, and beyond
	}
}

// Of many requests with one proof at the same time, one gets in.
func TestOneProofAtOnce(t *testing.T) {
	l := newLab(t, nil)
	h := idptest.NewHolder()
	token := l.idp.Token(l.standard().With(idptest.Claims{"cnf": map[string]any{"jkt": h.Thumbprint()}}))
	p := h.Proof("GET", target, token, l.now(), nil, nil)
	results := make(chan error, 16)
	for range 16 {
		go func() {
			r := request("DPoP " + token)
			r.Header.Set("DPoP", p)
			_, err := l.pipe.Authenticate(r)
			results <- err
		}()
	}
	in := 0
	for range 16 {
		if err := <-results; err == nil {
			in++
		} else if !problem.Is(err, problem.IdentityUnverified) {
			t.Error(err)
		}
	}
	if in != 1 || l.idp.Hits("/keys") != 1 {
		t.Errorf("%d got in, keys were fetched %d times", in, l.idp.Hits("/keys"))
	}
}
