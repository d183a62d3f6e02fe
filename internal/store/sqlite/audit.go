package sqlite

import (
	"context"
	"time"

	"github.com/fermata-run/fermata/internal/audit"
	"github.com/fermata-run/fermata/internal/store"
)

// auditLog implements store.Audit.
type auditLog struct{ s *Store }

const (
	selectHead  = `SELECT tenant, seq, hash, anchored, waiting FROM audit_heads WHERE tenant = ?`
	unanchored  = `SELECT tenant, seq, hash, anchored, waiting FROM audit_heads WHERE waiting IS NOT NULL AND tenant > ? ORDER BY tenant LIMIT ?`
	listHeads   = `SELECT tenant, seq, hash, anchored, waiting FROM audit_heads WHERE tenant > ? ORDER BY tenant LIMIT ?`
	insertEntry = `INSERT INTO audit_entries (tenant, seq, body) VALUES (?,?,?)`
	moveHead    = `INSERT INTO audit_heads (tenant, seq, hash, anchored, waiting) VALUES (?,?,?,0,?)
		ON CONFLICT DO UPDATE SET seq = excluded.seq, hash = excluded.hash, waiting = coalesce(waiting, excluded.waiting)`
	entriesAfter = `SELECT seq, body FROM audit_entries WHERE tenant = ? AND seq > ? ORDER BY seq LIMIT ?`
	entriesBelow = `SELECT seq, body FROM audit_entries WHERE tenant = ? AND seq < ? ORDER BY seq DESC LIMIT ?`

	insertPoint = `INSERT INTO audit_checkpoints (tenant, seq, id, since, root, key_id, signature, at) VALUES (?,?,?,?,?,?,?,?)`
	listPoints  = `SELECT seq, id, since, root, key_id, signature, at FROM audit_checkpoints WHERE tenant = ? AND seq > ? ORDER BY seq LIMIT ?`
	anchorHead  = `UPDATE audit_heads SET anchored = ?, waiting = CASE WHEN seq > ? THEN coalesce(?, waiting) END
		WHERE tenant = ? AND anchored = ? AND seq >= ?`

	selectCut = `SELECT seq, hash, key_id, signature, at FROM audit_cuts WHERE tenant = ?`
	putCut    = `INSERT INTO audit_cuts (tenant, seq, hash, key_id, signature, at) VALUES (?,?,?,?,?,?)
		ON CONFLICT DO UPDATE SET seq = excluded.seq, hash = excluded.hash, key_id = excluded.key_id,
			signature = excluded.signature, at = excluded.at`
	dropEntries = `DELETE FROM audit_entries WHERE tenant = ? AND seq IN (
		SELECT seq FROM audit_entries WHERE tenant = ? AND seq <= ? ORDER BY seq LIMIT ?)`
)

// Audit implements store.Store.
func (s *Store) Audit() store.Audit { return auditLog{s} }

