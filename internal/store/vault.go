package store

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Vault keeps the wrapped keys of whoever seals what is in the store, and shows the
// places where sealed values are, so that they can be sealed anew. A backend can
// open none of it.
type Vault interface {
	// Keys reads every data key, the oldest first, and of one moment in order of
	// their ids.
	Keys(ctx context.Context) ([]DataKey, error)
	// Cells reads every value that is to be sealed: secrets, the secrets of
	// webhooks, credentials, and the recorded answers of an endpoint.
	Cells(ctx context.Context, endpoint string) ([]Cell, error)
	// Change writes all of a change or nothing. It fails with ErrStale if a cell
	// does not hold what the change says it does, and with ErrExists if a key that
	// is to be added is there.
	Change(ctx context.Context, c VaultChange) error
	// Scrub removes from the files what has been overwritten, as far as the backend
	// can. It may take as long as a copy of the data.
	Scrub(ctx context.Context) error
}

// DataKey is a key that seals values of one tenant, wrapped by a master key.
type DataKey struct {
	Tenant    string // empty for the host's own values
	ID        string
	Master    string // id of the master key that wraps it
	Wrapped   []byte
	CreatedAt time.Time
}

// Kinds of cells: what ID names besides the tenant.
const (
	CellSecret     = "secret"     // purpose and id of a Secret
	CellWebhook    = "webhook"    // id; the secret
	CellWebhookOld = "webhook-"   // id; the previous secret
	CellCredential = "credential" // ref; the material
	CellCredOld    = "credential-"
	CellAnswer     = "answer" // endpoint and key; the body
)

// Cell is one place that holds a sealed value. Cells without a value are left out.
type Cell struct {
	Kind   string
	Tenant string // empty for CellSecret
	ID     string
	Sub    []byte // second part of the id, where it has one
	At     int64  // version of a credential's material; else 0
	Value  []byte
}

// Replaced is a cell with what it is to hold instead.
type Replaced struct {
	Cell
	New []byte
}

// VaultChange is what happens at once.
type VaultChange struct {
	Add     []DataKey
	Rewrap  []DataKey // Master and Wrapped of keys that are there
	Replace []Replaced
}

// Check refuses a change that could not be undone by its own means.
func (c *VaultChange) Check() error {
	for _, list := range [][]DataKey{c.Add, c.Rewrap} {
		for _, k := range list {
			if k.ID == "" || k.Master == "" || len(k.Wrapped) == 0 {
				return errors.New("a data key needs an id, its master key's id, and the wrapped key")
			}
		}
	}
	for _, r := range c.Replace {
		if len(r.New) == 0 {
			return fmt.Errorf("a cell of kind %s would be emptied", r.Kind)
		}
	}
	return nil
}
