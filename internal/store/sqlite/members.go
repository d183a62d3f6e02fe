package sqlite

import (
	"context"
	"slices"

	"github.com/fermata-run/fermata/internal/store"
)

// members implements store.Members.
type members struct{ s *Store }

const (
	memberColumns = `tenant, id, issuer, subject, name, workspace, in_groups, has_roles, created_at`
	putMember     = `INSERT INTO members (` + memberColumns + `) VALUES (?,?,?,?,?,?,?,?,?)
		ON CONFLICT DO UPDATE SET issuer = excluded.issuer, subject = excluded.subject, name = excluded.name,
			workspace = excluded.workspace, in_groups = excluded.in_groups, has_roles = excluded.has_roles`
	selectMember = `SELECT ` + memberColumns + ` FROM members WHERE tenant = ? AND id = ?`
	listMembers  = `SELECT ` + memberColumns + ` FROM members WHERE tenant = ? AND id > ? ORDER BY id LIMIT ?`
	dropMember   = `DELETE FROM members WHERE tenant = ? AND id = ?`

	putRole = `INSERT INTO roles (tenant, name, scopes, created_at) VALUES (?,?,?,?)
		ON CONFLICT DO UPDATE SET scopes = excluded.scopes`
	selectRole = `SELECT tenant, name, scopes, created_at FROM roles WHERE tenant = ? AND name = ?`
	listRoles  = `SELECT tenant, name, scopes, created_at FROM roles WHERE tenant = ? ORDER BY name`
	dropRole   = `DELETE FROM roles WHERE tenant = ? AND name = ?`
)

// Members implements store.Store.
func (s *Store) Members() store.Members { return members{s} }

func scanMembers(q *query) (out []store.Member, err error) {
	err = q.each(func(r *row) (bool, error) {
		m := store.Member{Tenant: r.text(), ID: r.text(), Issuer: r.text(), SubjectID: r.text(), Name: r.text(), Workspace: r.text()}
		err := decodeLists(r, &m.Groups, &m.Roles)
		m.CreatedAt = r.time()
		out = append(out, m)
		return true, err
	})
	return out, err
}

func scanRoles(q *query) (out []store.Role, err error) {
	err = q.each(func(r *row) (bool, error) {
		x := store.Role{Tenant: r.text(), Name: r.text()}
		err := decodeLists(r, &x.Scopes)
		x.CreatedAt = r.time()
		out = append(out, x)
		return true, err
	})
	return out, err
}

func findMember(c *conn, tenant, id string) (*store.Member, error) {
	list, err := scanMembers(c.prep(selectMember).text(tenant).text(id))
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return &list[0], nil
}

// Put implements store.Members.
func (m members) Put(ctx context.Context, x store.Member) (added bool, err error) {
	lists, err := encodeLists(x.Groups, x.Roles)
	if err == nil {
		err = m.s.writer.submit(ctx, 0, func(c *conn) error {
			was, err := findMember(c, x.Tenant, x.ID)
			if err != nil {
				return err
			}
			added = was == nil
			return c.prep(putMember).text(x.Tenant).text(x.ID).text(x.Issuer).text(x.SubjectID).text(x.Name).text(x.Workspace).
				text(lists[0]).text(lists[1]).time(x.CreatedAt).run()
		})
	}
	m.s.standingCache.clear()
	return added && err == nil, wrap("put a member", err)
}

// Get implements store.Members.
func (m members) Get(ctx context.Context, tenant, id string) (x store.Member, err error) {
	err = m.s.readers.read(ctx, func(c *conn) error {
		found, err := findMember(c, tenant, id)
		if err == nil && found == nil {
			err = store.ErrNotFound
		}
		if err == nil {
			x = *found
		}
		return err
	})
	return x, wrap("get a member", err)
}

// List implements store.Members.
func (m members) List(ctx context.Context, tenant, after string, limit int) (out []store.Member, err error) {
	err = m.s.readers.read(ctx, func(c *conn) error {
		out, err = scanMembers(c.prep(listMembers).text(tenant).text(after).bound(limit))
		return err
	})
	return out, wrap("list members", err)
}

// Remove implements store.Members.
func (m members) Remove(ctx context.Context, tenant, id string) error {
	return wrap("remove a member", m.drop(ctx, dropMember, tenant, id))
}

func (m members) drop(ctx context.Context, sql, tenant, id string) error {
	err := m.s.writer.submit(ctx, 0, func(c *conn) error {
		n, err := c.prep(sql).text(tenant).text(id).change()
		if err == nil && n == 0 {
			err = store.ErrNotFound
		}
		return err
	})
	m.s.standingCache.clear()
	return err
}

// PutRole implements store.Members.
func (m members) PutRole(ctx context.Context, x store.Role) (added bool, err error) {
	lists, err := encodeLists(x.Scopes)
	if err == nil {
		err = m.s.writer.submit(ctx, 0, func(c *conn) error {
			was, err := scanRoles(c.prep(selectRole).text(x.Tenant).text(x.Name))
			if err != nil {
				return err
			}
			added = len(was) == 0
			return c.prep(putRole).text(x.Tenant).text(x.Name).text(lists[0]).time(x.CreatedAt).run()
		})
	}
	m.s.standingCache.clear()
	return added && err == nil, wrap("put a role", err)
}

// ListRoles implements store.Members.
func (m members) ListRoles(ctx context.Context, tenant string) (out []store.Role, err error) {
	err = m.s.readers.read(ctx, func(c *conn) error {
		out, err = scanRoles(c.prep(listRoles).text(tenant))
		return err
	})
	return out, wrap("list roles", err)
}

// RemoveRole implements store.Members.
func (m members) RemoveRole(ctx context.Context, tenant, name string) error {
	return wrap("remove a role", m.drop(ctx, dropRole, tenant, name))
}

// Standing implements store.Members. A party that is no member is kept as well:
// it has a credential of the tenant, so there are not many of them.
func (m members) Standing(ctx context.Context, tenant, member string) (x store.Standing, err error) {
	at := [2]string{tenant, member}
	cached, epoch, ok := m.s.standingCache.get(at)
	if ok {
		return cached, wrap("look up a party", m.s.writer.ready(ctx))
	}
	err = m.s.readers.snapshot(ctx, func(c *conn) error {
		x, err = standing(c, tenant, member)
		return err
	})
	if err == nil {
		m.s.standingCache.put(at, x, epoch)
	}
	return x, wrap("look up a party", err)
}

func standing(c *conn, tenant, member string) (x store.Standing, err error) {
	if x.Tenant, err = oneTenant(c, tenant); err != nil {
		return store.Standing{}, err
	}
	if x.Member, err = findMember(c, tenant, member); err != nil || x.Member == nil || len(x.Member.Roles) == 0 {
		return x, err
	}
	all, err := scanRoles(c.prep(listRoles).text(tenant))
	for _, r := range all {
		if slices.Contains(x.Member.Roles, r.Name) {
			x.Roles = append(x.Roles, r)
		}
	}
	return x, err
}
