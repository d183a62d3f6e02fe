package identity

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"

	"github.com/fermata-run/fermata/internal/problem"
)

// bind ties a verified token to the request that presents it, and says how
// strongly. What a token is bound to is asked for whatever the lane's floor is: a
// bound token in the hands of somebody else is a stolen one.
func (l *tokenLane) bind(c *Credential, v *verified) (assurance string, err error) {
	missing := func(what string) (string, error) {
		return "", problem.New(problem.SenderConstraintMissing, "%s", what)
	}
	assurance = Bearer
	switch {
	case v.jkt != "" && c.Scheme != "dpop":
		return missing("the credential is bound to a key: present it with the scheme DPoP and a proof")
	case v.jkt == "" && c.Scheme == "dpop":
		return missing("the credential is bound to no key: it cannot be presented with the scheme DPoP")
	case v.jkt != "":
		if err := l.dpop.check(c, v.jkt); err != nil {
			return "", err
		}
		assurance = SenderConstrained
	}
	if v.x5t != "" {
		if !c.certified() || !sameThumb(v.x5t, c.HTTP.TLS.PeerCertificates[0].Raw) {
			return missing("the credential is bound to a certificate that this connection was not made with")
		}
		assurance = KeyBound
	}
	if v.delegated && assurance == Bearer {
		return "", unverified(fmt.Errorf("a chain of actors without a proof"))
	}
	return assurance, nil
}

// sameThumb compares a thumbprint with that of a certificate (RFC 8705 §3.1).
func sameThumb(thumb string, raw []byte) bool {
	sum := sha256.Sum256(raw)
	return subtle.ConstantTimeCompare([]byte(thumb), []byte(base64.RawURLEncoding.EncodeToString(sum[:]))) == 1
}
