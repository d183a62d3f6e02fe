package host

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/fermata-run/fermata/internal/audit"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
)

const (
	maxIssuer = 1024
	maxRoles  = 200 // of one tenant, beside those of the catalogue
)

// PutMember is the request to say what a party belongs to.
type PutMember struct {
	Issuer    string // the API keys' own if empty
	SubjectID string
	Name      string
	Workspace string
	Groups    []string
	Roles     []string
}

// MemberInfo describes a member of a tenant.
type MemberInfo struct {
	ID        string   `json:"memberId"`
	Issuer    string   `json:"issuer"`
	SubjectID string   `json:"subjectId"`
	Name      string   `json:"name,omitzero"`
	Workspace string   `json:"workspace,omitzero"`
	Groups    []string `json:"groups"`
	Roles     []string `json:"roles"`
	Scopes    []string `json:"scopes"` // that the roles come to now
	CreatedAt string   `json:"createdAt"`
	Created   bool     `json:"created"` // by this very request
}

// MemberPage is one page of members.
type MemberPage struct {
	Members    []MemberInfo `json:"members"`
	NextCursor string       `json:"nextCursor,omitzero"`
}

func memberInfo(m store.Member, roles []store.Role) MemberInfo {
	return MemberInfo{
		ID: m.ID, Issuer: m.Issuer, SubjectID: m.SubjectID, Name: m.Name, Workspace: m.Workspace,
		Groups: append([]string{}, m.Groups...), Roles: append([]string{}, m.Roles...),
		Scopes: append([]string{}, roleScopes(m.Roles, roles)...), CreatedAt: run.Stamp(m.CreatedAt),
	}
}

// PutMember makes a party a member of the caller's tenant, or says anew what it
// belongs to. What the party had and what it gets must be within the caller's own
// rights: nobody makes, or unmakes, somebody with more of them.
func (h *Host) PutMember(ctx context.Context, c identity.Caller, r PutMember) (MemberInfo, error) {
	if err := h.allow(c, identity.MembersWrite); err != nil {
		return MemberInfo{}, err
	}
	if r.Issuer == "" {
		r.Issuer = identity.KeyRealm
	}
	switch {
	case len(r.Issuer) > maxIssuer || strings.ContainsFunc(r.Issuer, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return MemberInfo{}, problem.Invalid("issuer", "is no issuer: want 1 to %d bytes without spaces", maxIssuer)
	case !ids.ValidSubject(r.SubjectID):
		return MemberInfo{}, problem.Invalid("subjectId", "want 1 to 256 characters without spaces and slashes")
	}
	if err := checkNames(r.Name, r.Workspace, named{"groups", r.Groups}, named{"roles", r.Roles}); err != nil {
		return MemberInfo{}, err
	}
	m := store.Member{
		Tenant: c.Tenant(), ID: identity.MemberID(r.Issuer, r.SubjectID), Issuer: r.Issuer, SubjectID: r.SubjectID, Name: r.Name,
		Workspace: r.Workspace, Groups: append([]string{}, r.Groups...), Roles: append([]string{}, r.Roles...), CreatedAt: h.clock.Now(),
	}
	own, err := h.within(ctx, c, m.ID, m.Roles)
	if err != nil {
		return MemberInfo{}, err
	}
	d := onMember("member.put", m.ID).with("issuer", m.Issuer).with("subjectId", m.SubjectID).with("roles", words(m.Roles)).
		with("groups", words(m.Groups)).with("workspace", m.Workspace)
	added, err := audited(ctx, h, c, d, func(ctx context.Context, _ *store.Draft) (bool, error) { return h.store.Members().Put(ctx, m) })
	if err != nil {
		return MemberInfo{}, err
	}
	if !added { // since when it is one, the store knows
		if m, err = h.store.Members().Get(ctx, m.Tenant, m.ID); err != nil {
			return MemberInfo{}, noMember(err)
		}
	}
	out := memberInfo(m, own)
	out.Created = added
	return out, nil
}

func onMember(action, id string) deed {
	return deed{action: action, target: audit.Target{Type: "member", ID: id}}
}

// within refuses a caller that holds less than the roles given, or than what a
// member has now. It returns the tenant's own roles.
func (h *Host) within(ctx context.Context, c identity.Caller, id string, roles []string) ([]store.Role, error) {
	own, err := h.store.Members().ListRoles(ctx, c.Tenant())
	if err != nil {
		return nil, err
	}
	was, err := h.store.Members().Get(ctx, c.Tenant(), id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	for _, name := range slices.Concat(roles, was.Roles) {
		if scope, ok := c.HoldsAll(roleScopes([]string{name}, own)); !ok {
			h.denials.note(c, "member.change", "more-than-its-own", h.clock.Now())
			return nil, problem.New(problem.Forbidden, "the role %s has the scope %s, which the caller does not hold", name, scope).
				With("requiredScope", scope)
		}
	}
	return own, nil
}

func checkMemberID(id string) error {
	if !ids.ValidKeyID(id) { // the same grammar
		return problem.Invalid("memberId", "want 1 to 128 of A-Z a-z 0-9 . _ ~ -")
	}
	return nil
}

func noMember(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return problem.New(problem.NotFound, "no such member")
	}
	return err
}

// Member reads a member of the caller's tenant.
func (h *Host) Member(ctx context.Context, c identity.Caller, id string) (MemberInfo, error) {
	if err := h.allow(c, identity.MembersRead); err != nil {
		return MemberInfo{}, err
	}
	if err := checkMemberID(id); err != nil {
		return MemberInfo{}, err
	}
	m, err := h.store.Members().Get(ctx, c.Tenant(), id)
	if err != nil {
		return MemberInfo{}, noMember(err)
	}
	own, err := h.store.Members().ListRoles(ctx, c.Tenant())
	return memberInfo(m, own), err
}

// ListMembers reads a page of the members of the caller's tenant.
func (h *Host) ListMembers(ctx context.Context, c identity.Caller, cursor string, limit int) (MemberPage, error) {
	if err := h.allow(c, identity.MembersRead); err != nil {
		return MemberPage{}, err
	}
	p, err := h.page("members", c.Tenant(), cursor, limit)
	if err != nil {
		return MemberPage{}, err
	}
	rows, err := h.store.Members().List(ctx, c.Tenant(), p.after, p.limit+1)
	if err != nil {
		return MemberPage{}, err
	}
	own, err := h.store.Members().ListRoles(ctx, c.Tenant())
	if err != nil {
		return MemberPage{}, err
	}
	out := MemberPage{Members: []MemberInfo{}}
	rows, out.NextCursor = cutPage(p, rows, func(m store.Member) string { return m.ID })
	for _, m := range rows {
		out.Members = append(out.Members, memberInfo(m, own))
	}
	return out, nil
}

// RemoveMember ends a membership, from the next request on.
func (h *Host) RemoveMember(ctx context.Context, c identity.Caller, id string) error {
	if err := h.allow(c, identity.MembersWrite); err != nil {
		return err
	}
	if err := checkMemberID(id); err != nil {
		return err
	}
	if _, err := h.within(ctx, c, id, nil); err != nil {
		return err
	}
	return h.audits(ctx, c, onMember("member.remove", id), func(ctx context.Context) error {
		err := h.store.Members().Remove(ctx, c.Tenant(), id)
		if errors.Is(err, store.ErrNotFound) && attemptIn(ctx).again {
			return nil
		}
		return noMember(err)
	})
}
