package fermata

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/ids"
)

// readSigningKeys reads the public keys a host publishes: a PEM file with any
// number of PUBLIC KEY blocks, each with the optional headers Key-Id and
// Retired-At. A key whose time is over stays in the file: without it nobody could
// verify what it has signed.
func readSigningKeys(file string) ([]host.SigningKey, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("fermata: Config.SigningKeys: %w", err)
	}
	var keys []host.SigningKey
	seen := map[string]bool{}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		k, err := signingKey(block)
		if err == nil && seen[k.KeyID] {
			err = fmt.Errorf("two keys have the id %s", k.KeyID)
		}
		if err != nil {
			return nil, fmt.Errorf("fermata: Config.SigningKeys: %s: %w", file, err)
		}
		seen[k.KeyID] = true
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("fermata: Config.SigningKeys: %s holds no public key in PEM", file)
	}
	return keys, nil
}

func signingKey(block *pem.Block) (host.SigningKey, error) {
	var none host.SigningKey
	if strings.Contains(block.Type, "PRIVATE") {
		return none, fmt.Errorf("holds a private key, which is never for publishing")
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return none, err
	}
	public, ok := parsed.(ed25519.PublicKey)
	if !ok {
		return none, fmt.Errorf("holds a %T, want Ed25519", parsed)
	}
	sum := sha256.Sum256(public)
	k := host.SigningKey{
		KeyID: hex.EncodeToString(sum[:])[:32], Alg: "ed25519", Use: "certification-bundle",
		PublicKey: base64.RawURLEncoding.EncodeToString(public),
	}
	for name, v := range block.Headers {
		switch name {
		case "Key-Id":
			k.KeyID = v
		case "Retired-At":
			if _, err := time.Parse(time.RFC3339, v); err != nil {
				return none, fmt.Errorf("Retired-At %q is not a time such as 2026-11-30T12:00:00Z", v)
			}
			k.RetiredAt = v
		default:
			return none, fmt.Errorf("has the unknown header %s", name)
		}
	}
	if !ids.ValidKeyID(k.KeyID) {
		return none, fmt.Errorf("%q is not a key id", k.KeyID)
	}
	return k, nil
}
