package fermata

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/store"
)

// bootstrap gives an empty data folder its first tenant and API key: at no moment is
// there a host that would let somebody in without one. The key is an owner's, and
// the host's administrator's.
func (h *Host) bootstrap(ctx context.Context) error {
	any, err := h.keys.Any(ctx)
	if err != nil {
		return err
	}
	if any {
		return h.checkUnused(ctx)
	}
	now := h.clock.Now()
	err = h.store.Tenants().Add(ctx, store.Tenant{ID: DefaultTenant, State: store.TenantActive, CreatedAt: now})
	if err != nil && !errors.Is(err, store.ErrExists) { // an earlier start may have got this far
		return fmt.Errorf("first tenant: %w", err)
	}
	key := h.cfg.BootstrapKey
	if key == "" {
		key = identity.Generate()
	}
	// One id for whoever begins: of replicas that begin together, one has its key there.
	grants := identity.Grants{ID: firstKeyID, Scopes: adminScopes(), Groups: h.cfg.BootstrapGroups, Roles: h.cfg.BootstrapRoles}
	ctx = host.Bootstrapping(ctx, DefaultTenant, grants.ID, now)
	_, err = h.keys.Add(ctx, key, DefaultTenant, "first key", grants, now)
	if errors.Is(err, store.ErrExists) { // another replica, which begins at the same time
		return h.checkUnused(ctx)
	}
	if err != nil {
		return fmt.Errorf("bootstrap key: %w", err)
	}
	if h.cfg.BootstrapKey == "" {
		h.firstKey = key
	}
	return nil
}

// firstKeyID is the id of the key that a host makes when it has none.
const firstKeyID = "key-first"

// adminScopes are those of a host's administrator: all there is in a tenant, and
// what no wildcard stands for.
func adminScopes() []string {
	owner, _ := identity.RoleScopes(identity.Owner)
	return append(append([]string{}, owner...), identity.HostAdmin, identity.Vouch)
}

// checkUnused says that a chosen key opens nothing, if it is none of the folder's.
func (h *Host) checkUnused(ctx context.Context) error {
	key := h.cfg.BootstrapKey
	if key == "" {
		return nil
	}
	_, err := h.keys.Authenticate(ctx, "Bearer "+key)
	var p *problem.Error
	if errors.As(err, &p) && p.Status() < http.StatusInternalServerError {
		h.cfg.Logger.Warn("the bootstrap key was not used: the data folder has API keys already, and this is none of them that is good",
			"setting", "bootstrap-key", "fix", "use a key of this folder, or take the setting away")
		return nil
	}
	return err
}
