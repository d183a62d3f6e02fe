package postgres

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/fermata-run/fermata/internal/store"
	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"
)

// keys implements store.Keys. A key is looked up each time: another replica may have
// changed it.
type keys struct{ s *Store }

const (
	keyColumns = `k.tenant, k.id, k.hash, k.form, k.old_hash, k.old_until, k.name, k.kind, k.workspace, k.scopes, k.in_groups, k.has_roles,
		k.created_at, k.expires_at, k.revoked_at, k.used_at, k.version`
	oneKey    = ` WHERE tenant = $1 AND id = $2`
	insertKey = `INSERT INTO keys (tenant, id, hash, form, old_hash, old_until, name, kind, workspace, scopes, in_groups, has_roles,
		expires_at, revoked_at, created_at, used_at, version)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17) ON CONFLICT DO NOTHING`
	updateKey = `UPDATE keys SET hash = $3, form = $4, old_hash = $5, old_until = $6, name = $7, kind = $8, workspace = $9,
		scopes = $10, in_groups = $11, has_roles = $12, expires_at = $13, revoked_at = $14, version = version + 1` + oneKey
	touchKey   = `UPDATE keys SET used_at = $3` + oneKey + ` AND coalesce(used_at, 0) < $3`
	keyVersion = `SELECT version FROM keys` + oneKey + ` FOR UPDATE`

	takeHash   = `INSERT INTO key_hashes (hash, tenant, id) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`
	dropHashes = `DELETE FROM key_hashes` + oneKey

	keyByHash = `SELECT ` + keyColumns + ` FROM key_hashes h JOIN keys k ON k.tenant = h.tenant AND k.id = h.id WHERE h.hash = $1`
	keyByID   = `SELECT ` + keyColumns + ` FROM keys k WHERE k.tenant = $1 AND k.id = $2`
	listKeys  = `SELECT ` + keyColumns + ` FROM keys k WHERE k.tenant = $1 AND k.id > $2 ORDER BY k.id LIMIT $3`
	unkeyed   = `SELECT ` + keyColumns + ` FROM keys k WHERE NOT k.form ORDER BY k.tenant, k.id LIMIT $1`
	countKeys = `SELECT count(*) FROM keys`
)

// keyFields are the first arguments of insertKey and of updateKey.
func keyFields(k *store.Key) ([]any, error) {
	lists, err := encodeLists(k.Scopes, k.Groups, k.Roles)
	if err != nil {
		return nil, err
	}
	return []any{
		k.Tenant, k.ID, full(k.Hash), k.Keyed, k.OldHash, millis(k.OldUntil), []byte(k.Name), []byte(k.Kind), []byte(k.Workspace),
		lists[0], lists[1], lists[2], millis(k.ExpiresAt), millis(k.RevokedAt),
	}, nil
}

