package postgres

import (
	"context"
	"sync"

	"github.com/fermata-run/fermata/internal/store"
	"github.com/jackc/pgx/v5"
)

// workflows implements store.Workflows.
type workflows struct{ s *Store }

const (
	workflowColumns = `tenant, id, version, digest, created_at, latest, definition`
	oneWorkflow     = ` WHERE tenant = $1 AND id = $2`
	oneVersion      = oneWorkflow + ` AND version = $3`

	// Who changes which version is the latest comes after whoever does so now.
	lockWorkflow = `INSERT INTO workflow_turns (tenant, id, turn) VALUES ($1, $2, 0)
		ON CONFLICT (tenant, id) DO UPDATE SET turn = workflow_turns.turn + 1`
	workflowDigest = `SELECT digest FROM workflows` + oneVersion
	insertWorkflow = `INSERT INTO workflows (tenant, id, version, digest, definition, created_at, latest, ord)
		SELECT $1, $2, $3, $4, $5, $6, false, coalesce(max(ord), 0) + 1 FROM workflows` + oneWorkflow
	hideWorkflow = `UPDATE workflows SET latest = false` + oneWorkflow + ` AND latest`
	makeLatest   = `UPDATE workflows SET latest = true` + oneVersion

	getVersion    = `SELECT ` + workflowColumns + ` FROM workflows` + oneVersion
	latestVersion = `SELECT version FROM workflows` + oneWorkflow + ` AND latest`
	listLatest    = `SELECT ` + workflowColumns + ` FROM workflows
		WHERE tenant = $1 AND id > $2 AND latest ORDER BY id LIMIT $3`
	listVersions = `SELECT tenant, id, version, digest, created_at, latest, NULL::bytea FROM workflows
		WHERE tenant = $1 AND id = $2 ORDER BY ord DESC`
)

// cache keeps definitions of versions, which never change; whether one is the latest
// is asked each time. A full cache begins anew.
type cache struct {
	mu sync.RWMutex
	m  map[[3]string]store.Workflow
}

const (
	maxCached           = 512
	maxCachedDefinition = 64 << 10 // keeps a few giants from filling the memory
)

func (c *cache) get(key [3]string) (store.Workflow, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	w, ok := c.m[key]
	return w, ok
}

