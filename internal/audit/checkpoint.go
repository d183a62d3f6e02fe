package audit

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// Algorithm is how checkpoints are signed.
const Algorithm = "ed25519"

// Checkpoint anchors the entries after From, up to and including AtSequence.
type Checkpoint struct {
	ID         string `json:"checkpoint"`
	From       int64  `json:"from"` // the checkpoint before; 0 for the first
	AtSequence int64  `json:"atSequence"`
	Root       string `json:"merkleRoot"`
	KeyID      string `json:"keyId"`
	Signature  string `json:"signature"` // base64, over the 32 bytes of the root
	At         string `json:"at"`
}

// Root is the Merkle root over hashes of entries in sequence order. A parent is
// the hash of the text of its two children one after the other; a last odd node is
// taken up as it is. There must be at least one leaf.
func Root(leaves []string) string {
	level := append([]string(nil), leaves...)
	for len(level) > 1 {
		next := level[:0]
		for i := 0; i < len(level); i += 2 {
			if i+1 == len(level) {
				next = append(next, level[i])
				continue
			}
			next = append(next, Hash([]byte(level[i]+level[i+1])))
		}
		level = next
	}
	return level[0]
}

// Signer signs checkpoints.
type Signer struct {
	KeyID   string
	private ed25519.PrivateKey
}

// SeedSize is the size of a signing key, in bytes.
const SeedSize = ed25519.SeedSize

// NewSigner makes a signer of a secret seed of SeedSize bytes.
func NewSigner(seed []byte) (Signer, error) {
	if len(seed) != SeedSize {
		return Signer{}, fmt.Errorf("audit: a signing key has %d bytes, not %d", SeedSize, len(seed))
	}
	private := ed25519.NewKeyFromSeed(seed)
	return Signer{KeyID: keyID(private.Public().(ed25519.PublicKey)), private: private}, nil
}

// keyID follows from the key: no other key can go by it.
func keyID(k ed25519.PublicKey) string {
	sum := sha256.Sum256(k)
	return "au-" + hex.EncodeToString(sum[:12])
}

// Public is the signer's key as it is published: base64 of its DER form.
func (s Signer) Public() string {
	der, err := x509.MarshalPKIXPublicKey(s.private.Public())
	if err != nil {
		panic("audit: a public key does not encode: " + err.Error())
	}
	return base64.StdEncoding.EncodeToString(der)
}

// Seal signs a checkpoint over leaves, which are the hashes after from.
func (s Signer) Seal(chain string, from int64, leaves []string, at time.Time) Checkpoint {
	c := Checkpoint{From: from, AtSequence: from + int64(len(leaves)), Root: Root(leaves), At: Stamp(at)}
	c.ID = fmt.Sprintf("%s/checkpoint-%d", chain, c.AtSequence)
	return s.Again(c)
}

// Again signs a checkpoint with this key in place of the one it was signed with.
func (s Signer) Again(c Checkpoint) Checkpoint {
	raw, _ := hex.DecodeString(c.Root)
	c.KeyID, c.Signature = s.KeyID, s.sign(raw)
	return c
}

func (s Signer) sign(message []byte) string {
	return base64.StdEncoding.EncodeToString(ed25519.Sign(s.private, message))
}

// digest is what is signed of a statement. It has 64 bytes and cannot be taken for
// a root, which has 32.
func digest(domain string, canonical []byte) []byte {
	sum := sha512.Sum512(append([]byte(domain+"\n"), canonical...))
	return sum[:]
}

// Keys are the published keys of a host, by id.
type Keys map[string]ed25519.PublicKey

// ParseKey reads a published key and returns the id that follows from it.
func ParseKey(public string) (id string, k ed25519.PublicKey, err error) {
	der, err := base64.StdEncoding.DecodeString(public)
	if err != nil {
		return "", nil, fmt.Errorf("audit: a public key is not base64: %w", err)
	}
	any, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return "", nil, fmt.Errorf("audit: a public key does not decode: %w", err)
	}
	k, ok := any.(ed25519.PublicKey)
	if !ok {
		return "", nil, errors.New("audit: a public key is not of Ed25519")
	}
	return keyID(k), k, nil
}

// Add adds a published key.
func (k Keys) Add(public string) error {
	id, key, err := ParseKey(public)
	if err == nil {
		k[id] = key
	}
	return err
}

// Signed reports whether a checkpoint's signature is that of its key over its root.
func (k Keys) Signed(c Checkpoint) bool {
	raw, err := hex.DecodeString(c.Root)
	return err == nil && len(raw) == sha256.Size && k.good(c.KeyID, c.Signature, raw)
}

func (k Keys) good(keyID, signature string, message []byte) bool {
	key := k[keyID]
	sig, err := base64.StdEncoding.DecodeString(signature)
	return err == nil && len(key) == ed25519.PublicKeySize && len(sig) == ed25519.SignatureSize && ed25519.Verify(key, message, sig)
}
