package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
)

// CredentialRef names a credential of the host's vault. It is all that a workflow
// ever holds of one (spec v2 oauth.md §Credentials).
type CredentialRef struct {
	Ref   string `json:"ref"`
	Scope string `json:"scope,omitempty"` // user, workspace, tenant or run; empty for whichever it is
}

// UnmarshalJSON refuses members that a reference does not have: material that was
// put beside the ref must not pass unnoticed.
func (r *CredentialRef) UnmarshalJSON(b []byte) error {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(b, &m); err != nil || m == nil {
		return errors.New("a credential is named by an object with a ref")
	}
	for name, v := range m {
		into := map[string]*string{"ref": &r.Ref, "scope": &r.Scope}[name]
		if into == nil {
			return errors.New("a credential is named by its ref and scope alone")
		}
		if json.Unmarshal(v, into) != nil {
			return fmt.Errorf("the %s of a credential is text", name)
		}
	}
	if r.Ref == "" {
		return errors.New("a credential is named by an object with a ref")
	}
	switch r.Scope {
	case "", "user", "workspace", "tenant", "run":
		return nil
	}
	return errors.New("the scope of a credential is user, workspace, tenant or run")
}

// Credential is a resolved credential. It shows nothing of its material, however it
// is printed or encoded; For gives it out for one destination.
type Credential struct {
	ref    string
	kind   string
	decide Decide
}

// Decide judges a call to a host, records the decision in the run's log, and returns
// the material if it may go along. refused is why the call is not let out whatever
// the credential says; empty if nothing is in its way.
type Decide func(ctx context.Context, host, refused string) (Material, error)

// Material is what a credential is made of. It shows nothing of itself when it is
// printed or encoded.
type Material struct {
	Username string // of a credential of kind basic
	Secret   string
}

// NewCredential is for the host.
func NewCredential(ref, kind string, decide Decide) *Credential {
	return &Credential{ref: ref, kind: kind, decide: decide}
}

// Ref is the credential's name.
func (c *Credential) Ref() string { return c.ref }

// Kind is secret, or basic for a user name with a password.
func (c *Credential) Kind() string { return c.kind }

// For returns the material for a call to a host (a name or address without a port).
// It fails with egress_denied, and the run's log says so, if the credential is not
// meant for that host or has expired. Whoever uses it must call that host and no
// other, and follow no redirect to another one.
//
// A credential may permit calls without it where it is not meant for: then For
// returns ErrDowngraded, and the call may be made with nothing.
func (c *Credential) For(ctx context.Context, host string) (Material, error) {
	return c.decide(ctx, host, "")
}

// Refused records that a call that would have carried the credential was not let
// out, and why.
func (c *Credential) Refused(ctx context.Context, host, reason string) error {
	_, err := c.decide(ctx, host, reason)
	return err
}

// ErrDowngraded says that a call may go out without its credential, and only so.
var ErrDowngraded = errors.New("the call goes without its credential")

const hidden = "[REDACTED]"

// String implements fmt.Stringer.
func (c *Credential) String() string { return "[REDACTED:" + c.ref + "]" }

// Format implements fmt.Formatter: no verb shows anything.
func (c *Credential) Format(f fmt.State, _ rune) { fmt.Fprint(f, c.String()) }

// MarshalJSON implements json.Marshaler.
func (c *Credential) MarshalJSON() ([]byte, error) { return json.Marshal(c.String()) }

// LogValue implements slog.LogValuer.
func (c *Credential) LogValue() slog.Value { return slog.StringValue(c.String()) }

// String implements fmt.Stringer.
func (Material) String() string { return hidden }

// Format implements fmt.Formatter: no verb shows anything.
func (m Material) Format(f fmt.State, _ rune) { fmt.Fprint(f, hidden) }

// MarshalJSON implements json.Marshaler.
func (Material) MarshalJSON() ([]byte, error) { return json.Marshal(hidden) }

// LogValue implements slog.LogValuer.
func (Material) LogValue() slog.Value { return slog.StringValue(hidden) }
