package store

import (
	"context"
	"time"
)

// Key is an API key, known only by the hash of its secret. While it is being
// replaced it has two: the former one opens as well until OldUntil.
type Key struct {
	ID        string
	Tenant    string
	Hash      []byte
	Keyed     bool   // Hash is of the present form; false for what an older version wrote
	OldHash   []byte // nil for none
	OldUntil  time.Time
	Name      string
	Kind      string // user, agent or workload
	Workspace string // the only one its holder acts in; empty for the whole tenant
	Scopes    []string
	Groups    []string // its holder is in; nil for none
	Roles     []string // its holder has; nil for none
	CreatedAt time.Time
	ExpiresAt time.Time // zero for never
	RevokedAt time.Time // zero while valid
	UsedAt    time.Time // as of the last Touch; zero for never
	Version   int64     // counts Updates, from 0
}

// Used says when a key was last used.
type Used struct {
	Tenant, ID string
	At         time.Time
}

// Keys keeps API keys, revoked ones too.
type Keys interface {
	// Add fails with ErrExists if the tenant has the id, or anybody one of the hashes.
	Add(ctx context.Context, k Key) error
	// ByHash finds a key by either of its hashes, revoked or not, or fails with
	// ErrNotFound. Every request asks. An Update that has returned, in whatever
	// process, is seen by every call that begins after it.
	ByHash(ctx context.Context, hash []byte) (Key, error)
	// ByID finds a key of a tenant, revoked or not, or fails with ErrNotFound.
	ByID(ctx context.Context, tenant, id string) (Key, error)
	// List reads a tenant's keys, revoked or not, by id after the given one.
	List(ctx context.Context, tenant, after string, limit int) ([]Key, error)
	// Update writes everything of a key but Tenant, ID, CreatedAt and UsedAt, and raises its
	// Version by one. It fails with ErrStale if the key is not at k.Version any
	// more, with ErrNotFound if there is none, and with ErrExists if a hash is
	// another key's.
	Update(ctx context.Context, k Key) error
	// Touch takes down uses. One that is older than what is there, or of a key that
	// is not there, changes nothing.
	Touch(ctx context.Context, used []Used) error
	// Unkeyed reads keys whose hash is not of the present form, of any tenant.
	Unkeyed(ctx context.Context, limit int) ([]Key, error)
	Count(ctx context.Context) (int, error)
}
