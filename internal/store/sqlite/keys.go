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
	keyColumns = `tenant, id, hash, form, old_hash, old_until, name, kind, workspace, scopes, in_groups, has_roles,
		created_at, expires_at, revoked_at, used_at, version`
	insertKey = `INSERT INTO keys (` + keyColumns + `) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING`
	updateKey = `UPDATE keys SET hash = ?, form = ?, old_hash = ?, old_until = ?, name = ?, kind = ?, workspace = ?,
		scopes = ?, in_groups = ?, has_roles = ?, expires_at = ?, revoked_at = ?, version = version + 1
		WHERE tenant = ? AND id = ? AND version = ?`
	touchKey  = `UPDATE keys SET used_at = ?3 WHERE tenant = ?1 AND id = ?2 AND coalesce(used_at, 0) < ?3`
	selectKey = `SELECT ` + keyColumns + ` FROM keys `
	keyByHash = selectKey + `WHERE hash = ?`
	keyByOld  = selectKey + `WHERE old_hash = ?`
	keyByID   = selectKey + `WHERE tenant = ? AND id = ?`
	listKeys  = selectKey + `WHERE tenant = ? AND id > ? ORDER BY id LIMIT ?`
	unkeyed   = selectKey + `WHERE form = 0 LIMIT ?`
	countKeys = `SELECT count(*) FROM keys`
)

// Add implements store.Keys.
func (k keys) Add(ctx context.Context, key store.Key) error {
	lists, err := encodeLists(key.Scopes, key.Groups, key.Roles)
	if err == nil {
		err = k.s.writer.submit(ctx, 0, func(c *conn) error {
			if taken, err := hashTaken(c, &key); err != nil || taken {
				return orExists(err)
			}
			n, err := c.prep(insertKey).text(key.Tenant).text(key.ID).blob(full(key.Hash)).bool(key.Keyed).
				blob(key.OldHash).time(key.OldUntil).text(key.Name).text(key.Kind).text(key.Workspace).
				text(lists[0]).text(lists[1]).text(lists[2]).
				time(key.CreatedAt).time(key.ExpiresAt).time(key.RevokedAt).time(key.UsedAt).int(key.Version).change()
			if err == nil && n == 0 {
				err = store.ErrExists
			}
			return err
		})
	}
	k.s.keyCache.clear()
	return wrap("add key "+key.ID, err)
}

// hashTaken reports whether another key has one of the hashes as either of its own:
// the two indexes do not know of each other.
func hashTaken(c *conn, key *store.Key) (taken bool, err error) {
	for _, h := range [][]byte{key.Hash, key.OldHash} {
		for _, sql := range []string{keyByHash, keyByOld} {
			if h == nil || err != nil {
				continue
			}
			_, err = c.prep(sql).blob(h).one(func(r *row) {
				tenant, id := r.text(), r.text()
				taken = taken || tenant != key.Tenant || id != key.ID
			})
		}
	}
	return taken, err
}

func orExists(err error) error {
	if err == nil {
		err = store.ErrExists
	}
	return err
}

// Update implements store.Keys.
func (k keys) Update(ctx context.Context, key store.Key) error {
	lists, err := encodeLists(key.Scopes, key.Groups, key.Roles)
	if err == nil {
		err = k.s.writer.submit(ctx, 0, func(c *conn) error {
			now, found, err := oneKey(c.prep(keyByID).text(key.Tenant).text(key.ID))
			switch {
			case err != nil:
				return err
			case !found:
				return store.ErrNotFound
			case now.Version != key.Version:
				return store.ErrStale
			}
			if taken, err := hashTaken(c, &key); err != nil || taken {
				return orExists(err)
			}
			return c.prep(updateKey).blob(full(key.Hash)).bool(key.Keyed).blob(key.OldHash).time(key.OldUntil).
				text(key.Name).text(key.Kind).text(key.Workspace).text(lists[0]).text(lists[1]).text(lists[2]).
				time(key.ExpiresAt).time(key.RevokedAt).text(key.Tenant).text(key.ID).int(key.Version).run()
		})
	}
	k.s.keyCache.clear()
	return wrap("update key "+key.ID, err)
}

