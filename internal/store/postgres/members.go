package postgres

import (
	"context"
	"slices"

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
	dropRole   = `DELETE FROM roles WHERE tenant = $1 AND name = $2`
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

// Standing implements store.Members: one round trip, as of one moment. Nothing of it
// is remembered: another replica may have changed it.
func (m members) Standing(ctx context.Context, tenant, member string) (x store.Standing, err error) {
	err = m.s.read(ctx, func(q querier) error {
		b := &pgx.Batch{}
		b.Queue(beginSnapshot)
		b.Queue(selectTenant, tenant)
		b.Queue(selectMember, tenant, member)
		b.Queue(listRoles, tenant)
		b.Queue(commit)
		res := q.SendBatch(ctx, b)
		x, err = readStanding(res)
		if e := res.Close(); err == nil {
			err = e
		}
		return err
	})
	if err != nil {
		x = store.Standing{}
	}
	return x, wrap("look up a party", err)
}

func readStanding(res pgx.BatchResults) (x store.Standing, err error) {
	if _, err = res.Exec(); err != nil {
		return x, err
	}
	tenants, err := results(res, scanTenant)
	if err != nil {
		return x, err
	}
	found, err := results(res, scanMember)
	if err != nil {
		return x, err
	}
	roles, err := results(res, scanRole)
	if err != nil {
		return x, err
	}
	if len(tenants) == 0 {
		return x, store.ErrNotFound
	}
	x.Tenant = tenants[0]
	if len(found) == 0 {
		return x, nil
	}
	x.Member = &found[0]
	for _, r := range roles {
		if slices.Contains(x.Member.Roles, r.Name) {
			x.Roles = append(x.Roles, r)
		}
	}
	return x, nil
}

// results reads the rows of the next query of a batch.
func results[T any](res pgx.BatchResults, scan func(pgx.CollectableRow) (T, error)) ([]T, error) {
	rows, err := res.Query()
	if err != nil {
		return nil, err
	}
	return collect(rows, scan)
}
