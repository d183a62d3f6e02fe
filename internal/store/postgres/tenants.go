package postgres

import (
	"context"

	"github.com/fermata-run/fermata/internal/store"
	"github.com/jackc/pgx/v5"
)

// tenantRows implements store.Tenants.
type tenantRows struct{ s *Store }

const (
	tenantColumns = `tenant, name, state, created_at, unsettled, version`
	insertTenant  = `INSERT INTO tenants (` + tenantColumns + `) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`
	updateTenant  = `UPDATE tenants SET name = $3, state = $4, unsettled = $5, version = version + 1 WHERE tenant = $1 AND version = $2`
	selectTenant  = `SELECT ` + tenantColumns + ` FROM tenants WHERE tenant = $1`
	listTenants   = `SELECT ` + tenantColumns + ` FROM tenants WHERE tenant > $1 ORDER BY tenant LIMIT $2`
	listUnsettled = `SELECT ` + tenantColumns + ` FROM tenants WHERE unsettled AND tenant > $1 ORDER BY tenant LIMIT $2`
)

// Tenants implements store.Store.
func (s *Store) Tenants() store.Tenants { return tenantRows{s} }

func scanTenant(row pgx.CollectableRow) (x store.Tenant, err error) {
	err = row.Scan(&x.ID, (*raw)(&x.Name), &x.State, (*stamp)(&x.CreatedAt), &x.Unsettled, &x.Version)
	return x, err
}

// Add implements store.Tenants.
func (t tenantRows) Add(ctx context.Context, x store.Tenant) error {
	return wrap("add tenant "+x.ID, t.s.tx(ctx, func(q querier) error {
		n, err := change(ctx, q, insertTenant, x.ID, []byte(x.Name), x.State, millis(x.CreatedAt), x.Unsettled, x.Version)
		if err == nil && n == 0 {
			err = store.ErrExists
		}
		return err
	}))
}

// Get implements store.Tenants.
func (t tenantRows) Get(ctx context.Context, id string) (x store.Tenant, err error) {
	err = t.s.read(ctx, func(q querier) error {
		x, err = scanOne(ctx, q, scanTenant, selectTenant, id)
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
	err = t.s.read(ctx, func(q querier) error {
		out, err = list(ctx, q, scanTenant, sql, after, bound(limit))
		return err
	})
	return out, wrap("list tenants", err)
}

// Update implements store.Tenants.
func (t tenantRows) Update(ctx context.Context, x store.Tenant) error {
	return wrap("update tenant "+x.ID, t.s.tx(ctx, func(q querier) error {
		n, err := change(ctx, q, updateTenant, x.ID, x.Version, []byte(x.Name), x.State, x.Unsettled)
		if err != nil || n > 0 {
			return err
		}
		if _, err = scanOne(ctx, q, scanTenant, selectTenant, x.ID); err == nil {
			err = store.ErrStale
		}
		return err
	}))
}
