package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fermata-run/fermata/internal/ids"
)

// Credentials keeps what nodes present elsewhere (spec v2 oauth.md §Credentials).
// The material comes sealed, and a backend has no key to it: what is stored here is
// of no use without the vault.
type Credentials interface {
	// Add fails with ErrExists if the tenant has a credential of this ref, and with
	// ErrFull if it has most of them already.
	Add(ctx context.Context, c Credential, most int) error
	// Get reads a credential, or fails with ErrNotFound.
	Get(ctx context.Context, tenant, ref string) (Credential, error)
	// List reads a tenant's credentials in order of their refs, after one of them
	// (empty for the first page), without what is sealed.
	List(ctx context.Context, tenant, after string, limit int) ([]Credential, error)
	// Rotate gives a credential, if it is in r.From, new sealed material and the
	// version behind it. What it had until now counts up to and without r.Until. It
	// fails with ErrNotFound if it is not there, and with ErrStale if its version is
	// another one.
	Rotate(ctx context.Context, r Rotation) error
	// Remove forgets a credential. It fails with ErrNotFound if it is not there.
	Remove(ctx context.Context, tenant, ref string) error
	// PurgeEnded removes up to limit credentials that belong to runs which are over
	// or not there, and says how many there were.
	PurgeEnded(ctx context.Context, limit int) (int, error)
}

// Credential is one credential of a tenant.
type Credential struct {
	Tenant  string
	Ref     string // opaque segment
	Run     string // opaque segment of the run it belongs to; empty for none
	Version int64  // from 1
	Meta    []byte // JSON object: what may be known of it

	// Sealed is the material of Version. Previous is that of the version before,
	// which counts up to PreviousUntil and without it.
	Sealed        []byte
	Previous      []byte
	PreviousUntil time.Time
	CreatedAt     time.Time
	RotatedAt     time.Time // zero if never
}

// Rotation is new material of a credential.
type Rotation struct {
	Tenant, Ref string
	From        int64 // the version it replaces
	Sealed      []byte
	At, Until   time.Time
}

// Check refuses a credential that could not be found again. A backend calls it
// before it writes.
func (c *Credential) Check() error {
	switch {
	case !ids.ValidTenant(c.Tenant) || !ids.ValidOpaque(c.Ref):
		return fmt.Errorf("credential %s of tenant %s: %w", c.Ref, c.Tenant, ids.ErrGrammar)
	case c.Run != "" && !ids.ValidOpaque(c.Run):
		return fmt.Errorf("run %s of a credential: %w", c.Run, ids.ErrGrammar)
	case len(c.Sealed) == 0 || c.Version < 1 || len(c.Meta) == 0:
		return errors.New("a credential needs a version, sealed material and what may be known of it")
	case len(c.Sealed)+len(c.Meta) > MaxValue:
		return ErrTooLarge
	}
	return nil
}
