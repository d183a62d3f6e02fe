package conformance

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"slices"
	"time"
)

// publishedKey is a key as discovery lists it.
type publishedKey struct {
	KeyID     string `json:"keyId"`
	Alg       string `json:"alg"`
	PublicKey string `json:"publicKey"`
	RetiredAt string `json:"retiredAt"`
}

// attestation resolves the signature's key at the host, and nowhere else.
func (v *Verification) attestation(b *Bundle, t Trust) {
	sig := b.Signature
	if id := b.Host.KeyID; id != "" && id != sig.KeyID {
		v.reject("signing-key", "host.signingKeyId is %s, the signature names %s", id, sig.KeyID)
	}
	if t.Key != nil {
		if v.Intact = b.signedBy(t.Key, sig.Sig); !v.Intact {
			v.forged("the attestation does not verify under the key that was given")
			return
		}
	}
	if t.Discovery == nil {
		return
	}
	key, found := publishedAs(t.Discovery, sig.KeyID)
	v.Moved = !sameDocument(t.Discovery, b.Discovery.SHA256)
	switch raw, err := base64.RawURLEncoding.DecodeString(key.PublicKey); {
	case !found:
		v.Attribution = NotPublished
	case err != nil || key.Alg != "ed25519" || !b.signedBy(raw, sig.Sig):
		v.forged("the attestation does not verify under the key the host published as " + sig.KeyID)
	case t.Key != nil && !t.Key.Equal(ed25519.PublicKey(raw)):
		v.forged("the key that was given is not the one the host published as " + sig.KeyID)
	case retiredBefore(key, b.GeneratedAt):
		v.Attribution = Attributed
		v.reject("key-retired", "the key %s was retired at %s, before the bundle was made", sig.KeyID, key.RetiredAt)
	default:
		v.Attribution = Attributed
	}
}

func (v *Verification) forged(why string) {
	v.Attribution = Forged
	v.reject("signature-invalid", "%s", why)
}

func publishedKeys(discovery []byte) []publishedKey {
	var doc struct {
		Keys []publishedKey `json:"signingKeys"`
	}
	_ = json.Unmarshal(discovery, &doc)
	return doc.Keys
}

func publishedAs(discovery []byte, id string) (publishedKey, bool) {
	list := publishedKeys(discovery)
	i := slices.IndexFunc(list, func(k publishedKey) bool { return k.KeyID == id })
	if i < 0 {
		return publishedKey{}, false
	}
	return list[i], true
}

func sameDocument(discovery []byte, sum string) bool {
	c, err := canonicalText(discovery)
	return err == nil && hexSum(c) == sum
}

// retiredBefore reports whether a key was out of use when a bundle was made. A key
// that was retired later goes on vouching for what it signed.
func retiredBefore(k publishedKey, at string) bool {
	retired, err := time.Parse(time.RFC3339, k.RetiredAt)
	made, bad := time.Parse(time.RFC3339, at)
	return err == nil && bad == nil && made.After(retired)
}

// independent refuses, and does not warn, where somebody claims to be independent
// and is not, or cannot be checked.
func (v *Verification) independent(b *Bundle, t Trust) {
	if !slices.ContainsFunc(b.Claimed, func(c Claim) bool { return c.Tier == TierIndependent }) {
		return
	}
	s := b.Verifier // the schema has seen to it that there is one
	switch {
	case s.KeyID == b.Signature.KeyID || s.KeyID == b.Host.KeyID:
		v.reject("independent-self-signed", "the verifier's key is the host's own")
	case t.VerifierKey == nil:
		v.reject("independent-unverifiable", "an independent claim needs the verifier's public key")
	case !b.signedBy(t.VerifierKey, s.Sig):
		v.reject("verifier-signature-invalid", "the verifier's attestation does not verify under the key that was given")
	case b.signedBy(t.VerifierKey, b.Signature.Sig) || isPublished(t.Discovery, t.VerifierKey):
		v.reject("independent-self-signed", "the verifier's key is the host's own under another name")
	}
}

func isPublished(discovery []byte, key ed25519.PublicKey) bool {
	mine := base64.RawURLEncoding.EncodeToString(key)
	return slices.ContainsFunc(publishedKeys(discovery), func(k publishedKey) bool { return k.PublicKey == mine })
}
