package conformance

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// signedMembers is what an attestation covers, in the order the bundle names it
// (spec v2 conformance.md §Bundle v3).
var signedMembers = []string{"witnessSha256", "host.build", "suite.version", "discovery.sha256"}

// canonical writes a value as the one JSON text that stands for it (RFC 8785).
func canonical(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return canonicalText(b.Bytes())
}

func canonicalText(text []byte) ([]byte, error) {
	c := jsontext.Value(bytes.Clone(text))
	if err := c.Canonicalize(); err != nil {
		return nil, err
	}
	return c, nil
}

func digestOf(v any) (string, error) {
	b, err := canonical(v)
	if err != nil {
		return "", err
	}
	return hexSum(b), nil
}

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// attested is the text that is signed.
func (b *Bundle) attested() ([]byte, error) {
	return canonical(map[string]any{
		"witnessSha256": b.WitnessSHA256, "host.build": b.Host.Build,
		"suite.version": b.Suite.Version, "discovery.sha256": b.Discovery.SHA256,
	})
}

// KeyID names an Ed25519 key where nobody has given it a name: the first 32 hex
// digits of the SHA-256 of its 32 bytes.
func KeyID(public ed25519.PublicKey) string { return hexSum(public)[:32] }

// NewSigningKey makes an Ed25519 key as PEM: the private part (PKCS #8), for
// Certify, and the public part (SPKI), which the host publishes.
func NewSigningKey() (private, public []byte, err error) {
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	pkcs, err := x509.MarshalPKCS8PrivateKey(priv)
	if err != nil {
		return nil, nil, err
	}
	spki, err := x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs}),
		pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: spki}), nil
}

// Signer signs bundles.
type Signer struct {
	KeyID string
	key   ed25519.PrivateKey
}

// ReadSigner reads an Ed25519 private key in PEM (PKCS #8, as NewSigningKey and
// openssl genpkey -algorithm ed25519 write it). An empty id means KeyID.
func ReadSigner(text []byte, id string) (*Signer, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("the signing key is not PEM")
	}
	k, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the signing key: %w", err)
	}
	key, ok := k.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("the signing key is a %T, want Ed25519", k)
	}
	return &Signer{or(id, KeyID(key.Public().(ed25519.PublicKey))), key}, nil
}

// ReadPublicKey reads an Ed25519 public key in PEM (SPKI).
func ReadPublicKey(text []byte) (ed25519.PublicKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("the public key is not PEM")
	}
	k, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the public key: %w", err)
	}
	key, ok := k.(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("the public key is a %T, want Ed25519", k)
	}
	return key, nil
}

func (s *Signer) sign(b *Bundle) (string, error) {
	text, err := b.attested()
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(ed25519.Sign(s.key, text)), nil
}

// signedBy reports whether a signature over the bundle is of this key.
func (b *Bundle) signedBy(key ed25519.PublicKey, sig string) bool {
	text, err := b.attested()
	raw, bad := base64.RawURLEncoding.Strict().DecodeString(sig)
	return err == nil && bad == nil && len(key) == ed25519.PublicKeySize && ed25519.Verify(key, text, raw)
}
