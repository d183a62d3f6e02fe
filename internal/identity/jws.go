package identity

import (
	"bytes"
	"encoding/base64"
	"errors"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// algorithms are those a token may be signed with. A configuration narrows the
// list and cannot widen it: none, and whatever is keyed with a secret that the
// host would have to share, are not signatures here.
var algorithms = []string{
	"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
}

// header is the protected header of a token. Members that bring a key along (jwk,
// jku, x5u, x5c) are not looked at: a token does not say what it is checked with.
type header struct {
	Alg  string         `json:"alg"`
	Typ  string         `json:"typ"`
	Kid  string         `json:"kid"`
	Crit jsontext.Value `json:"crit"`
	B64  jsontext.Value `json:"b64"`
	JWK  jsontext.Value `json:"jwk"`
}

// maxKid bounds the name of a key. It is compared and never part of a path, a
// query or a URL.
const maxKid = 256

// signed is a token that was parsed, and nothing more.
type signed struct {
	header  header
	payload []byte
	sig     *jose.JSONWebSignature
}

// compact reports whether a credential has the form of a signed token, so that it
// is judged as one and as nothing else.
func compact(token string) bool {
	return strings.HasPrefix(token, "ey") && strings.Count(token, ".") == 2
}

// parseSigned parses a token in compact form whose algorithm is one of those that
// are allowed. Nothing is verified.
func parseSigned(token string, allowed []string) (*signed, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, errors.New("not three parts")
	}
	var raw [3][]byte
	for i, p := range parts {
		var err error
		if raw[i], err = base64.RawURLEncoding.Strict().DecodeString(p); err != nil || len(raw[i]) == 0 {
			return nil, errors.New("not base64url")
		}
	}
	var s signed
	if err := json.Unmarshal(raw[0], &s.header); err != nil {
		return nil, errors.New("the header is not an object of its members")
	}
	switch h := &s.header; {
	case !slices.Contains(allowed, h.Alg) || !slices.Contains(algorithms, h.Alg):
		return nil, errors.New("the algorithm is not allowed")
	case h.Crit != nil || h.B64 != nil:
		return nil, errors.New("a critical header is not understood")
	case len(h.Kid) > maxKid:
		return nil, errors.New("the key's name is too long")
	}
	sig, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.SignatureAlgorithm(s.header.Alg)})
	if err != nil {
		return nil, errors.New("not a signed token")
	}
	s.sig, s.payload = sig, raw[1]
	return &s, nil
}

// verify checks the signature with one key.
func (s *signed) verify(key jose.JSONWebKey) error {
	payload, err := s.sig.Verify(key.Key)
	if err == nil && !bytes.Equal(payload, s.payload) {
		err = errors.New("what was signed is not what was read")
	}
	return err
}
