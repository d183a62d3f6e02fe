package vault

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// KeySize is the length of master and data keys, in bytes.
const KeySize = 32

// ErrSealed: a value cannot be opened with the key it names, or is none of ours.
var ErrSealed = errors.New("vault: a sealed value cannot be opened: it is damaged, or belongs elsewhere")

// aead makes AES-256-GCM of a key. Nonces are drawn at random; how often one key
// may be used therefore has a bound (2^32), which rotation keeps far away.
func aead(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// sealedMark begins every sealed value. Values are text, so that a column of text
// can hold them as well as one of bytes.
const sealedMark = "fv1."

// A sealed value is sealedMark, the data key's id, a dot, and nonce, ciphertext and
// tag in base64.
func seal(a cipher.AEAD, id string, plain, bound []byte) []byte {
	box := a.Seal(nil, nil, plain, bound)
	out := make([]byte, 0, len(sealedMark)+len(id)+1+base64.RawStdEncoding.EncodedLen(len(box)))
	out = append(append(append(out, sealedMark...), id...), '.')
	return base64.RawStdEncoding.AppendEncode(out, box)
}

// split takes a sealed value apart; false if it is none.
func split(sealed []byte) (id string, box []byte, ok bool) {
	rest, ok := strings.CutPrefix(string(sealed), sealedMark)
	if !ok {
		return "", nil, false
	}
	id, text, ok := strings.Cut(rest, ".")
	if !ok || !strings.HasPrefix(id, dataPrefix) {
		return "", nil, false
	}
	box, err := base64.RawStdEncoding.Strict().DecodeString(text)
	return id, box, err == nil && len(box) >= 12+16
}

// bound is what a sealed value is tied to. Moved to another tenant, place or
// version it cannot be opened.
func bound(kind, tenant string, parts ...string) []byte {
	b := []byte("fermata vault 1")
	for _, p := range append([]string{kind, tenant}, parts...) {
		b = strconv.AppendInt(append(b, 0), int64(len(p)), 10)
		b = append(append(b, 0), p...)
	}
	return b
}

// Prefixes of ids.
const (
	masterPrefix = "mk_"
	dataPrefix   = "dk_"
)

// masterID names a master key by what can be derived of it, and gives nothing away.
func masterID(key []byte) (string, error) {
	sum, err := hkdf.Key(sha256.New, key, nil, "fermata master key id", 8)
	if err != nil {
		return "", fmt.Errorf("vault: %w", err)
	}
	return masterPrefix + hex.EncodeToString(sum), nil
}
