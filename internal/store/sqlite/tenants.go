package sqlite

import (
	"context"

	"github.com/fermata-run/fermata/internal/store"
)

// tenantRows implements store.Tenants.
type tenantRows struct{ s *Store }

const (
	tenantColumns = `tenant, name, state, created_at, unsettled, version`
	insertTenant  = `INSERT INTO tenants (` + tenantColumns + `) VALUES (?,?,?,?,?,?) ON CONFLICT DO NOTHING`
	updateTenant  = `UPDATE tenants SET name = ?, state = ?, unsettled = ?, version = version + 1 WHERE tenant = ? AND version = ?`
	selectTenant  = `SELECT ` + tenantColumns + ` FROM tenants WHERE tenant = ?`
	listTenants   = `SELECT ` + tenantColumns + ` FROM tenants WHERE tenant > ? ORDER BY tenant LIMIT ?`
	listUnsettled = `SELECT ` + tenantColumns + ` FROM tenants WHERE unsettled = 1 AND tenant > ? ORDER BY tenant LIMIT ?`
)

// Tenants implements store.Store.
func (s *Store) Tenants() store.Tenants { return tenantRows{s} }

func scanTenants(q *query) (out []store.Tenant, err error) {
	err = q.each(func(r *row) (bool, error) {
		out = append(out, store.Tenant{
			ID: r.text(), Name: r.text(), State: r.text(), CreatedAt: r.time(), Unsettled: r.bool(), Version: r.int(),
		})
		return true, nil
	})
	return out, err
}

func oneTenant(c *conn, id string) (store.Tenant, error) {
	list, err := scanTenants(c.prep(selectTenant).text(id))
	if err == nil && len(list) == 0 {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Tenant{}, err
	}
	return list[0], nil
}

// Add implements store.Tenants.
func (t tenantRows) Add(ctx context.Context, x store.Tenant) error {
	err := t.s.writer.submit(ctx, 0, func(c *conn) error {
		n, err := c.prep(insertTenant).text(x.ID).text(x.Name).text(x.State).time(x.CreatedAt).bool(x.Unsettled).int(x.Version).change()
		if err == nil && n == 0 {
			err = store.ErrExists
		}
		return err
	})
	return wrap("add tenant "+x.ID, err)
}

// Get implements store.Tenants.
func (t tenantRows) Get(ctx context.Context, id string) (x store.Tenant, err error) {
	err = t.s.readers.read(ctx, func(c *conn) error {
		x, err = oneTenant(c, id)
		return err
	})
	return x, wrap("get tenant "+id, err)
}

// List implements store.Tenants.
func (t tenantRows) List(ctx context.Context, after string, limit int) ([]store.Tenant, error) {
	return t.list(ctx, listTenants, after, limit)
}

// Unsettled implements store.Tenants.
func (t tenantRows) Unsettled(ctx context.Context, after string, limit int) ([]store.Tenant, error) {
	return t.list(ctx, listUnsettled, after, limit)
}

func (t tenantRows) list(ctx context.Context, sql, after string, limit int) (out []store.Tenant, err error) {
	err = t.s.readers.read(ctx, func(c *conn) error {
		out, err = scanTenants(c.prep(sql).text(after).bound(limit))
		return err
	})
	return out, wrap("list tenants", err)
}

// Update implements store.Tenants.
func (t tenantRows) Update(ctx context.Context, x store.Tenant) error {
	err := t.s.writer.submit(ctx, 0, func(c *conn) error {
		n, err := c.prep(updateTenant).text(x.Name).text(x.State).bool(x.Unsettled).text(x.ID).int(x.Version).change()
		if err != nil || n == 1 {
			return err
		}
		if _, err := oneTenant(c, x.ID); err != nil {
			return err
		}
		return store.ErrStale
	})
	t.s.standingCache.clear()
	return wrap("update tenant "+x.ID, err)
}
