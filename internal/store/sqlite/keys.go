package sqlite

import (
	"context"
	"fmt"

	"github.com/fermata-run/fermata/internal/store"
	"github.com/go-json-experiment/json"
)

// keys implements store.Keys.
type keys struct{ s *Store }

const (
	insertKey = `INSERT INTO keys (id, hash, tenant, name, scopes, created_at, revoked_at)
		VALUES (?,?,?,?,?,?,?) ON CONFLICT DO NOTHING`
	keyByHash = `SELECT id, hash, tenant, name, scopes, created_at, revoked_at FROM keys WHERE hash = ?`
	countKeys = `SELECT count(*) FROM keys`
)

// Add implements store.Keys. Neither an id nor a hash can be there twice.
func (k keys) Add(ctx context.Context, key store.Key) error {
	scopes, err := json.Marshal(key.Scopes)
	if err != nil {
		return wrap("add key", fmt.Errorf("scopes: %w", err))
	}
	err = k.s.writer.submit(ctx, 0, func(c *conn) error {
		n, err := c.prep(insertKey).text(key.ID).blob(full(key.Hash)).text(key.Tenant).text(key.Name).
			text(string(scopes)).time(key.CreatedAt).time(key.RevokedAt).change()
		if err == nil && n == 0 {
			err = store.ErrExists
		}
		return err
	})
	k.s.keyCache.clear()
	return wrap("add key "+key.ID, err)
}

// ByHash implements store.Keys. A revoked key is found, too.
func (k keys) ByHash(ctx context.Context, hash []byte) (key store.Key, err error) {
	cached, epoch, ok := k.s.keyCache.get(string(hash))
	if ok {
		// The cache must not outlive the store, nor a call its context.
		return cached, wrap("look up a key", k.s.writer.ready(ctx))
	}
	var scopes string
	err = k.s.readers.read(ctx, func(c *conn) error {
		found, err := c.prep(keyByHash).blob(full(hash)).one(func(r *row) {
			key.ID = r.text()
			key.Hash = r.blob()
			key.Tenant = r.text()
			key.Name = r.text()
			scopes = r.text()
			key.CreatedAt = r.time()
			key.RevokedAt = r.time()
		})
		if err == nil && !found {
			err = store.ErrNotFound
		}
		return err
	})
	if err == nil {
		err = json.Unmarshal([]byte(scopes), &key.Scopes)
	}
	if err == nil {
		k.s.keyCache.put(string(hash), key, epoch)
	}
	return key, wrap("look up a key", err)
}

// Count implements store.Keys.
func (k keys) Count(ctx context.Context) (n int, err error) {
	err = k.s.readers.read(ctx, func(c *conn) error {
		_, err := c.prep(countKeys).one(func(r *row) { n = int(r.int()) })
		return err
	})
	return n, wrap("count keys", err)
}
