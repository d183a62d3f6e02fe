package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// HostChain is the chain of what concerns the host and no tenant. No tenant can
// have this name.
const HostChain = ":host"

// Outcomes of what is recorded.
const (
	Done   = "done"
	Denied = "denied"
	Failed = "failed"
)

// Bounds of one fact, so that no caller can make entries grow.
const (
	maxText    = 1024 // bytes of one text
	maxDetails = 16
)

// Actor is who did it, with the assurance that was actually used (spec v2
// identity.md §4). Via is the party on whose behalf it acts.
type Actor struct {
	Issuer    string `json:"issuer,omitzero"`
	SubjectID string `json:"subjectId,omitzero"`
	Tenant    string `json:"tenant,omitzero"`
	Lane      string `json:"lane,omitzero"`
	Kind      string `json:"kind"` // user, agent, workload, anonymous, or host: the program itself
	Assurance string `json:"assurance,omitzero"`
	Via       *Actor `json:"via,omitzero"`
}

// Target is what it was done to.
type Target struct {
	Type string `json:"type"`
	ID   string `json:"id,omitzero"`
}

// Fact is what is to be recorded. It holds no secret, token or payload: texts are
// ids, names and words of a fixed list.
type Fact struct {
	At      time.Time
	Actor   Actor
	Action  string // such as workflow.deleted
	Outcome string
	Target  Target
	Request string // names the request, where it had an Idempotency-Key
	Detail  map[string]string
}

// Entry is a fact in its place in a chain.
type Entry struct {
	Chain    string            `json:"chain"`
	Sequence int64             `json:"sequence"` // from 1, without a gap
	PrevHash *string           `json:"prevHash"` // of the entry before; null in the first
	At       string            `json:"at"`       // RFC 3339, UTC, milliseconds
	Actor    Actor             `json:"actor"`
	Action   string            `json:"action"`
	Outcome  string            `json:"outcome"`
	Target   Target            `json:"target"`
	Request  string            `json:"request,omitzero"`
	Detail   map[string]string `json:"detail,omitzero"`
}

// Position is where a chain ends. The zero value is an empty chain.
type Position struct {
	Sequence int64
	Hash     string
}

// Place makes the entry of a fact that comes next in a chain. It returns the
// canonical bytes (RFC 8785) and the chain's new end.
func Place(chain string, end Position, f Fact) ([]byte, Position, error) {
	e := Entry{
		Chain: chain, Sequence: end.Sequence + 1, At: Stamp(f.At), Actor: f.Actor, Action: cut(f.Action),
		Outcome: f.Outcome, Target: Target{cut(f.Target.Type), cut(f.Target.ID)}, Request: cut(f.Request),
	}
	if end.Sequence > 0 {
		e.PrevHash = &end.Hash
	}
	if len(f.Detail) > maxDetails {
		return nil, end, fmt.Errorf("audit: a fact has %d details, at most %d are allowed", len(f.Detail), maxDetails)
	}
	if len(f.Detail) > 0 {
		e.Detail = make(map[string]string, len(f.Detail))
		for k, v := range f.Detail {
			e.Detail[cut(k)] = cut(v)
		}
	}
	if f.Action == "" || f.Outcome == "" || f.At.IsZero() {
		return nil, end, errors.New("audit: a fact has an action, an outcome and a time")
	}
	body, err := json.Marshal(&e)
	if err == nil {
		body, err = Canonical(body)
	}
	if err != nil {
		return nil, end, fmt.Errorf("audit: %w", err)
	}
	return body, Position{e.Sequence, Hash(body)}, nil
}

// Stamp writes a time as entries do.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// cut bounds a text without leaving half a character.
func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	n := maxText
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}

// Canonical brings a JSON value to the form that is hashed (RFC 8785).
func Canonical(doc []byte) ([]byte, error) {
	v := jsontext.Value(doc).Clone()
	if err := v.Canonicalize(); err != nil {
		return nil, err
	}
	return v, nil
}

// Hash is the hash of an entry: SHA-256 of its canonical bytes, in lowercase hex.
func Hash(canonical []byte) string {
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:])
}

// read decodes an entry and refuses one that is not in canonical form: its bytes
// would not be those that were hashed.
func read(body []byte) (Entry, error) {
	var e Entry
	if err := json.Unmarshal(body, &e, json.RejectUnknownMembers(true)); err != nil {
		return Entry{}, fmt.Errorf("audit: an entry does not decode: %w", err)
	}
	c, err := Canonical(body)
	if err != nil || string(c) != string(body) {
		return Entry{}, errors.New("audit: an entry is not in canonical form")
	}
	return e, nil
}
