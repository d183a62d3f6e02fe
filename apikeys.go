package fermata

import (
	"context"
	"errors"
	"fmt"

	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/store"
)

// RecoverKey makes an API key with every right in a tenant that is there, and
// returns it: for a key that was lost. Whoever can open the data folder or the
// database of Config.Store, with its master key, has everything in it. An empty tenant means DefaultTenant, whose key
// administers the host and which becomes active if it was suspended; another tenant
// stays what it is. An empty key means a generated one.
func (h *Host) RecoverKey(ctx context.Context, tenant, name, key string) (string, error) {
	if tenant == "" {
		tenant = DefaultTenant
	}
	if name == "" {
		name = "recovered"
	}
	if key == "" {
		key = identity.Generate()
	}
	t, err := h.store.Tenants().Get(ctx, tenant)
	if errors.Is(err, store.ErrNotFound) {
		return "", fmt.Errorf("there is no tenant %q on this host", tenant)
	}
	if err != nil {
		return "", err
	}
	now := h.clock.Now
	owner, _ := identity.RoleScopes(identity.Owner)
	g := identity.Grants{ID: identity.NewKeyID(), Scopes: owner}
	if tenant == DefaultTenant {
		g.Scopes = adminScopes()
	}
	// The tenant first: a key that is there and opens nothing would be nobody's.
	if tenant == DefaultTenant && t.State != store.TenantActive {
		t.State, t.Unsettled = store.TenantActive, true
		if err := h.store.Tenants().Update(ctx, t); err != nil {
			return "", err
		}
	}
	id, err := h.keys.Add(host.Bootstrapping(ctx, tenant, g.ID, now()), key, tenant, name, g, now())
	if err != nil {
		return "", err
	}
	h.cfg.Logger.Warn("an API key was made from the shell", "tenant", tenant, "key", id, "name", name)
	return key, nil
}
