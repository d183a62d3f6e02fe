package store

import (
	"context"
	"time"
)

// States of a tenant.
const (
	TenantActive    = "active"
	TenantSuspended = "suspended"
)

// Tenant is one of the parties that share a host.
type Tenant struct {
	ID        string
	Name      string
	State     string
	CreatedAt time.Time
	// Unsettled: its runs have not been brought in line with its state yet.
	Unsettled bool
	Version   int64 // counts Updates, from 0
}

// Tenants keeps tenants. There is no way to remove one: ids that name it are in
// other hands.
type Tenants interface {
	// Add fails with ErrExists if the id is there.
	Add(ctx context.Context, t Tenant) error
	// Get fails with ErrNotFound if the id is not there.
	Get(ctx context.Context, id string) (Tenant, error)
	// List reads tenants by id after the given one.
	List(ctx context.Context, after string, limit int) ([]Tenant, error)
	// Unsettled reads tenants that are unsettled, by id after the given one.
	Unsettled(ctx context.Context, after string, limit int) ([]Tenant, error)
	// Update writes Name, State and Unsettled, and raises Version by one. It fails
	// with ErrStale if the tenant is not at t.Version any more, and with ErrNotFound
	// if there is none.
	Update(ctx context.Context, t Tenant) error
}

// Member is what a tenant says of a party: by whom it is vouched for, and as whom.
type Member struct {
	Tenant    string
	ID        string // follows from Issuer and SubjectID
	Issuer    string
	SubjectID string
	Name      string
	Workspace string // the only one it acts in; empty for the whole tenant
	Groups    []string
	Roles     []string
	CreatedAt time.Time
}

// Role is a tenant's own name for a set of scopes.
type Role struct {
	Tenant    string
	Name      string
	Scopes    []string
	CreatedAt time.Time
}

// Standing is what there is to know of a party before it is let in, as of one
// moment. Member is nil for a party that is none.
type Standing struct {
	Tenant Tenant
	Member *Member
	Roles  []Role // those of the tenant that the member has
}

// Members keeps who belongs to a tenant, and the roles a tenant has made.
type Members interface {
	// Put adds a member or replaces the one of the same id, but for its CreatedAt;
	// false if it was there.
	Put(ctx context.Context, m Member) (added bool, err error)
	// Get fails with ErrNotFound if the tenant has no such member.
	Get(ctx context.Context, tenant, id string) (Member, error)
	// List reads a tenant's members by id after the given one.
	List(ctx context.Context, tenant, after string, limit int) ([]Member, error)
	// Remove fails with ErrNotFound if the tenant has no such member.
	Remove(ctx context.Context, tenant, id string) error
	// PutRole adds a role or replaces its scopes; false if it was there.
	PutRole(ctx context.Context, r Role) (added bool, err error)
	// ListRoles reads all roles of a tenant, by name.
	ListRoles(ctx context.Context, tenant string) ([]Role, error)
	// RemoveRole fails with ErrNotFound if the tenant has no such role. Who has it
	// keeps its name, which then means nothing.
	RemoveRole(ctx context.Context, tenant, name string) error
	// Standing fails with ErrNotFound if there is no such tenant. Every request
	// asks: what has changed, in whatever process, is seen by every call that begins
	// after the change has returned.
	Standing(ctx context.Context, tenant, member string) (Standing, error)
}
