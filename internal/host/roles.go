package host

import (
	"context"
	"errors"
	"slices"

	"github.com/fermata-run/fermata/internal/audit"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
)

// RoleInfo describes a role.
type RoleInfo struct {
	Role      string   `json:"role"`
	Scopes    []string `json:"scopes"`
	BuiltIn   bool     `json:"builtIn"`
	CreatedAt string   `json:"createdAt,omitzero"`
	Created   bool     `json:"created"` // by this very request
}

// ListRoles lists the roles members of the caller's tenant can have: the catalogue,
// and the tenant's own.
func (h *Host) ListRoles(ctx context.Context, c identity.Caller) ([]RoleInfo, error) {
	if err := h.allow(c, identity.MembersRead); err != nil {
		return nil, err
	}
	var out []RoleInfo
	for _, r := range identity.Catalogue() {
		out = append(out, RoleInfo{Role: r.Role, Scopes: r.Scopes, BuiltIn: true})
	}
	own, err := h.store.Members().ListRoles(ctx, c.Tenant())
	for _, r := range own {
		out = append(out, roleInfo(r))
	}
	return out, err
}

func roleInfo(r store.Role) RoleInfo {
	return RoleInfo{Role: r.Name, Scopes: append([]string{}, r.Scopes...), CreatedAt: run.Stamp(r.CreatedAt)}
}

// PutRole makes a role of the caller's tenant, or gives it other scopes, for all who
// have it. Neither what it had nor what it gets exceeds the caller's own rights.
func (h *Host) PutRole(ctx context.Context, c identity.Caller, name string, scopes []string) (RoleInfo, error) {
	if err := h.allow(c, identity.RolesWrite); err != nil {
		return RoleInfo{}, err
	}
	if err := ownRole(name); err != nil {
		return RoleInfo{}, err
	}
	if err := checkNames("", "", named{"scopes", scopes}); err != nil {
		return RoleInfo{}, err
	}
	if err := checkScopes(c, scopes, "a role cannot carry the scope %s, which the caller does not hold"); err != nil {
		return RoleInfo{}, err
	}
	was, n, err := h.role(ctx, c, name)
	if err != nil {
		return RoleInfo{}, err
	}
	if was == nil && n >= maxRoles {
		return RoleInfo{}, problem.Invalid("role", "the tenant has %d roles already", n)
	}
	r := store.Role{Tenant: c.Tenant(), Name: name, Scopes: append([]string{}, scopes...), CreatedAt: h.clock.Now()}
	d := onRole("role.put", name).with("scopes", words(scopes))
	added, err := audited(ctx, h, c, d, func(ctx context.Context, _ *store.Draft) (bool, error) { return h.store.Members().PutRole(ctx, r) })
	if was != nil {
		r.CreatedAt = was.CreatedAt
	}
	out := roleInfo(r)
	out.Created = added
	return out, err
}

func onRole(action, name string) deed {
	return deed{action: action, target: audit.Target{Type: "role", ID: name}}
}

func ownRole(name string) error {
	if !roleGrammar.MatchString(name) {
		return problem.Invalid("role", "want 1 to 64 of a-z 0-9 . _ - that begin with a letter")
	}
	if _, ok := identity.RoleScopes(name); ok {
		return problem.Invalid("role", "%s is a role of every tenant and cannot be changed", name)
	}
	return nil
}

// role finds a role of the tenant's own, which must be within the caller's rights;
// nil if there is none. It also counts them.
func (h *Host) role(ctx context.Context, c identity.Caller, name string) (*store.Role, int, error) {
	own, err := h.store.Members().ListRoles(ctx, c.Tenant())
	if err != nil {
		return nil, 0, err
	}
	i := slices.IndexFunc(own, func(r store.Role) bool { return r.Name == name })
	if i < 0 {
		return nil, len(own), nil
	}
	if scope, ok := c.HoldsAll(own[i].Scopes); !ok {
		return nil, 0, problem.New(problem.Forbidden, "the role has the scope %s, which the caller does not hold", scope).With("requiredScope", scope)
	}
	return &own[i], len(own), nil
}

// RemoveRole removes a role of the caller's tenant, from the next request on. Who
// has it keeps its name, which gates may ask for, and none of its scopes.
func (h *Host) RemoveRole(ctx context.Context, c identity.Caller, name string) error {
	if err := h.allow(c, identity.RolesWrite); err != nil {
		return err
	}
	if err := ownRole(name); err != nil {
		return err
	}
	if _, _, err := h.role(ctx, c, name); err != nil {
		return err
	}
	return h.audits(ctx, c, onRole("role.remove", name), func(ctx context.Context) error {
		err := h.store.Members().RemoveRole(ctx, c.Tenant(), name)
		if errors.Is(err, store.ErrNotFound) && attemptIn(ctx).again {
			return nil
		}
		if errors.Is(err, store.ErrNotFound) {
			return problem.New(problem.NotFound, "no such role")
		}
		return err
	})
}
