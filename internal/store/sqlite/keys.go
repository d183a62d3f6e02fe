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
	insertKey = `INSERT INTO keys (id, hash, tenant, name, scopes, created_at, revoked_at, in_groups, has_roles)
		VALUES (?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING`
	selectKey = `SELECT id, hash, tenant, name, scopes, created_at, revoked_at, in_groups, has_roles FROM keys `
	keyByHash = selectKey + `WHERE hash = ?`
	keyByID   = selectKey + `WHERE id = ? AND tenant = ?`
	countKeys = `SELECT count(*) FROM keys`
)

// Add implements store.Keys. Neither an id nor a hash can be there twice.
func (k keys) Add(ctx context.Context, key store.Key) error {
	var lists [3]string
	for i, l := range [][]string{key.Scopes, key.Groups, key.Roles} {
		b, err := json.Marshal(l)
		if err != nil {
			return wrap("add key", fmt.Errorf("scopes, groups or roles: %w", err))
		}
		lists[i] = string(b)
	}
	err := k.s.writer.submit(ctx, 0, func(c *conn) error {
		n, err := c.prep(insertKey).text(key.ID).blob(full(key.Hash)).text(key.Tenant).text(key.Name).
			text(lists[0]).time(key.CreatedAt).time(key.RevokedAt).text(lists[1]).text(lists[2]).change()
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
	key, err = k.find(ctx, func(c *conn) *query { return c.prep(keyByHash).blob(full(hash)) })
	if err == nil {
		k.s.keyCache.put(string(hash), key, epoch)
	}
	return key, wrap("look up a key", err)
}

// ByID implements store.Keys.
func (k keys) ByID(ctx context.Context, tenant, id string) (store.Key, error) {
	key, err := k.find(ctx, func(c *conn) *query { return c.prep(keyByID).text(id).text(tenant) })
	return key, wrap("look up a key", err)
}

func (k keys) find(ctx context.Context, by func(*conn) *query) (key store.Key, err error) {
	var lists [3]string
	err = k.s.readers.read(ctx, func(c *conn) error {
		found, err := by(c).one(func(r *row) {
			key.ID = r.text()
			key.Hash = r.blob()
			key.Tenant = r.text()
			key.Name = r.text()
			lists[0] = r.text()
			key.CreatedAt = r.time()
			key.RevokedAt = r.time()
			lists[1], lists[2] = r.text(), r.text()
		})
		if err == nil && !found {
			err = store.ErrNotFound
		}
		return err
	})
	for i, into := range []*[]string{&key.Scopes, &key.Groups, &key.Roles} {
		if err == nil {
			err = json.Unmarshal([]byte(lists[i]), into)
		}
	}
	if len(key.Groups) == 0 {
		key.Groups = nil
	}
	if len(key.Roles) == 0 {
		key.Roles = nil
	}
	return key, err
}

// Count implements store.Keys.
func (k keys) Count(ctx context.Context) (n int, err error) {
	err = k.s.readers.read(ctx, func(c *conn) error {
		_, err := c.prep(countKeys).one(func(r *row) { n = int(r.int()) })
		return err
	})
	return n, wrap("count keys", err)
}
