package fermata

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/store"
)

// AddTestKey gives a tenant an API key with exactly these scopes.
func (h *Host) AddTestKey(ctx context.Context, key, tenant string, scopes ...string) error {
	sum := sha256.Sum256([]byte(key))
	return h.store.Keys().Add(ctx, store.Key{
		ID: "test-" + key[:8] + "-" + tenant, Hash: sum[:], Tenant: tenant, Name: "test", Scopes: scopes, CreatedAt: time.Now(),
	})
}

// Routes is the host's route table.
func (h *Host) Routes() []api.Route { return h.api.Routes() }
