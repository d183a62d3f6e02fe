package identity

import (
	"crypto/sha256"
	"encoding/base64"
)

// MemberSource names a tenant's own list of members as the place where a
// membership was looked up.
const MemberSource = "members"

// MemberID is the id of a party in a tenant's list of members. It follows from who
// vouches for the party and as whom: neither can hold a NUL.
func MemberID(issuer, subjectID string) string {
	b := make([]byte, 0, 256)
	b = append(append(append(b, issuer...), 0), subjectID...)
	sum := sha256.Sum256(b)
	return "mem-" + base64.RawURLEncoding.EncodeToString(sum[:15])
}
