package token

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"strings"
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/go-json-experiment/json"
)

// LegacyKid is the key of a token of v1 that names none (spec v2 interrupt.md §Tokens).
const LegacyKid = "legacy"

// olderPayload is what a token of v1 states (spec v1 interrupt.md §Signed resolution
// tokens): the ids without their tenant. Kid and subject are this host's own: v1 leaves
// open how keys are told apart and whom a token speaks for, and no client reads either.
type olderPayload struct {
	RunID       string        `json:"runId"`
	NodeID      string        `json:"nodeId"`
	InterruptID string        `json:"interruptId"`
	ExpiresAt   string        `json:"expiresAt"`
	Intent      string        `json:"intent"`
	Kid         string        `json:"kid,omitzero"`
	Subject     event.Subject `json:"subject"`
}

// SignOlder writes a token in the form of v1: <payload>.<mac>, both base64url. The MAC
// covers the payload as JSON, which no token of this major's form is, so that one key
// may sign both.
func SignOlder(kid string, secret []byte, c Claims) (string, error) {
	if !ValidKid(kid) || len(secret) < MinSecret {
		return "", errors.New("token: the key cannot sign")
	}
	if err := c.check(); err != nil {
		return "", err
	}
	body, err := json.Marshal(olderPayload{
		RunID: c.Run.Opaque, NodeID: c.NodeID, InterruptID: c.Interrupt.Opaque, Intent: c.Intent,
		ExpiresAt: c.ExpiresAt.UTC().Format(event.TimeLayout), Kid: kid, Subject: c.Subject,
	})
	if err != nil {
		return "", err
	}
	t := encoding.EncodeToString(body) + "." + encoding.EncodeToString(mac(secret, string(body)))
	if len(t) > MaxLength {
		return "", errors.New("token: longer than a token may be")
	}
	return t, nil
}

// parseOlder reads the grammar of v1, and which key is meant: the one member that is
// looked at before the MAC is.
func parseOlder(s string) (Unverified, error) {
	head, tail, ok := strings.Cut(s, ".")
	if !ok || strings.Contains(tail, ".") {
		return Unverified{}, ErrInvalid
	}
	sum, err := encoding.DecodeString(tail)
	if err != nil || len(sum) != sha256.Size || encoding.EncodeToString(sum) != tail {
		return Unverified{}, ErrInvalid
	}
	body, err := encoding.DecodeString(head)
	if err != nil || encoding.EncodeToString(body) != head || !bytes.HasPrefix(body, []byte("{")) {
		return Unverified{}, ErrInvalid
	}
	var p struct {
		Kid string `json:"kid"`
	}
	if json.Unmarshal(body, &p) != nil {
		return Unverified{}, ErrInvalid
	}
	if p.Kid == "" {
		p.Kid = LegacyKid
	}
	if !ValidKid(p.Kid) {
		return Unverified{}, ErrInvalid
	}
	return Unverified{Kid: p.Kid, head: string(body), mac: sum, older: true}, nil
}

func (u Unverified) verifyOlder(secret []byte) (Claims, error) {
	if len(secret) < MinSecret || !hmac.Equal(mac(secret, u.head), u.mac) {
		return Claims{}, ErrInvalid
	}
	var p olderPayload
	if err := json.Unmarshal([]byte(u.head), &p, json.RejectUnknownMembers(true)); err != nil {
		return Claims{}, ErrInvalid
	}
	at, err := time.Parse(event.TimeLayout, p.ExpiresAt)
	c := Claims{
		Run: ids.Run{Tenant: p.Subject.Tenant, Opaque: p.RunID}, Interrupt: ids.Run{Tenant: p.Subject.Tenant, Opaque: p.InterruptID},
		NodeID: p.NodeID, Intent: p.Intent, ExpiresAt: at, Subject: p.Subject,
	}
	if err != nil || c.check() != nil {
		return Claims{}, ErrInvalid
	}
	return c, nil
}
