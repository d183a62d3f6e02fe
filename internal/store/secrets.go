package store

import (
	"context"
	"time"
)

// Secret is a key the host itself signs with. It must outlive the process: what
// it signed is in other hands.
type Secret struct {
	Purpose   string // what it signs, such as interrupt-token
	ID        string // the keyId that signatures name
	Value     []byte
	CreatedAt time.Time
}

// Secrets keeps the host's own signing keys. They belong to the host and to no
// tenant.
type Secrets interface {
	// Add fails with ErrExists if the purpose has a secret of this id already.
	Add(ctx context.Context, s Secret) error
	// List reads every secret of a purpose, newest first.
	List(ctx context.Context, purpose string) ([]Secret, error)
	// Drop forgets a secret: nothing it signed verifies any more. To drop one
	// that is not there is no failure.
	Drop(ctx context.Context, purpose, id string) error
}
