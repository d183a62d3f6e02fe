package host

import (
	"context"
	"errors"
	"slices"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/store"
)

// Enter lets an authenticated party in: its tenant must be there and active, and
// what the tenant says of it joins what its credential says. Every wire calls it
// once for a request, before any use case. It fails closed: whoever does not come by
// here has no rights but those of the credential.
func (h *Host) Enter(ctx context.Context, c identity.Caller) (identity.Caller, error) {
	if c.Tenant() == "" {
		return identity.Caller{}, problem.New(problem.Unauthenticated, "a credential is required")
	}
	st, err := h.standing(ctx, c.Subject)
	if err != nil {
		return identity.Caller{}, err
	}
	if st.Tenant.State != store.TenantActive {
		h.denials.note(c, "authorization.denied", "tenant-suspended", h.clock.Now())
		return identity.Caller{}, suspended()
	}
	m := st.Member
	if m == nil {
		return c, nil
	}
	switch {
	case c.Workspace == "":
		c.Workspace = m.Workspace
	case m.Workspace != "" && m.Workspace != c.Workspace:
		return identity.Caller{}, problem.New(problem.WorkspaceMemberRequired, "the credential is for a workspace that its holder is no member of")
	}
	c.Membership = c.Membership.And(belongs(m))
	c.Scopes = slices.Concat(c.Scopes, roleScopes(m.Roles, st.Roles))
	return c, nil
}

func suspended() error {
	return problem.New(problem.Forbidden, "the tenant is suspended").With("reason", "tenant-suspended")
}

// standing reads what there is to know of a party. One whose tenant is not there
// is nobody.
func (h *Host) standing(ctx context.Context, s event.Subject) (store.Standing, error) {
	st, err := h.store.Members().Standing(ctx, s.Tenant, identity.MemberID(s.Issuer, s.SubjectID))
	if errors.Is(err, store.ErrNotFound) {
		return st, problem.New(problem.IdentityUnresolvable, "the credential is of a tenant that this host does not have")
	}
	return st, err
}

// takesPart refuses a party whose tenant does not take part.
func (h *Host) takesPart(ctx context.Context, s event.Subject) error {
	st, err := h.standing(ctx, s)
	if err == nil && st.Tenant.State != store.TenantActive {
		err = suspended()
	}
	return err
}

func belongs(m *store.Member) identity.Membership {
	if m == nil {
		return identity.Membership{}
	}
	return identity.Membership{Groups: m.Groups, Roles: m.Roles, Source: identity.MemberSource}
}

// roleScopes are the scopes of roles: those of the catalogue, and a tenant's own. A
// role that is neither grants nothing.
func roleScopes(names []string, own []store.Role) []string {
	var out []string
	for _, n := range names {
		if scopes, ok := identity.RoleScopes(n); ok {
			out = append(out, scopes...)
			continue
		}
		for _, r := range own {
			if r.Name == n {
				out = append(out, r.Scopes...)
			}
		}
	}
	return out
}

// allow refuses a caller who lacks a scope, or who is bound to a workspace where the
// scope is the whole tenant's. None asks for no more than a credential.
func (h *Host) allow(c identity.Caller, scope string) error {
	if c.Tenant() == "" {
		return problem.New(problem.Unauthenticated, "a credential is required")
	}
	if scope == "" {
		return nil
	}
	if !c.Holds(scope) {
		h.denials.note(c, "authorization.denied", "scope "+scope, h.clock.Now())
		return problem.New(problem.Forbidden, "the caller lacks the scope %s", scope).With("requiredScope", scope)
	}
	if c.Workspace != "" && !identity.InWorkspace(scope) {
		h.denials.note(c, "authorization.denied", "workspace-bound", h.clock.Now())
		return problem.New(problem.Forbidden, "the caller is bound to a workspace, and %s concerns the whole tenant", scope).With("reason", "workspace-bound")
	}
	return nil
}

// mine refuses an id of another tenant, without saying whether it exists (spec
// v2 identity.md §5).
func (h *Host) mine(c identity.Caller, id ids.Run) error {
	if id.Tenant != c.Tenant() {
		h.denials.note(c, "authorization.denied", "tenant", h.clock.Now())
		return problem.New(problem.IDTenantMismatch, "the id belongs to another tenant")
	}
	return nil
}

// own is mine for a run, which may also be another workspace's: that one is
// run_forbidden. What is not there, or has expired, whoever reads it finds out.
func (h *Host) own(ctx context.Context, c identity.Caller, id ids.Run) error {
	if err := h.mine(c, id); err != nil || c.Workspace == "" {
		return err
	}
	row, err := h.row(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err == nil && row.Workspace != c.Workspace {
		h.denials.note(c, "authorization.denied", "workspace", h.clock.Now())
		err = problem.New(problem.RunForbidden, "the run belongs to another workspace")
	}
	return err
}

func (h *Host) row(ctx context.Context, id ids.Run) (store.Run, error) {
	if ended, ok := h.engine.Ended(id); ok {
		return ended.Row, nil
	}
	return h.store.Runs().Get(ctx, id)
}

// admit is what every operation on one run begins with.
func (h *Host) admit(ctx context.Context, c identity.Caller, scope string, id ids.Run) error {
	if err := h.allow(c, scope); err != nil {
		return err
	}
	return h.own(ctx, c, id)
}
