package idptest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Claims are the claims of a token.
type Claims map[string]any

// IDP is an identity provider.
type IDP struct {
	URL string // its issuer

	mu       sync.Mutex
	keys     []jose.JSONWebKey // private; the newest is last
	revoked  map[string]bool
	hits     map[string]int // requests by path
	down     bool
	metadata map[string]any
	serial   int
}

// New starts a provider with one key. It ends with the test.
func New(t testing.TB) *IDP {
	t.Helper()
	p := &IDP{revoked: map[string]bool{}, hits: map[string]int{}}
	srv := httptest.NewServer(p)
	t.Cleanup(srv.Close)
	p.URL = srv.URL
	p.metadata = map[string]any{"issuer": p.URL, "jwks_uri": p.URL + "/keys"}
	p.Rotate()
	return p
}

// Rotate replaces the keys by a new one, and returns its name.
func (p *IDP) Rotate() string {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.serial++
	k := jose.JSONWebKey{Key: key, KeyID: "key-" + strconv.Itoa(p.serial), Algorithm: "ES256", Use: "sig"}
	p.keys = []jose.JSONWebKey{k}
	return k.KeyID
}

// Key is the newest key, with its private part.
func (p *IDP) Key() jose.JSONWebKey {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keys[len(p.keys)-1]
}

// Down lets the provider answer nothing but errors, or mends it.
func (p *IDP) Down(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
}

// Metadata changes a member of what the provider says of itself.
func (p *IDP) Metadata(name string, value any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.metadata[name] = value
}

// Revoke lets introspection say no to a token.
func (p *IDP) Revoke(token string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.revoked[token] = true
}

// Hits counts the requests to a path.
func (p *IDP) Hits(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hits[path]
}

// ServeHTTP implements http.Handler.
func (p *IDP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hits[r.URL.Path]++
	if p.down {
		http.Error(w, "down", http.StatusInternalServerError)
		return
	}
	var answer any
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		answer = p.metadata
	case "/keys":
		set := jose.JSONWebKeySet{}
		for _, k := range p.keys {
			set.Keys = append(set.Keys, k.Public())
		}
		answer = set
	case "/introspect":
		if id, secret, ok := r.BasicAuth(); !ok || id != "host" || secret != "introspection-secret" || r.Method != http.MethodPost {
			http.Error(w, "who?", http.StatusUnauthorized)
			return
		}
		answer = map[string]any{"active": !p.revoked[r.PostFormValue("token")]}
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// Standard are the claims of a token that a host with this audience takes.
func (p *IDP) Standard(audience string, now time.Time) Claims {
	return Claims{
		"iss": p.URL, "sub": "ann", "aud": audience, "iat": now.Unix(), "exp": now.Add(10 * time.Minute).Unix(),
		"scope": "runs:create runs:read manifest:read",
	}
}

// With is a copy of claims with others; a nil value leaves one out.
func (c Claims) With(more Claims) Claims {
	out := maps.Clone(c)
	for k, v := range more {
		if v == nil {
			delete(out, k)
		} else {
			out[k] = v
		}
	}
	return out
}

// Token signs claims with the newest key. Header members replace the usual ones.
func (p *IDP) Token(c Claims, header ...map[string]any) string {
	k := p.Key()
	h := map[string]any{"alg": "ES256", "typ": "at+jwt", "kid": k.KeyID}
	for _, more := range header {
		maps.Copy(h, more)
	}
	return Sign(k.Key.(*ecdsa.PrivateKey), h, c)
}

// Sign makes a token in compact form, signed with ES256 whatever its header says.
func Sign(key *ecdsa.PrivateKey, header, payload any) string {
	input := part(header) + "." + part(payload)
	sum := sha256.Sum256([]byte(input))
	r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
	if err != nil {
		panic(err)
	}
	var sig [64]byte
	r.FillBytes(sig[:32])
	s.FillBytes(sig[32:])
	return input + "." + base64.RawURLEncoding.EncodeToString(sig[:])
}

func part(v any) string {
	b, ok := v.([]byte)
	if !ok {
		var err error
		if b, err = json.Marshal(v); err != nil {
			panic(err)
		}
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// Holder proves the possession of a key (RFC 9449).
type Holder struct {
	key *ecdsa.PrivateKey
	jwk jose.JSONWebKey
}

// NewHolder makes a key.
func NewHolder() *Holder {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return &Holder{key: key, jwk: jose.JSONWebKey{Key: &key.PublicKey}}
}

// Thumbprint is what cnf.jkt holds for the key.
func (h *Holder) Thumbprint() string {
	sum, err := h.jwk.Thumbprint(crypto.SHA256)
	if err != nil {
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(sum)
}

// Key is the private key.
func (h *Holder) Key() *ecdsa.PrivateKey { return h.key }

// Proof makes a proof for a request with a token. Header and claims replace the
// usual ones; a nil value leaves one out.
func (h *Holder) Proof(method, address, token string, now time.Time, header, claims map[string]any) string {
	sum := sha256.Sum256([]byte(token))
	head := Claims{"typ": "dpop+jwt", "alg": "ES256", "jwk": h.jwk}.With(header)
	body := Claims{
		"jti": rand.Text(), "htm": method, "htu": address, "iat": now.Unix(), "ath": base64.RawURLEncoding.EncodeToString(sum[:]),
	}.With(claims)
	return Sign(h.key, head, body)
}