// place writes drafts at the ends of their chains, within the writer's
// transaction.
func place(c *conn, drafts []*store.Draft) error {
	for _, d := range drafts {
		h, _, err := findHead(c, d.Chain)
		if err != nil {
			return err
		}
		body, end, err := audit.Place(d.Chain, h.Position, d.Fact)
		if err == nil {
			err = c.prep(insertEntry).text(d.Chain).int(end.Sequence).blob(body).run()
		}
		if err == nil {
			err = c.prep(moveHead).text(d.Chain).int(end.Sequence).text(end.Hash).time(d.At).run()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func findHead(c *conn, chain string) (h store.Head, found bool, err error) {
	h.Chain = chain
	found, err = c.prep(selectHead).text(chain).one(func(r *row) { h = readHead(r) })
	return h, found, err
}

func readHead(r *row) (h store.Head) {
	h.Chain, h.Sequence, h.Hash, h.Anchored = r.text(), r.int(), r.text(), r.int()
	h.Waiting = r.time()
	return h
}

// Append implements store.Audit.
func (a auditLog) Append(ctx context.Context, drafts ...*store.Draft) error {
	ctx = store.Audited(store.Unaudited(ctx), drafts...)
	return wrap("append to the audit log", a.s.writer.submit(ctx, 0, func(*conn) error { return nil }))
}

// Head implements store.Audit.
func (a auditLog) Head(ctx context.Context, chain string) (h store.Head, err error) {
	err = a.s.readers.read(ctx, func(c *conn) error {
		h, _, err = findHead(c, chain)
		return err
	})
	return h, wrap("read the head of an audit log", err)
}

// Unanchored implements store.Audit.
func (a auditLog) Unanchored(ctx context.Context, after string, limit int) ([]store.Head, error) {
	return a.heads(ctx, unanchored, after, limit)
}

// Heads implements store.Audit.
func (a auditLog) Heads(ctx context.Context, after string, limit int) ([]store.Head, error) {
	return a.heads(ctx, listHeads, after, limit)
}

func (a auditLog) heads(ctx context.Context, sql, after string, limit int) (out []store.Head, err error) {
	err = a.s.readers.read(ctx, func(c *conn) error {
		return c.prep(sql).text(after).bound(limit).each(func(r *row) (bool, error) {
			out = append(out, readHead(r))
			return true, nil
		})
	})
	return out, wrap("read heads of audit logs", err)
}

// Entries implements store.Audit.
func (a auditLog) Entries(ctx context.Context, chain string, after int64, limit int) ([]store.Entry, error) {
	return a.entries(ctx, entriesAfter, chain, after, limit)
}

// Latest implements store.Audit.
func (a auditLog) Latest(ctx context.Context, chain string, below int64, limit int) ([]store.Entry, error) {
	if below == 0 {
		below = 1<<63 - 1
	}
	return a.entries(ctx, entriesBelow, chain, below, limit)
}

func (a auditLog) entries(ctx context.Context, sql, chain string, at int64, limit int) (out []store.Entry, err error) {
	err = a.s.readers.read(ctx, func(c *conn) error {
		return c.prep(sql).text(chain).int(at).bound(limit).each(func(r *row) (bool, error) {
			out = append(out, store.Entry{Sequence: r.int(), Body: r.blob()})
			return true, nil
		})
	})
	if err != nil {
		out = nil
	}
	return out, wrap("read an audit log", err)
}

// Checkpoints implements store.Audit.
func (a auditLog) Checkpoints(ctx context.Context, chain string, after int64, limit int) (out []audit.Checkpoint, err error) {
	err = a.s.readers.read(ctx, func(c *conn) error {
		return c.prep(listPoints).text(chain).int(after).bound(limit).each(func(r *row) (bool, error) {
			p := audit.Checkpoint{AtSequence: r.int(), ID: r.text(), From: r.int(), Root: r.text()}
			p.KeyID, p.Signature, p.At = r.text(), r.text(), r.text()
			out = append(out, p)
			return true, nil
		})
	})
	if err != nil {
		out = nil
	}
	return out, wrap("read checkpoints", err)
}

// Anchor implements store.Audit.
func (a auditLog) Anchor(ctx context.Context, chain string, p audit.Checkpoint, waiting time.Time) error {
	return wrap("add a checkpoint", a.s.writer.submit(store.Unaudited(ctx), 0, func(c *conn) error {
		n, err := c.prep(anchorHead).int(p.AtSequence).int(p.AtSequence).time(waiting).text(chain).int(p.From).int(p.AtSequence).change()
		if err == nil && n == 0 {
			return store.ErrStale
		}
		if err != nil {
			return err
		}
		return c.prep(insertPoint).text(chain).int(p.AtSequence).text(p.ID).int(p.From).text(p.Root).
			text(p.KeyID).text(p.Signature).text(p.At).run()
	}))
}

// Cut implements store.Audit.
func (a auditLog) Cut(ctx context.Context, chain string, m audit.Mark, limit int) (n int, err error) {
	err = a.s.writer.submit(ctx, 0, func(c *conn) error {
		h, _, err := findHead(c, chain)
		if err != nil {
			return err
		}
		if last, found, err := findCut(c, chain); err != nil || found && last.Sequence > m.Sequence || h.Anchored < m.Sequence {
			if err == nil {
				err = store.ErrStale
			}
			return err
		}
		err = c.prep(putCut).text(chain).int(m.Sequence).text(m.Hash).text(m.KeyID).text(m.Signature).text(m.At).run()
		if err != nil {
			return err
		}
		gone, err := c.prep(dropEntries).text(chain).text(chain).int(m.Sequence).bound(limit).change()
		n = int(gone)
		return err
	})
	if err != nil {
		return 0, wrap("cut an audit log", err)
	}
	return n, nil
}

func findCut(c *conn, chain string) (m audit.Mark, found bool, err error) {
	found, err = c.prep(selectCut).text(chain).one(func(r *row) {
		m = audit.Mark{Chain: chain, Sequence: r.int(), Hash: r.text(), KeyID: r.text(), Signature: r.text(), At: r.text()}
	})
	return m, found, err
}

// LastCut implements store.Audit.
func (a auditLog) LastCut(ctx context.Context, chain string) (m audit.Mark, err error) {
	err = a.s.readers.read(ctx, func(c *conn) error {
		var found bool
		if m, found, err = findCut(c, chain); err == nil && !found {
			err = store.ErrNotFound
		}
		return err
	})
	return m, wrap("read the cut of an audit log", err)
}
