package token

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strings"
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/go-json-experiment/json"
)

// The scheme and its one algorithm (spec v2 identity.md §4).
const (
	Prefix = "ow2"
	HS256  = "hs256"
)

// What a token is good for (spec v2 interrupt.md §Tokens): resolve takes in
// inspect.
const (
	Resolve = "resolve"
	Inspect = "inspect"
)

// MinSecret is the least length of a key, in bytes: that of its MAC.
const MinSecret = sha256.Size

// MaxLength bounds a token. The longest ids and chains of actors make a shorter
// one; what is longer is refused before anything is computed over it.
const MaxLength = 16 << 10

// ErrInvalid: not a token that this key has signed. It says no more on purpose.
var ErrInvalid = errors.New("not a valid interrupt token")

// Claims is what a token states, and what its MAC protects.
type Claims struct {
	Run       ids.Run // its tenant is the token's tenant
	NodeID    string
	Interrupt ids.Run
	Intent    string
	ExpiresAt time.Time // whole milliseconds
	// Subject is the party the token was given to, in whose name it answers.
	Subject event.Subject
}

// payload is the form that travels: a closed object.
type payload struct {
	RunID       string        `json:"runId"`
	NodeID      string        `json:"nodeId"`
	InterruptID string        `json:"interruptId"`
	Intent      string        `json:"intent"`
	ExpiresAt   string        `json:"expiresAt"`
	Subject     event.Subject `json:"subject"`
}

var encoding = base64.RawURLEncoding.Strict()

// Sign writes a token: ow2.hs256.<kid>.<payload>.<mac>. The MAC covers all that
// stands before it, so neither algorithm nor kid can be exchanged.
func Sign(kid string, secret []byte, c Claims) (string, error) {
	if !ValidKid(kid) || len(secret) < MinSecret {
		return "", errors.New("token: the key cannot sign")
	}
	if err := c.check(); err != nil {
		return "", err
	}
	body, err := json.Marshal(payload{
		RunID: c.Run.String(), NodeID: c.NodeID, InterruptID: c.Interrupt.String(), Intent: c.Intent,
		ExpiresAt: c.ExpiresAt.UTC().Format(event.TimeLayout), Subject: c.Subject,
	})
	if err != nil {
		return "", err
	}
	head := Prefix + "." + HS256 + "." + kid + "." + encoding.EncodeToString(body)
	t := head + "." + encoding.EncodeToString(mac(secret, head))
	if len(t) > MaxLength {
		return "", errors.New("token: longer than a token may be")
	}
	return t, nil
}

func mac(secret []byte, head string) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(head))
	return h.Sum(nil)
}

// Unverified is a token by its form alone. Nothing it says counts before Verify.
type Unverified struct {
	Kid string

	head    string // what the MAC covers
	payload string
	mac     []byte
	older   bool // in the form of v1
}

// Parse reads the grammar and nothing more. What does not begin as a token of this
// major does is one of v1 (spec v2 persistence.md §Everything else).
func Parse(s string) (Unverified, error) {
	if len(s) > MaxLength {
		return Unverified{}, ErrInvalid
	}
	if !strings.HasPrefix(s, Prefix+".") {
		return parseOlder(s)
	}
	// A kid may hold dots, so the two ends are cut off from outside.
	rest, ok := strings.CutPrefix(s, Prefix+"."+HS256+".")
	if !ok {
		return Unverified{}, ErrInvalid
	}
	last := strings.LastIndexByte(rest, '.')
	if last < 0 {
		return Unverified{}, ErrInvalid
	}
	sum, err := encoding.DecodeString(rest[last+1:])
	// The decoder skips line breaks; a token has one spelling only.
	if err != nil || len(sum) != sha256.Size || encoding.EncodeToString(sum) != rest[last+1:] {
		return Unverified{}, ErrInvalid
	}
	mid := strings.LastIndexByte(rest[:last], '.')
	if mid < 0 || !ValidKid(rest[:mid]) || mid+1 == last {
		return Unverified{}, ErrInvalid
	}
	return Unverified{
		Kid: rest[:mid], payload: rest[mid+1 : last], mac: sum,
		head: s[:len(s)-len(rest)+last],
	}, nil
}

// Verify holds the token against a key, in constant time, and only then reads
// what it says. Whether it has expired is the caller's to judge.
func (u Unverified) Verify(secret []byte) (Claims, error) {
	if u.older {
		return u.verifyOlder(secret)
	}
	if len(secret) < MinSecret || !hmac.Equal(mac(secret, u.head), u.mac) {
		return Claims{}, ErrInvalid
	}
	body, err := encoding.DecodeString(u.payload)
	if err != nil {
		return Claims{}, ErrInvalid
	}
	var p payload
	if err := json.Unmarshal(body, &p, json.RejectUnknownMembers(true)); err != nil {
		return Claims{}, ErrInvalid
	}
	c := Claims{NodeID: p.NodeID, Intent: p.Intent, Subject: p.Subject}
	var bad [3]error
	c.Run, bad[0] = ids.ParseRun(p.RunID)
	c.Interrupt, bad[1] = ids.ParseRun(p.InterruptID)
	c.ExpiresAt, bad[2] = time.Parse(event.TimeLayout, p.ExpiresAt)
	if errors.Join(bad[:]...) != nil || c.check() != nil {
		return Claims{}, ErrInvalid
	}
	return c, nil
}

// check refuses claims that do not fit together: a token is about one
// interrupt of one node of one run, of one tenant.
func (c *Claims) check() error {
	switch {
	case !ids.ValidTenant(c.Run.Tenant), !ids.ValidOpaque(c.Run.Opaque), !ids.ValidOpaque(c.Interrupt.Opaque),
		!ids.ValidAuthored(c.NodeID):
		return errors.New("token: an id is outside its grammar")
	case c.Interrupt.Tenant != c.Run.Tenant, c.Subject.Tenant != c.Run.Tenant:
		return errors.New("token: more than one tenant")
	case c.Intent != Resolve && c.Intent != Inspect:
		return errors.New("token: unknown intent")
	case c.ExpiresAt.IsZero():
		return errors.New("token: without an end")
	case c.Subject.SubjectID == "":
		return errors.New("token: for nobody")
	}
	return nil
}

// ValidKid reports whether s is a keyId (spec v2 identity.md §5).
func ValidKid(s string) bool {
	if s == "" || len(s) > 128 {
		return false
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == '~', c == '-':
		default:
			return false
		}
	}
	return true
}
