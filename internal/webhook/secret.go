package webhook

import (
	"crypto/rand"
	"encoding/base64"
	"strings"
)

// Schemes of signatures (spec v2 webhooks.md §Headers, §Standard Webhooks).
const (
	SchemeV1       = "v1"
	SchemeStandard = "standard-webhooks-1"
)

// secretPrefix marks a secret whose rest is a key in base64.
const secretPrefix = "whsec_"

// NewSecret makes a secret that serves both schemes.
func NewSecret() string {
	var key [32]byte
	rand.Read(key[:])
	return secretPrefix + base64.StdEncoding.EncodeToString(key[:])
}

// StandardKey is the key of a secret in the form of Standard Webhooks, whsec_ and
// 24 to 64 bytes in base64; nil if it does not have that form.
func StandardKey(secret string) []byte {
	rest, ok := strings.CutPrefix(secret, secretPrefix)
	if !ok {
		return nil
	}
	key, err := base64.StdEncoding.Strict().DecodeString(rest)
	if err != nil || len(key) < 24 || len(key) > 64 {
		return nil
	}
	return key
}