// takeHashes makes hashes a key's own.
func takeHashes(ctx context.Context, q querier, k *store.Key) error {
	hashes := [][]byte{full(k.Hash)}
	if k.OldHash != nil && !bytes.Equal(k.OldHash, k.Hash) {
		hashes = append(hashes, k.OldHash)
	}
	slices.SortFunc(hashes, bytes.Compare) // two who want the same ones want them in one order
	for _, h := range hashes {
		n, err := change(ctx, q, takeHash, h, k.Tenant, k.ID)
		if err == nil && n == 0 {
			err = store.ErrExists
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Add implements store.Keys.
func (k keys) Add(ctx context.Context, key store.Key) error {
	fields, err := keyFields(&key)
	if err == nil {
		fields = append(fields, millis(key.CreatedAt), millis(key.UsedAt), key.Version)
		err = k.s.tx(ctx, func(q querier) error {
			n, err := change(ctx, q, insertKey, fields...)
			if err == nil && n == 0 {
				err = store.ErrExists
			}
			if err != nil {
				return err
			}
			return takeHashes(ctx, q, &key)
		})
	}
	return wrap("add key "+key.ID, err)
}

// Update implements store.Keys.
func (k keys) Update(ctx context.Context, key store.Key) error {
	fields, err := keyFields(&key)
	if err == nil {
		err = k.s.tx(ctx, func(q querier) error {
			var now int64
			found, err := one(ctx, q, keyVersion, fields[:2], &now)
			switch {
			case err != nil:
				return err
			case !found:
				return store.ErrNotFound
			case now != key.Version:
				return store.ErrStale
			}
			if _, err := q.Exec(ctx, dropHashes, fields[:2]...); err != nil {
				return err
			}
			if err := takeHashes(ctx, q, &key); err != nil {
				return err
			}
			_, err = q.Exec(ctx, updateKey, fields...)
			return err
		})
	}
	return wrap("update key "+key.ID, err)
}

// Touch implements store.Keys.
func (k keys) Touch(ctx context.Context, used []store.Used) error {
	if len(used) == 0 {
		return nil
	}
	used = slices.Clone(used)
	slices.SortFunc(used, func(a, b store.Used) int { // replicas touch the same keys, so in one order
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.ID, b.ID))
	})
	return wrap("touch keys", k.s.tx(ctx, func(q querier) error {
		b := &pgx.Batch{}
		for _, u := range used {
			b.Queue(touchKey, u.Tenant, u.ID, u.At.UnixMilli())
		}
		return q.SendBatch(ctx, b).Close()
	}))
}

func scanKey(row pgx.CollectableRow) (k store.Key, err error) {
	var lists [3][]byte
	err = row.Scan(&k.Tenant, &k.ID, &k.Hash, &k.Keyed, &k.OldHash, (*stamp)(&k.OldUntil), (*raw)(&k.Name), (*raw)(&k.Kind), (*raw)(&k.Workspace),
		&lists[0], &lists[1], &lists[2],
		(*stamp)(&k.CreatedAt), (*stamp)(&k.ExpiresAt), (*stamp)(&k.RevokedAt), (*stamp)(&k.UsedAt), &k.Version)
	if err == nil {
		err = decodeLists(lists[:], &k.Scopes, &k.Groups, &k.Roles)
	}
	if len(k.Groups) == 0 {
		k.Groups = nil
	}
	if len(k.Roles) == 0 {
		k.Roles = nil
	}
	return k, err
}

// encodeLists makes JSON arrays of lists of names.
func encodeLists(lists ...[]string) ([][]byte, error) {
	out := make([][]byte, len(lists))
	for i, l := range lists {
		b, err := json.Marshal(l)
		if err != nil {
			return nil, fmt.Errorf("a list of names: %w", err)
		}
		out[i] = b
	}
	return out, nil
}

func decodeLists(lists [][]byte, into ...*[]string) error {
	for i, l := range into {
		if err := json.Unmarshal(lists[i], l); err != nil {
			return damage(fmt.Errorf("a list of names: %w", err))
		}
	}
	return nil
}

// ByHash implements store.Keys. Every request asks, so those that come with one key at
// one moment ask together.
func (k keys) ByHash(ctx context.Context, hash []byte) (store.Key, error) {
	key, err := k.s.byHash.do(ctx, string(hash), func(ctx context.Context) (store.Key, error) {
		return k.find(ctx, keyByHash, full(hash))
	})
	key.Hash, key.OldHash = slices.Clone(key.Hash), slices.Clone(key.OldHash)
	key.Scopes, key.Groups, key.Roles = slices.Clone(key.Scopes), slices.Clone(key.Groups), slices.Clone(key.Roles)
	return key, err
}

// ByID implements store.Keys.
func (k keys) ByID(ctx context.Context, tenant, id string) (store.Key, error) {
	return k.find(ctx, keyByID, tenant, id)
}

func (k keys) find(ctx context.Context, sql string, args ...any) (key store.Key, err error) {
	err = k.s.read(ctx, func(q querier) error {
		key, err = scanOne(ctx, q, scanKey, sql, args...)
		return err
	})
	return key, wrap("look up a key", err)
}

// List implements store.Keys.
func (k keys) List(ctx context.Context, tenant, after string, limit int) ([]store.Key, error) {
	return k.list(ctx, listKeys, tenant, after, bound(limit))
}

// Unkeyed implements store.Keys.
func (k keys) Unkeyed(ctx context.Context, limit int) ([]store.Key, error) {
	return k.list(ctx, unkeyed, bound(limit))
}

func (k keys) list(ctx context.Context, sql string, args ...any) (out []store.Key, err error) {
	err = k.s.read(ctx, func(q querier) error {
		out, err = list(ctx, q, scanKey, sql, args...)
		return err
	})
	return out, wrap("list keys", err)
}

// Count implements store.Keys.
func (k keys) Count(ctx context.Context) (n int, err error) {
	err = k.s.read(ctx, func(q querier) error {
		_, err := one(ctx, q, countKeys, nil, &n)
		return err
	})
	return n, wrap("count keys", err)
}