func (c *cache) put(key [3]string, w store.Workflow) {
	if len(w.Definition) > maxCachedDefinition {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil || len(c.m) >= maxCached {
		c.m = map[[3]string]store.Workflow{}
	}
	c.m[key] = w
}

func scanWorkflow(row pgx.CollectableRow) (w store.Workflow, err error) {
	err = row.Scan(&w.Tenant, (*raw)(&w.ID), (*raw)(&w.Version), (*raw)(&w.Digest), (*stamp)(&w.CreatedAt), &w.Latest, &w.Definition)
	return w, err
}

// Put implements store.Workflows.
func (w workflows) Put(ctx context.Context, f store.Workflow) (added bool, err error) {
	if len(f.Definition) > store.MaxValue {
		return false, wrap("put workflow "+f.ID, store.ErrTooLarge)
	}
	err = w.s.tx(ctx, func(q querier) error {
		added, err = putWorkflow(ctx, q, &f)
		return err
	})
	return added && err == nil, wrap("put workflow "+f.ID, err)
}

func putWorkflow(ctx context.Context, q querier, f *store.Workflow) (added bool, err error) {
	id := []any{f.Tenant, []byte(f.ID)}
	version := append(id[:2:2], []byte(f.Version))
	if _, err := q.Exec(ctx, lockWorkflow, id...); err != nil {
		return false, err
	}
	var digest raw
	found, err := one(ctx, q, workflowDigest, version, &digest)
	if err == nil && found && string(digest) != f.Digest {
		err = store.ErrExists
	}
	if err == nil && !found {
		_, err = q.Exec(ctx, insertWorkflow, append(version, []byte(f.Digest), full(f.Definition), millis(f.CreatedAt))...)
	}
	if err == nil {
		_, err = q.Exec(ctx, hideWorkflow, id...)
	}
	if err == nil {
		_, err = q.Exec(ctx, makeLatest, version...)
	}
	if err == nil {
		err = keepSchedules(ctx, q, f)
	}
	return !found, err
}

// Get implements store.Workflows.
func (w workflows) Get(ctx context.Context, tenant, id, version string) (f store.Workflow, err error) {
	err = w.s.read(ctx, func(q querier) error {
		v, latest := version, false
		if version == "" {
			if v, err = w.latest(ctx, tenant, id); err != nil {
				return err
			}
			var ok bool
			if f, ok = w.s.definitions.get([3]string{tenant, id, v}); ok {
				f.Latest = true
				return nil
			}
			latest = true
		}
		f, err = scanOne(ctx, q, scanWorkflow, getVersion, tenant, []byte(id), []byte(v))
		if err == nil {
			w.s.definitions.put([3]string{tenant, id, v}, f)
			f.Latest = f.Latest || latest
		}
		return err
	})
	return f, wrap("get workflow "+id, err)
}

// latest is the version that counts now.
func (w workflows) latest(ctx context.Context, tenant, id string) (string, error) {
	return w.s.latest.do(ctx, [2]string{tenant, id}, func(ctx context.Context) (v string, err error) {
		err = w.s.read(ctx, func(q querier) error {
			found, err := one(ctx, q, latestVersion, []any{tenant, []byte(id)}, (*raw)(&v))
			if err == nil && !found {
				err = store.ErrNotFound
			}
			return err
		})
		return v, err
	})
}

// scanOne reads the one row of a query, or fails with ErrNotFound.
func scanOne[T any](ctx context.Context, q querier, scan func(pgx.CollectableRow) (T, error), sql string, args ...any) (v T, err error) {
	got, err := list(ctx, q, scan, sql, args...)
	if err == nil && len(got) == 0 {
		err = store.ErrNotFound
	}
	if err != nil {
		return v, err
	}
	return got[0], nil
}

// List implements store.Workflows.
func (w workflows) List(ctx context.Context, tenant, after string, limit int) (out []store.Workflow, err error) {
	err = w.s.read(ctx, func(q querier) error {
		out, err = list(ctx, q, scanWorkflow, listLatest, tenant, []byte(after), bound(limit))
		return err
	})
	return out, wrap("list workflows", err)
}

// Versions implements store.Workflows.
func (w workflows) Versions(ctx context.Context, tenant, id string) (out []store.Workflow, err error) {
	err = w.s.read(ctx, func(q querier) error {
		out, err = list(ctx, q, scanWorkflow, listVersions, tenant, []byte(id))
		if err == nil && len(out) == 0 {
			err = store.ErrNotFound
		}
		return err
	})
	return out, wrap("list versions of workflow "+id, err)
}

// Delete implements store.Workflows.
func (w workflows) Delete(ctx context.Context, tenant, id string) error {
	return wrap("delete workflow "+id, w.s.tx(ctx, func(q querier) error {
		if _, err := q.Exec(ctx, lockWorkflow, tenant, []byte(id)); err != nil {
			return err
		}
		n, err := change(ctx, q, hideWorkflow, tenant, []byte(id))
		if err == nil && n == 0 {
			err = store.ErrNotFound
		}
		if err == nil {
			_, err = q.Exec(ctx, dropSchedules, tenant, []byte(id))
		}
		return err
	}))
}

// secrets implements store.Secrets.
type secrets struct{ s *Store }

const (
	insertSecret = `INSERT INTO secrets (purpose, id, value, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`
	listSecrets  = `SELECT id, value, created_at FROM secrets WHERE purpose = $1 ORDER BY created_at DESC, id DESC`
	dropSecret   = `DELETE FROM secrets WHERE purpose = $1 AND id = $2`
)

// Add implements store.Secrets.
func (x secrets) Add(ctx context.Context, v store.Secret) error {
	return wrap("add a secret", x.s.tx(ctx, func(q querier) error {
		n, err := change(ctx, q, insertSecret, v.Purpose, v.ID, full(v.Value), v.CreatedAt.UnixMilli())
		if err == nil && n == 0 {
			err = store.ErrExists
		}
		return err
	}))
}

// List implements store.Secrets.
func (x secrets) List(ctx context.Context, purpose string) (out []store.Secret, err error) {
	err = x.s.read(ctx, func(q querier) error {
		out, err = list(ctx, q, func(row pgx.CollectableRow) (v store.Secret, err error) {
			v.Purpose = purpose
			err = row.Scan(&v.ID, &v.Value, (*stamp)(&v.CreatedAt))
			return v, err
		}, listSecrets, purpose)
		return err
	})
	return out, wrap("list secrets", err)
}

// Drop implements store.Secrets.
func (x secrets) Drop(ctx context.Context, purpose, id string) error {
	return wrap("drop a secret", x.s.tx(ctx, func(q querier) error {
		_, err := q.Exec(ctx, dropSecret, purpose, id)
		return err
	}))
}
