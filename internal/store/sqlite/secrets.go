package sqlite

import (
	"context"

	"github.com/fermata-run/fermata/internal/store"
)

// secrets implements store.Secrets.
type secrets struct{ s *Store }

const (
	insertSecret = `INSERT INTO secrets (purpose, id, value, created_at) VALUES (?,?,?,?) ON CONFLICT DO NOTHING`
	listSecrets  = `SELECT id, value, created_at FROM secrets WHERE purpose = ? ORDER BY created_at DESC, id DESC`
	dropSecret   = `DELETE FROM secrets WHERE purpose = ? AND id = ?`
)

// Secrets implements store.Store.
func (s *Store) Secrets() store.Secrets { return secrets{s} }

// Add implements store.Secrets.
func (x secrets) Add(ctx context.Context, v store.Secret) error {
	err := x.s.writer.submit(ctx, 0, func(c *conn) error {
		n, err := c.prep(insertSecret).text(v.Purpose).text(v.ID).blob(full(v.Value)).int(v.CreatedAt.UnixMilli()).change()
		if err == nil && n == 0 {
			err = store.ErrExists
		}
		return err
	})
	return wrap("add a secret", err)
}

// List implements store.Secrets.
func (x secrets) List(ctx context.Context, purpose string) (out []store.Secret, err error) {
	err = x.s.readers.read(ctx, func(c *conn) error {
		return c.prep(listSecrets).text(purpose).each(func(r *row) (bool, error) {
			v := store.Secret{Purpose: purpose, ID: r.text()}
			v.Value = r.blob()
			v.CreatedAt = r.time()
			out = append(out, v)
			return true, nil
		})
	})
	if err != nil {
		out = nil
	}
	return out, wrap("list secrets", err)
}

// Drop implements store.Secrets.
func (x secrets) Drop(ctx context.Context, purpose, id string) error {
	err := x.s.writer.submit(ctx, 0, func(c *conn) error {
		_, err := c.prep(dropSecret).text(purpose).text(id).change()
		return err
	})
	return wrap("drop a secret", err)
}
