package fermata

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/store"
)

// RecheckStreams is a change of Config: a stream's credential is looked at again so often.
func RecheckStreams(every time.Duration) func(*Config) {
	return func(c *Config) { c.recheck = every }
}

// AddTestTenant makes a tenant if it is not there.
func (h *Host) AddTestTenant(ctx context.Context, tenant string) error {
	err := h.store.Tenants().Add(ctx, store.Tenant{ID: tenant, State: store.TenantActive, CreatedAt: time.Now()})
	if errors.Is(err, store.ErrExists) {
		return nil
	}
	return err
}

// AddTestKey gives a tenant, which is made if it is not there, an API key with
// exactly these scopes.
func (h *Host) AddTestKey(ctx context.Context, key, tenant string, scopes ...string) error {
	return h.AddTestGrants(ctx, key, tenant, identity.Grants{Scopes: append([]string{}, scopes...)})
}

// AddTestGrants is AddTestKey with all that a key can have.
func (h *Host) AddTestGrants(ctx context.Context, key, tenant string, g identity.Grants) error {
	if err := h.AddTestTenant(ctx, tenant); err != nil {
		return err
	}
	// As an older version left it, so that tests know its holder by a name.
	sum := sha256.Sum256([]byte(key))
	err := h.store.Keys().Add(ctx, store.Key{
		ID: "test-" + key[:8] + "-" + tenant, Hash: sum[:], Tenant: tenant, Name: "test", Kind: g.Kind, Workspace: g.Workspace,
		Scopes: g.Scopes, Groups: g.Groups, Roles: g.Roles, ExpiresAt: g.ExpiresAt, CreatedAt: time.Now(),
	})
	if err == nil {
		_, err = identity.OpenAPIKeys(ctx, h.store.Keys(), h.store.Secrets(), time.Now)
	}
	return err
}

// Routes is the host's route table.
func (h *Host) Routes() []api.Route { return h.api.Routes() }

// UseCases is the host behind the wire.
func (h *Host) UseCases() *host.Host { return h.host }

// Store is the host's store.
func (h *Host) Store() store.Store { return h.store }

// WrongClock is a machine whose clock is wrong by d.
func WrongClock(d time.Duration) func(*Config) { return func(c *Config) { c.wrongClock = d } }

// Statements is how many statements the host has had a shared database execute.
func (h *Host) Statements() int64 { return h.shared.(interface{ Statements() int64 }).Statements() }
