package identity

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/fermata-run/fermata/internal/problem"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// How long what an issuer says of itself is relied on.
const (
	keysFresh = 10 * time.Minute // then they are fetched again
	keysStale = time.Hour        // of an issuer that does not answer; then nobody gets in
	keysPause = 10 * time.Second // between two fetches, whatever the tokens ask for
	maxKeys   = 100
	maxTries  = 16 // keys that one token is held against
)

// keySource holds the public keys of one issuer. A token with a key that is not
// known makes it look again, but not more often than keysPause allows: unknown
// keys cost an attacker nothing.
type keySource struct {
	issuer *Issuer
	lane   string
	out    Outside
	now    func() time.Time

	fetching sync.Mutex // held by the one who fetches

	mu    sync.Mutex // guards what follows
	keys  []jose.JSONWebKey
	got   time.Time // when the keys were fetched
	tried time.Time // when that was last tried
	fault error     // of the last try
	jwks  string    // where they are, once known
}

// find returns the keys a token may be signed with: of its name, or all if it
// names none.
func (k *keySource) find(ctx context.Context, h *header) ([]jose.JSONWebKey, error) {
	keys, age := k.known(h)
	if age >= keysFresh || len(keys) == 0 {
		k.refresh(ctx, age >= keysStale)
		keys, age = k.known(h)
	}
	if age >= keysStale {
		k.mu.Lock()
		defer k.mu.Unlock()
		p := problem.New(problem.ServiceUnavailable, "the keys of the credential's issuer cannot be had now")
		p.Cause, p.RetryAfter = k.fault, keysPause
		return nil, p
	}
	return keys, nil
}

// known returns what is at hand, and how old it is.
func (k *keySource) known(h *header) ([]jose.JSONWebKey, time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.got.IsZero() {
		return nil, keysStale
	}
	var out []jose.JSONWebKey
	for _, key := range k.keys {
		if len(out) < maxTries && (h.Kid == "" || key.KeyID == h.Kid) && fits(&key, h.Alg) {
			out = append(out, key)
		}
	}
	return out, k.now().Sub(k.got)
}

// refresh fetches the keys again, unless that was tried a moment ago or somebody
// is at it. Only who cannot do without waits for that.
func (k *keySource) refresh(ctx context.Context, wait bool) {
	if wait {
		k.fetching.Lock()
	} else if !k.fetching.TryLock() {
		return
	}
	defer k.fetching.Unlock()
	k.mu.Lock()
	now := k.now()
	soon := !k.tried.IsZero() && now.Sub(k.tried) < keysPause
	if !soon {
		k.tried = now
	}
	jwks := k.jwks
	k.mu.Unlock()
	if soon {
		return
	}
	keys, jwks, err := k.fetch(context.WithoutCancel(ctx), jwks)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fault = err; err == nil {
		k.keys, k.jwks, k.got = keys, jwks, now
	}
}

func (k *keySource) fetch(ctx context.Context, jwks string) ([]jose.JSONWebKey, string, error) {
	if jwks == "" {
		jwks = k.issuer.JWKS
	}
	if jwks == "" {
		var err error
		if jwks, err = k.discover(ctx); err != nil {
			return nil, "", err
		}
	}
	var doc struct {
		Keys []jsontext.Value `json:"keys"`
	}
	if err := k.out.get(ctx, jwks, &doc); err != nil {
		return nil, "", err
	}
	if len(doc.Keys) > maxKeys {
		return nil, "", errors.New("the issuer has too many keys")
	}
	var keys []jose.JSONWebKey
	for _, raw := range doc.Keys {
		var key jose.JSONWebKey
		// A key of a kind that is not known here is somebody else's.
		if json.Unmarshal(raw, &key) == nil && usable(&key) {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil, "", errors.New("the issuer has no key to verify with")
	}
	return keys, jwks, nil
}

// discover asks the issuer's metadata where its keys are (OpenID Connect Discovery
// §4, RFC 8414 §3). Metadata of another issuer is no answer.
func (k *keySource) discover(ctx context.Context) (string, error) {
	var last error
	for _, address := range k.places() {
		var doc struct {
			Issuer string `json:"issuer"`
			JWKS   string `json:"jwks_uri"`
		}
		if last = k.out.get(ctx, address, &doc); last != nil {
			continue
		}
		if doc.Issuer != k.issuer.Issuer {
			return "", errors.New("the metadata is of another issuer")
		}
		if err := k.issuer.mayCall(k.out, doc.JWKS); err != nil {
			return "", errors.New("the metadata names keys at an address that may not be called: " + err.Error())
		}
		return doc.JWKS, nil
	}
	return "", last
}

func (k *keySource) places() []string {
	iss := strings.TrimSuffix(k.issuer.Issuer, "/")
	openid := iss + "/.well-known/openid-configuration"
	if k.lane == LaneOIDC {
		return []string{openid}
	}
	scheme, rest, _ := strings.Cut(iss, "://")
	host, path, _ := strings.Cut(rest, "/")
	if path != "" {
		path = "/" + path
	}
	return []string{scheme + "://" + host + "/.well-known/oauth-authorization-server" + path, openid}
}

// usable reports whether a key is one to verify signatures with: public, strong
// enough and meant for it.
func usable(k *jose.JSONWebKey) bool {
	if !k.Valid() || !k.IsPublic() || k.Use != "" && k.Use != "sig" {
		return false
	}
	rs, ok := k.Key.(*rsa.PublicKey)
	return !ok || rs.N.BitLen() >= 2048 && rs.N.BitLen() <= 8192
}

// fits reports whether a key may check a signature of an algorithm. The key says
// which, by its kind and its alg: never the token alone.
func fits(k *jose.JSONWebKey, alg string) bool {
	if k.Algorithm != "" && k.Algorithm != alg {
		return false
	}
	switch key := k.Key.(type) {
	case *rsa.PublicKey:
		return strings.HasPrefix(alg, "RS") || strings.HasPrefix(alg, "PS")
	case *ecdsa.PublicKey:
		return map[int]string{256: "ES256", 384: "ES384", 521: "ES512"}[key.Curve.Params().BitSize] == alg
	case ed25519.PublicKey:
		return alg == "EdDSA"
	}
	return false
}
