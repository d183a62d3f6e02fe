package host

import (
	"context"
	"errors"

	"github.com/fermata-run/fermata/internal/audit"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
)

// TenantInfo describes a tenant.
type TenantInfo struct {
	ID        string `json:"tenantId"`
	Name      string `json:"name,omitzero"`
	State     string `json:"state"` // active or suspended
	CreatedAt string `json:"createdAt"`
	// Settled says whether its runs stand still, or go on, as the state has it.
	Settled bool `json:"settled"`
}

// TenantPage is one page of tenants, by id.
type TenantPage struct {
	Tenants    []TenantInfo `json:"tenants"`
	NextCursor string       `json:"nextCursor,omitzero"`
}

// NewTenant is a tenant with the first API key of its owner.
type NewTenant struct {
	TenantInfo
	Key IssuedKey `json:"ownerKey"`
}

func tenantInfo(t store.Tenant) TenantInfo {
	return TenantInfo{ID: t.ID, Name: t.Name, State: t.State, CreatedAt: run.Stamp(t.CreatedAt), Settled: !t.Unsettled}
}

func checkTenantID(id string) error {
	if !ids.ValidTenant(id) {
		return problem.Invalid("tenantId", "want 1 to 128 of A-Z a-z 0-9 . _ ~ -")
	}
	return nil
}

func noTenant(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return problem.New(problem.NotFound, "no such tenant")
	}
	return err
}

// CreateTenant makes a tenant, and an API key of its owner: the only way into it.
func (h *Host) CreateTenant(ctx context.Context, c identity.Caller, id, name string) (NewTenant, error) {
	if err := h.allow(c, identity.HostAdmin); err != nil {
		return NewTenant{}, err
	}
	if !tenantGrammar.MatchString(id) {
		return NewTenant{}, problem.Invalid("tenantId", "want 1 to 128 of a-z 0-9 . _ - that begin and end with a letter or digit")
	}
	if err := checkNames(name, ""); err != nil {
		return NewTenant{}, err
	}
	return audited(ctx, h, c, onTenant("tenant.create", id), func(ctx context.Context, _ *store.Draft) (NewTenant, error) {
		return h.newTenant(ctx, id, name)
	})
}

// onTenant is a deed of the host's: it is in the host's chain.
func onTenant(action, id string) deed {
	return deed{chain: audit.HostChain, action: action, target: audit.Target{Type: "tenant", ID: id}}
}

func (h *Host) newTenant(ctx context.Context, id, name string) (NewTenant, error) {
	now := h.clock.Now()
	t := store.Tenant{ID: id, Name: name, State: store.TenantActive, CreatedAt: now}
	err := h.store.Tenants().Add(ctx, t)
	if errors.Is(err, store.ErrExists) {
		// A process may have died between the tenant and its key: then nobody is in.
		old, err := h.store.Tenants().Get(ctx, id)
		if err != nil {
			return NewTenant{}, noTenant(err)
		}
		keys, err := h.store.Keys().List(ctx, id, "", 1)
		if err != nil {
			return NewTenant{}, err
		}
		if len(keys) > 0 || old.State != store.TenantActive {
			return NewTenant{}, problem.New(problem.VersionConflict, "there is a tenant %s already", id).With("tenantId", id)
		}
		t = old
	} else if err != nil {
		return NewTenant{}, err
	}
	key, err := h.issue(ctx, id, "first key", identity.Grants{}, now)
	return NewTenant{tenantInfo(t), key}, err
}

// ListTenants reads a page of all tenants.
func (h *Host) ListTenants(ctx context.Context, c identity.Caller, cursor string, limit int) (TenantPage, error) {
	if err := h.allow(c, identity.HostAdmin); err != nil {
		return TenantPage{}, err
	}
	p, err := h.page("tenants", "", cursor, limit)
	if err != nil {
		return TenantPage{}, err
	}
	rows, err := h.store.Tenants().List(ctx, p.after, p.limit+1)
	if err != nil {
		return TenantPage{}, err
	}
	out := TenantPage{Tenants: []TenantInfo{}}
	rows, out.NextCursor = cutPage(p, rows, func(t store.Tenant) string { return t.ID })
	for _, t := range rows {
		out.Tenants = append(out.Tenants, tenantInfo(t))
	}
	return out, nil
}

// Tenant reads one tenant.
func (h *Host) Tenant(ctx context.Context, c identity.Caller, id string) (TenantInfo, error) {
	if err := h.allow(c, identity.HostAdmin); err != nil {
		return TenantInfo{}, err
	}
	if err := checkTenantID(id); err != nil {
		return TenantInfo{}, err
	}
	t, err := h.store.Tenants().Get(ctx, id)
	return tenantInfo(t), noTenant(err)
}

// SuspendTenant shuts a tenant out, from the next request on, and has its runs stand
// still. Its data stays. The caller's own tenant stays active, or nobody could bring
// it back.
func (h *Host) SuspendTenant(ctx context.Context, c identity.Caller, id string) (TenantInfo, error) {
	if err := h.allow(c, identity.HostAdmin); err != nil {
		return TenantInfo{}, err
	}
	if id == c.Tenant() {
		return TenantInfo{}, problem.Invalid("tenantId", "is your own tenant, which cannot be suspended by you")
	}
	return audited(ctx, h, c, onTenant("tenant.suspend", id), func(ctx context.Context, _ *store.Draft) (TenantInfo, error) {
		return h.setState(ctx, id, store.TenantSuspended)
	})
}

// ActivateTenant lets a suspended tenant in again. Its runs go on.
func (h *Host) ActivateTenant(ctx context.Context, c identity.Caller, id string) (TenantInfo, error) {
	if err := h.allow(c, identity.HostAdmin); err != nil {
		return TenantInfo{}, err
	}
	return audited(ctx, h, c, onTenant("tenant.activate", id), func(ctx context.Context, _ *store.Draft) (TenantInfo, error) {
		return h.setState(ctx, id, store.TenantActive)
	})
}

func (h *Host) setState(ctx context.Context, id, state string) (TenantInfo, error) {
	if err := checkTenantID(id); err != nil {
		return TenantInfo{}, err
	}
	for range 10 {
		t, err := h.store.Tenants().Get(ctx, id)
		if err != nil {
			return TenantInfo{}, noTenant(err)
		}
		if t.State == state {
			return tenantInfo(t), nil
		}
		t.State, t.Unsettled = state, true
		err = h.store.Tenants().Update(ctx, t)
		if errors.Is(err, store.ErrStale) {
			continue
		}
		if err != nil {
			return TenantInfo{}, err
		}
		select {
		case h.settleNow <- struct{}{}:
		default: // somebody has asked already
		}
		return tenantInfo(t), nil
	}
	return TenantInfo{}, problem.New(problem.ServiceUnavailable, "the tenant is being changed by somebody else; try again")
}