// Touch implements store.Keys. What the cache holds of a key stays: nobody decides
// by when it was used.
func (k keys) Touch(ctx context.Context, used []store.Used) error {
	if len(used) == 0 {
		return nil
	}
	return wrap("touch keys", k.s.writer.submit(ctx, 0, func(c *conn) error {
		for _, u := range used {
			if err := c.prep(touchKey).text(u.Tenant).text(u.ID).time(u.At).run(); err != nil {
				return err
			}
		}
		return nil
	}))
}

// ByHash implements store.Keys.
func (k keys) ByHash(ctx context.Context, hash []byte) (key store.Key, err error) {
	cached, epoch, ok := k.s.keyCache.get(string(hash))
	if ok {
		// The cache must not outlive the store, nor a call its context.
		return cached, wrap("look up a key", k.s.writer.ready(ctx))
	}
	key, err = k.find(ctx, func(c *conn) *query { return c.prep(keyByHash).blob(full(hash)) },
		func(c *conn) *query { return c.prep(keyByOld).blob(full(hash)) })
	if err == nil {
		k.s.keyCache.put(string(hash), key, epoch)
	}
	return key, wrap("look up a key", err)
}

// ByID implements store.Keys.
func (k keys) ByID(ctx context.Context, tenant, id string) (store.Key, error) {
	key, err := k.find(ctx, func(c *conn) *query { return c.prep(keyByID).text(tenant).text(id) })
	return key, wrap("look up a key", err)
}

// find reads the first key that one of the queries finds.
func (k keys) find(ctx context.Context, by ...func(*conn) *query) (key store.Key, err error) {
	err = k.s.readers.snapshot(ctx, func(c *conn) error {
		for _, q := range by {
			var found bool
			if key, found, err = oneKey(q(c)); err != nil || found {
				return err
			}
		}
		return store.ErrNotFound
	})
	return key, err
}

func oneKey(q *query) (key store.Key, found bool, err error) {
	list, err := scanKeys(q)
	if err != nil || len(list) == 0 {
		return key, false, err
	}
	return list[0], true, nil
}

func scanKeys(q *query) (out []store.Key, err error) {
	err = q.each(func(r *row) (bool, error) {
		var k store.Key
		k.Tenant, k.ID = r.text(), r.text()
		k.Hash, k.Keyed = r.blob(), r.bool()
		k.OldHash, k.OldUntil = r.blob(), r.time()
		k.Name, k.Kind, k.Workspace = r.text(), r.text(), r.text()
		err := decodeLists(r, &k.Scopes, &k.Groups, &k.Roles)
		k.CreatedAt, k.ExpiresAt, k.RevokedAt, k.UsedAt = r.time(), r.time(), r.time(), r.time()
		k.Version = r.int()
		if len(k.Groups) == 0 {
			k.Groups = nil
		}
		if len(k.Roles) == 0 {
			k.Roles = nil
		}
		out = append(out, k)
		return true, err
	})
	return out, err
}

// encodeLists makes JSON arrays of lists of names.
func encodeLists(lists ...[]string) ([]string, error) {
	out := make([]string, len(lists))
	for i, l := range lists {
		b, err := json.Marshal(l)
		if err != nil {
			return nil, fmt.Errorf("a list of names: %w", err)
		}
		out[i] = string(b)
	}
	return out, nil
}

// decodeLists reads the next columns as such arrays.
func decodeLists(r *row, into ...*[]string) error {
	var first error
	for _, l := range into {
		if err := json.Unmarshal([]byte(r.text()), l); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// List implements store.Keys.
func (k keys) List(ctx context.Context, tenant, after string, limit int) (out []store.Key, err error) {
	err = k.s.readers.read(ctx, func(c *conn) error {
		out, err = scanKeys(c.prep(listKeys).text(tenant).text(after).bound(limit))
		return err
	})
	return out, wrap("list keys", err)
}

// Unkeyed implements store.Keys.
func (k keys) Unkeyed(ctx context.Context, limit int) (out []store.Key, err error) {
	err = k.s.readers.read(ctx, func(c *conn) error {
		out, err = scanKeys(c.prep(unkeyed).bound(limit))
		return err
	})
	return out, wrap("list keys of an older form", err)
}

// Count implements store.Keys.
func (k keys) Count(ctx context.Context) (n int, err error) {
	err = k.s.readers.read(ctx, func(c *conn) error {
		_, err := c.prep(countKeys).one(func(r *row) { n = int(r.int()) })
		return err
	})
	return n, wrap("count keys", err)
}
