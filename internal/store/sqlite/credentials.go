package sqlite

import (
	"context"

	"github.com/fermata-run/fermata/internal/store"
)

// credentials implements store.Credentials.
type credentials struct{ s *Store }

// Credentials implements store.Store.
func (s *Store) Credentials() store.Credentials { return credentials{s} }

const (
	oneCredential     = ` WHERE tenant = ? AND ref = ?`
	credentialColumns = `ref, coalesce(run_id, ''), version, meta, previous_until, created_at, rotated_at`

	countCredentials = `SELECT count(*) FROM credentials WHERE tenant = ?`
	insertCredential = `INSERT INTO credentials (tenant, ref, run_id, version, meta, sealed, previous, previous_until, created_at, rotated_at)
		VALUES (?,?,?,?,?,?,?,?,?,?)`
	selectCredential = `SELECT ` + credentialColumns + `, sealed, previous FROM credentials` + oneCredential
	listCredentials  = `SELECT ` + credentialColumns + ` FROM credentials WHERE tenant = ? AND ref > ? ORDER BY ref LIMIT ?`
	rotateCredential = `UPDATE credentials SET previous = sealed, sealed = ?, previous_until = ?, rotated_at = ?, version = version + 1` +
		oneCredential + ` AND version = ?`
	removeCredential = `DELETE FROM credentials` + oneCredential
	// A run whose effects are still being undone is not over: its nodes execute.
	endedCredentials = `DELETE FROM credentials WHERE (tenant, ref) IN (
		SELECT c.tenant, c.ref FROM credentials c INDEXED BY credentials_run
		LEFT JOIN runs r ON r.tenant = c.tenant AND r.run_id = c.run_id
		WHERE c.run_id IS NOT NULL AND (r.run_id IS NULL OR r.status IN ('completed', 'failed', 'cancelled')
			AND coalesce(r.compensation, '') NOT IN ('pending', 'running')) LIMIT ?)`
)

// scanCredential reads credentialColumns.
func scanCredential(r *row, tenant string) store.Credential {
	c := store.Credential{Tenant: tenant, Ref: r.text(), Run: r.text(), Version: r.int()}
	c.Meta = r.blob()
	c.PreviousUntil, c.CreatedAt, c.RotatedAt = r.time(), r.time(), r.time()
	return c
}

// optionalBlob binds a blob that is NULL if it is empty.
func (q *query) optionalBlob(v []byte) *query {
	if len(v) == 0 {
		return q.null()
	}
	return q.blob(v)
}

// Add implements store.Credentials.
func (x credentials) Add(ctx context.Context, v store.Credential, most int) error {
	if err := v.Check(); err != nil {
		return wrap("add a credential", err)
	}
	err := x.s.writer.submit(ctx, 0, func(c *conn) error {
		found, err := c.prep(selectCredential).text(v.Tenant).text(v.Ref).one(func(*row) {})
		if err == nil && found {
			err = store.ErrExists
		}
		var have int64
		if err == nil {
			_, err = c.prep(countCredentials).text(v.Tenant).one(func(r *row) { have = r.int() })
		}
		if err == nil && most > 0 && have >= int64(most) {
			err = store.ErrFull
		}
		if err != nil {
			return err
		}
		return c.prep(insertCredential).text(v.Tenant).text(v.Ref).optional(v.Run).int(v.Version).blob(v.Meta).blob(v.Sealed).
			optionalBlob(v.Previous).time(v.PreviousUntil).int(v.CreatedAt.UnixMilli()).time(v.RotatedAt).run()
	})
	return wrap("add a credential", err)
}

// Get implements store.Credentials.
func (x credentials) Get(ctx context.Context, tenant, ref string) (v store.Credential, err error) {
	err = x.s.readers.read(ctx, func(c *conn) error {
		found, err := c.prep(selectCredential).text(tenant).text(ref).one(func(r *row) {
			v = scanCredential(r, tenant)
			v.Sealed, v.Previous = r.blob(), r.blob()
		})
		if err == nil && !found {
			err = store.ErrNotFound
		}
		return err
	})
	if err != nil {
		return store.Credential{}, wrap("read a credential", err)
	}
	return v, nil
}

// List implements store.Credentials.
func (x credentials) List(ctx context.Context, tenant, after string, limit int) (out []store.Credential, err error) {
	err = x.s.readers.read(ctx, func(c *conn) error {
		return c.prep(listCredentials).text(tenant).text(after).bound(limit).each(func(r *row) (bool, error) {
			out = append(out, scanCredential(r, tenant))
			return true, nil
		})
	})
	if err != nil {
		return nil, wrap("list credentials", err)
	}
	return out, nil
}

// Rotate implements store.Credentials.
func (x credentials) Rotate(ctx context.Context, v store.Rotation) error {
	err := x.s.writer.submit(ctx, 0, func(c *conn) error {
		n, err := c.prep(rotateCredential).blob(full(v.Sealed)).time(v.Until).time(v.At).text(v.Tenant).text(v.Ref).int(v.From).change()
		if err != nil || n > 0 {
			return err
		}
		found, err := c.prep(selectCredential).text(v.Tenant).text(v.Ref).one(func(*row) {})
		switch {
		case err != nil:
			return err
		case found:
			return store.ErrStale
		}
		return store.ErrNotFound
	})
	return wrap("rotate a credential", err)
}

// Remove implements store.Credentials.
func (x credentials) Remove(ctx context.Context, tenant, ref string) error {
	err := x.s.writer.submit(ctx, 0, func(c *conn) error {
		n, err := c.prep(removeCredential).text(tenant).text(ref).change()
		if err == nil && n == 0 {
			err = store.ErrNotFound
		}
		return err
	})
	return wrap("remove a credential", err)
}

// PurgeEnded implements store.Credentials.
func (x credentials) PurgeEnded(ctx context.Context, limit int) (n int, err error) {
	err = x.s.writer.submit(ctx, 0, func(c *conn) error {
		gone, err := c.prep(endedCredentials).bound(limit).change()
		n = int(gone)
		return err
	})
	if err != nil {
		return 0, wrap("purge credentials of runs that are over", err)
	}
	return n, nil
}
