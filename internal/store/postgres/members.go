package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/fermata-run/fermata/internal/store"
	"github.com/jackc/pgx/v5"
)

// members implements store.Members.
type members struct{ s *Store }

const (
	memberColumns = `tenant, id, issuer, subject, name, workspace, in_groups, has_roles, created_at`
	oneMember     = ` WHERE tenant = $1 AND id = $2`
	insertMember  = `INSERT INTO members (` + memberColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING`
	updateMember  = `UPDATE members SET issuer = $3, subject = $4, name = $5, workspace = $6, in_groups = $7, has_roles = $8` + oneMember
	selectMember  = `SELECT ` + memberColumns + ` FROM members` + oneMember
	listMembers   = `SELECT ` + memberColumns + ` FROM members WHERE tenant = $1 AND id > $2 ORDER BY id LIMIT $3`
	dropMember    = `DELETE FROM members` + oneMember

	insertRole = `INSERT INTO roles (tenant, name, scopes, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`
	updateRole = `UPDATE roles SET scopes = $3 WHERE tenant = $1 AND name = $2`
	listRoles  = `SELECT tenant, name, scopes, created_at FROM roles WHERE tenant = $1 ORDER BY name`
	// Tenant, member and, if there is one, the tenant's roles: who asks takes the member's.
	selectStanding = `SELECT t.tenant, t.name, t.state, t.created_at, t.unsettled, t.version,
		m.id, m.issuer, m.subject, m.name, m.workspace, m.in_groups, m.has_roles, m.created_at, r.name, r.scopes, r.created_at
		FROM tenants t LEFT JOIN members m ON m.tenant = t.tenant AND m.id = $2 LEFT JOIN roles r ON r.tenant = m.tenant
		WHERE t.tenant = $1 ORDER BY r.name`
	dropRole = `DELETE FROM roles WHERE tenant = $1 AND name = $2`
)

// Members implements store.Store.
func (s *Store) Members() store.Members { return members{s} }

func scanMember(row pgx.CollectableRow) (m store.Member, err error) {
	var lists [2][]byte
	err = row.Scan(&m.Tenant, &m.ID, (*raw)(&m.Issuer), (*raw)(&m.SubjectID), (*raw)(&m.Name), (*raw)(&m.Workspace),
		&lists[0], &lists[1], (*stamp)(&m.CreatedAt))
	if err == nil {
		err = decodeLists(lists[:], &m.Groups, &m.Roles)
	}
	return m, err
}

func scanRole(row pgx.CollectableRow) (r store.Role, err error) {
	var scopes []byte
	err = row.Scan(&r.Tenant, &r.Name, &scopes, (*stamp)(&r.CreatedAt))
	if err == nil {
		err = decodeLists([][]byte{scopes}, &r.Scopes)
	}
	return r, err
}

// put inserts a row or, if it is there, updates it by the same arguments but the last,
// which says since when it has been there.
func (m members) put(ctx context.Context, insert, update string, args ...any) (added bool, err error) {
	err = m.s.tx(ctx, func(q querier) error {
		n, err := change(ctx, q, insert, args...)
		added = n > 0
		if err != nil || added {
			return err
		}
		n, err = change(ctx, q, update, args[:len(args)-1]...)
		if err == nil && n == 0 { // removed between the two
			err = errAgain
		}
		return err
	})
	return added && err == nil, err
}

func (m members) drop(ctx context.Context, sql, tenant, id string) error {
	return m.s.tx(ctx, func(q querier) error {
		n, err := change(ctx, q, sql, tenant, id)
		if err == nil && n == 0 {
			err = store.ErrNotFound
		}
		return err
	})
}

// Put implements store.Members.
func (m members) Put(ctx context.Context, x store.Member) (added bool, err error) {
	lists, err := encodeLists(x.Groups, x.Roles)
	if err == nil {
		added, err = m.put(ctx, insertMember, updateMember, x.Tenant, x.ID, []byte(x.Issuer), []byte(x.SubjectID), []byte(x.Name),
			[]byte(x.Workspace), lists[0], lists[1], millis(x.CreatedAt))
	}
	return added, wrap("put a member", err)
}

// Get implements store.Members.
func (m members) Get(ctx context.Context, tenant, id string) (x store.Member, err error) {
	err = m.s.read(ctx, func(q querier) error {
		x, err = scanOne(ctx, q, scanMember, selectMember, tenant, id)
		return err
	})
	return x, wrap("get a member", err)
}

// List implements store.Members.
func (m members) List(ctx context.Context, tenant, after string, limit int) (out []store.Member, err error) {
	err = m.s.read(ctx, func(q querier) error {
		out, err = list(ctx, q, scanMember, listMembers, tenant, after, bound(limit))
		return err
	})
	return out, wrap("list members", err)
}

// Remove implements store.Members.
func (m members) Remove(ctx context.Context, tenant, id string) error {
	return wrap("remove a member", m.drop(ctx, dropMember, tenant, id))
}

// PutRole implements store.Members.
func (m members) PutRole(ctx context.Context, x store.Role) (added bool, err error) {
	lists, err := encodeLists(x.Scopes)
	if err == nil {
		added, err = m.put(ctx, insertRole, updateRole, x.Tenant, x.Name, lists[0], millis(x.CreatedAt))
	}
	return added, wrap("put a role", err)
}

// ListRoles implements store.Members.
func (m members) ListRoles(ctx context.Context, tenant string) (out []store.Role, err error) {
	err = m.s.read(ctx, func(q querier) error {
		out, err = list(ctx, q, scanRole, listRoles, tenant)
		return err
	})
	return out, wrap("list roles", err)
}

// RemoveRole implements store.Members.
func (m members) RemoveRole(ctx context.Context, tenant, name string) error {
	return wrap("remove a role", m.drop(ctx, dropRole, tenant, name))
}

// Standing implements store.Members: one statement, so as of one moment. Nothing of it
// is remembered, since another replica may change it; but those who ask for the same at
// one moment ask together.
func (m members) Standing(ctx context.Context, tenant, member string) (store.Standing, error) {
	x, err := m.s.standings.do(ctx, [2]string{tenant, member}, func(ctx context.Context) (x store.Standing, err error) {
		err = m.s.read(ctx, func(q querier) error {
			x = store.Standing{}
			rows, err := list(ctx, q, scanStanding, selectStanding, tenant, member)
			if err == nil && len(rows) == 0 {
				err = store.ErrNotFound
			}
			if err != nil {
				return err
			}
			x.Tenant, x.Member = rows[0].Tenant, rows[0].Member
			for _, r := range rows {
				x.Roles = append(x.Roles, r.Roles...)
			}
			return nil
		})
		return x, err
	})
	if err != nil {
		return store.Standing{}, wrap("look up a party", err)
	}
	return own(x), nil
}

// scanStanding reads a row with at most one role, and leaves out one that the member
// does not have.
func scanStanding(row pgx.CollectableRow) (x store.Standing, err error) {
	var lists [3][]byte
	var m store.Member
	var role string
	var since time.Time
	t := &x.Tenant
	err = row.Scan(&t.ID, (*raw)(&t.Name), &t.State, (*stamp)(&t.CreatedAt), &t.Unsettled, &t.Version,
		(*opt)(&m.ID), (*raw)(&m.Issuer), (*raw)(&m.SubjectID), (*raw)(&m.Name), (*raw)(&m.Workspace), &lists[0], &lists[1], (*stamp)(&m.CreatedAt),
		(*opt)(&role), &lists[2], (*stamp)(&since))
	if err != nil || m.ID == "" {
		return x, err
	}
	m.Tenant, x.Member = t.ID, &m
	if err = decodeLists(lists[:2], &m.Groups, &m.Roles); err != nil || !slices.Contains(m.Roles, role) || lists[2] == nil {
		return x, err
	}
	r := store.Role{Tenant: t.ID, Name: role, CreatedAt: since}
	err = decodeLists(lists[2:], &r.Scopes)
	x.Roles = []store.Role{r}
	return x, err
}

// own makes a copy of what others are given, too.
func own(x store.Standing) store.Standing {
	if x.Member != nil {
		m := *x.Member
		m.Groups, m.Roles = slices.Clone(m.Groups), slices.Clone(m.Roles)
		x.Member = &m
	}
	x.Roles = slices.Clone(x.Roles)
	for i := range x.Roles {
		x.Roles[i].Scopes = slices.Clone(x.Roles[i].Scopes)
	}
	return x
}
