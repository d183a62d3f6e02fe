package sqlite

import (
	"context"

	"github.com/fermata-run/fermata/internal/store"
)

// workflows implements store.Workflows.
type workflows struct{ s *Store }

const (
	workflowColumns = `tenant, id, version, digest, created_at, latest, definition`

	workflowDigest = `SELECT digest FROM workflows WHERE tenant = ? AND id = ? AND version = ?`
	insertWorkflow = `INSERT INTO workflows (tenant, id, version, digest, definition, created_at, latest, ord)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0,
			(SELECT coalesce(max(ord), 0) + 1 FROM workflows WHERE tenant = ?1 AND id = ?2))`
	hideWorkflow = `UPDATE workflows SET latest = 0 WHERE tenant = ? AND id = ? AND latest = 1`
	makeLatest   = `UPDATE workflows SET latest = 1 WHERE tenant = ? AND id = ? AND version = ?`

	getVersion = `SELECT ` + workflowColumns + ` FROM workflows WHERE tenant = ? AND id = ? AND version = ?`
	getLatest  = `SELECT ` + workflowColumns + ` FROM workflows WHERE tenant = ? AND id = ? AND latest = 1`
	listLatest = `SELECT ` + workflowColumns + ` FROM workflows INDEXED BY workflows_latest
		WHERE tenant = ? AND id > ? AND latest = 1 ORDER BY id LIMIT ?`
	listVersions = `SELECT tenant, id, version, digest, created_at, latest, NULL FROM workflows
		WHERE tenant = ? AND id = ? ORDER BY ord DESC`
)

// maxCachedDefinition keeps a few giants from filling the memory.
const maxCachedDefinition = 64 << 10

func scanWorkflow(r *row) store.Workflow {
	var w store.Workflow
	w.Tenant = r.text()
	w.ID = r.text()
	w.Version = r.text()
	w.Digest = r.text()
	w.CreatedAt = r.time()
	w.Latest = r.bool()
	w.Definition = r.blob()
	return w
}

func scanWorkflows(q *query) ([]store.Workflow, error) {
	var out []store.Workflow
	err := q.each(func(r *row) (bool, error) {
		out = append(out, scanWorkflow(r))
		return true, nil
	})
	return out, err
}

// Put implements store.Workflows.
func (w workflows) Put(ctx context.Context, f store.Workflow) (added bool, err error) {
	if len(f.Definition) > store.MaxValue {
		err = store.ErrTooLarge
	} else {
		err = w.s.writer.submit(ctx, len(f.Definition), func(c *conn) error {
			added, err = putWorkflow(c, f)
			return err
		})
	}
	w.s.workflowCache.clear()
	return added && err == nil, wrap("put workflow "+f.ID, err)
}

func putWorkflow(c *conn, f store.Workflow) (added bool, err error) {
	var digest string
	found, err := c.prep(workflowDigest).text(f.Tenant).text(f.ID).text(f.Version).
		one(func(r *row) { digest = r.text() })
	if err != nil {
		return false, err
	}
	if found && digest != f.Digest {
		return false, store.ErrExists
	}
	if !found {
		err = c.prep(insertWorkflow).text(f.Tenant).text(f.ID).text(f.Version).
			text(f.Digest).blob(full(f.Definition)).time(f.CreatedAt).run()
		if err != nil {
			return false, err
		}
	}
	if err := c.prep(hideWorkflow).text(f.Tenant).text(f.ID).run(); err != nil {
		return false, err
	}
	if err := c.prep(makeLatest).text(f.Tenant).text(f.ID).text(f.Version).run(); err != nil {
		return false, err
	}
	return !found, keepSchedules(c, &f)
}

// Get implements store.Workflows.
func (w workflows) Get(ctx context.Context, tenant, id, version string) (f store.Workflow, err error) {
	key := [2]string{tenant, id}
	cached, epoch, ok := w.s.workflowCache.get(key)
	if ok && version == "" {
		// The cache must not outlive the store, nor a call its context.
		return cached, wrap("get workflow "+id, w.s.writer.ready(ctx))
	}
	err = w.s.readers.read(ctx, func(c *conn) error {
		q := c.prep(getLatest).text(tenant).text(id)
		if version != "" {
			q = c.prep(getVersion).text(tenant).text(id).text(version)
		}
		found, err := q.one(func(r *row) { f = scanWorkflow(r) })
		if err == nil && !found {
			err = store.ErrNotFound
		}
		return err
	})
	if err == nil && version == "" && len(f.Definition) <= maxCachedDefinition {
		w.s.workflowCache.put(key, f, epoch)
	}
	return f, wrap("get workflow "+id, err)
}

// List implements store.Workflows.
func (w workflows) List(ctx context.Context, tenant, after string, limit int) (out []store.Workflow, err error) {
	err = w.s.readers.read(ctx, func(c *conn) error {
		out, err = scanWorkflows(c.prep(listLatest).text(tenant).text(after).bound(limit))
		return err
	})
	return out, wrap("list workflows", err)
}

// Versions implements store.Workflows.
func (w workflows) Versions(ctx context.Context, tenant, id string) (out []store.Workflow, err error) {
	err = w.s.readers.read(ctx, func(c *conn) error {
		out, err = scanWorkflows(c.prep(listVersions).text(tenant).text(id))
		if err == nil && len(out) == 0 {
			err = store.ErrNotFound
		}
		return err
	})
	return out, wrap("list versions of workflow "+id, err)
}

// Delete implements store.Workflows.
func (w workflows) Delete(ctx context.Context, tenant, id string) error {
	err := w.s.writer.submit(ctx, 0, func(c *conn) error {
		n, err := c.prep(hideWorkflow).text(tenant).text(id).change()
		if err == nil && n == 0 {
			err = store.ErrNotFound
		}
		if err == nil {
			err = c.prep(dropSchedules).text(tenant).text(id).run()
		}
		return err
	})
	w.s.workflowCache.clear()
	return wrap("delete workflow "+id, err)
}
