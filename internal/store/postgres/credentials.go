package postgres

import (
	"context"

	"github.com/fermata-run/fermata/internal/store"
	"github.com/jackc/pgx/v5"
)

// credentials implements store.Credentials.
type credentials struct{ s *Store }

// Credentials implements store.Store.
func (s *Store) Credentials() store.Credentials { return credentials{s} }

const (
	oneCredential     = ` WHERE tenant = $1 AND ref = $2`
	credentialColumns = `ref, run_id, version, meta, previous_until, created_at, rotated_at`

	// Whoever adds a credential comes after whoever adds one to the tenant now, so
	// that the count holds.
	turnCredentials = `INSERT INTO credential_turns (tenant, turn) VALUES ($1, 1)
		ON CONFLICT (tenant) DO UPDATE SET turn = credential_turns.turn + 1`
	countCredentials = `SELECT count(*) FROM credentials WHERE tenant = $1`
	insertCredential = `INSERT INTO credentials (tenant, ref, run_id, version, meta, sealed, previous, previous_until, created_at, rotated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING`
	selectCredential = `SELECT ` + credentialColumns + `, sealed, previous FROM credentials` + oneCredential
	listCredentials  = `SELECT ` + credentialColumns + `, NULL::bytea, NULL::bytea FROM credentials WHERE tenant = $1 AND ref > $2 ORDER BY ref LIMIT $3`
	rotateCredential = `UPDATE credentials SET previous = sealed, sealed = $4, previous_until = $5, rotated_at = $6, version = version + 1` +
		oneCredential + ` AND version = $3`
	removeCredential = `DELETE FROM credentials` + oneCredential
	// A run whose effects are still being undone is not over: its nodes execute.
	endedCredentials = `DELETE FROM credentials WHERE (tenant, ref) IN (
		SELECT c.tenant, c.ref FROM credentials c
		LEFT JOIN runs r ON r.tenant = c.tenant AND r.run_id = c.run_id
		WHERE c.run_id IS NOT NULL AND (r.run_id IS NULL OR r.status IN ('completed', 'failed', 'cancelled')
			AND coalesce(r.compensation, '') NOT IN ('pending', 'running')) LIMIT $1)`
)

func scanCredential(tenant string) func(row pgx.CollectableRow) (store.Credential, error) {
	return func(row pgx.CollectableRow) (c store.Credential, err error) {
		c.Tenant = tenant
		err = row.Scan(&c.Ref, (*opt)(&c.Run), &c.Version, &c.Meta, (*stamp)(&c.PreviousUntil), (*stamp)(&c.CreatedAt),
			(*stamp)(&c.RotatedAt), &c.Sealed, &c.Previous)
		return c, err
	}
}

// filled is nil for no bytes, which a column keeps as NULL.
func filled(v []byte) []byte {
	if len(v) == 0 {
		return nil
	}
	return v
}

// Add implements store.Credentials.
func (x credentials) Add(ctx context.Context, v store.Credential, most int) error {
	if err := v.Check(); err != nil {
		return wrap("add a credential", err)
	}
	return wrap("add a credential", x.s.tx(ctx, func(q querier) error {
		if _, err := q.Exec(ctx, turnCredentials, v.Tenant); err != nil {
			return err
		}
		have := 0
		if _, err := one(ctx, q, countCredentials, []any{v.Tenant}, &have); err != nil {
			return err
		}
		n, err := change(ctx, q, insertCredential, v.Tenant, v.Ref, optional(v.Run), v.Version, v.Meta, v.Sealed,
			filled(v.Previous), millis(v.PreviousUntil), v.CreatedAt.UnixMilli(), millis(v.RotatedAt))
		switch {
		case err != nil:
			return err
		case n == 0:
			return store.ErrExists
		case most > 0 && have >= most:
			return store.ErrFull
		}
		return nil
	}))
}

// Get implements store.Credentials.
func (x credentials) Get(ctx context.Context, tenant, ref string) (v store.Credential, err error) {
	err = x.s.read(ctx, func(q querier) error {
		v, err = scanOne(ctx, q, scanCredential(tenant), selectCredential, tenant, ref)
		return err
	})
	if err != nil {
		return store.Credential{}, wrap("read a credential", err)
	}
	return v, nil
}

// List implements store.Credentials.
func (x credentials) List(ctx context.Context, tenant, after string, limit int) (out []store.Credential, err error) {
	err = x.s.read(ctx, func(q querier) error {
		out, err = list(ctx, q, scanCredential(tenant), listCredentials, tenant, after, bound(limit))
		return err
	})
	return out, wrap("list credentials", err)
}

// Rotate implements store.Credentials.
func (x credentials) Rotate(ctx context.Context, v store.Rotation) error {
	return wrap("rotate a credential", x.s.tx(ctx, func(q querier) error {
		n, err := change(ctx, q, rotateCredential, v.Tenant, v.Ref, v.From, full(v.Sealed), millis(v.Until), millis(v.At))
		if err != nil || n > 0 {
			return err
		}
		if _, err = scanOne(ctx, q, scanCredential(v.Tenant), selectCredential, v.Tenant, v.Ref); err == nil {
			err = store.ErrStale
		}
		return err
	}))
}

// Remove implements store.Credentials.
func (x credentials) Remove(ctx context.Context, tenant, ref string) error {
	return wrap("remove a credential", x.s.tx(ctx, func(q querier) error {
		n, err := change(ctx, q, removeCredential, tenant, ref)
		if err == nil && n == 0 {
			err = store.ErrNotFound
		}
		return err
	}))
}

// PurgeEnded implements store.Credentials.
func (x credentials) PurgeEnded(ctx context.Context, limit int) (n int, err error) {
	err = x.s.tx(ctx, func(q querier) error {
		gone, err := change(ctx, q, endedCredentials, bound(limit))
		n = int(gone)
		return err
	})
	if err != nil {
		return 0, wrap("purge credentials of runs that are over", err)
	}
	return n, nil
}
