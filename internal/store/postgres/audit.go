package postgres

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/fermata-run/fermata/internal/audit"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/jackc/pgx/v5"
)

// auditLog implements store.Audit.
type auditLog struct{ s *Store }

const (
	headColumns = `tenant, seq, hash, anchored, waiting`
	selectHead  = `SELECT ` + headColumns + ` FROM audit_heads WHERE tenant = $1`
	// Whoever places an entry, or looks where a chain ends to cut it, locks its head.
	beginChain  = `INSERT INTO audit_heads (tenant, seq, hash, anchored) VALUES ($1, 0, '', 0) ON CONFLICT DO NOTHING`
	lockHead    = selectHead + ` FOR UPDATE`
	unanchored  = `SELECT ` + headColumns + ` FROM audit_heads WHERE waiting IS NOT NULL AND tenant > $1 ORDER BY tenant LIMIT $2`
	listHeads   = `SELECT ` + headColumns + ` FROM audit_heads WHERE tenant > $1 ORDER BY tenant LIMIT $2`
	selectEntry = `SELECT body FROM audit_entries WHERE tenant = $1 AND seq = $2`
	insertEntry = `INSERT INTO audit_entries (tenant, seq, body) VALUES ($1, $2, $3)`
	moveHead    = `UPDATE audit_heads SET seq = $2, hash = $3, waiting = coalesce(waiting, $4) WHERE tenant = $1`

	entriesAfter = `SELECT seq, body FROM audit_entries WHERE tenant = $1 AND seq > $2 ORDER BY seq LIMIT $3`
	entriesBelow = `SELECT seq, body FROM audit_entries WHERE tenant = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3`

	insertPoint = `INSERT INTO audit_checkpoints (tenant, seq, id, since, root, key_id, signature, at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
	listPoints  = `SELECT seq, id, since, root, key_id, signature, at FROM audit_checkpoints WHERE tenant = $1 AND seq > $2 ORDER BY seq LIMIT $3`
	anchorHead  = `UPDATE audit_heads SET anchored = $2, waiting = CASE WHEN seq > $2 THEN coalesce($3, waiting) END
		WHERE tenant = $1 AND anchored = $4 AND seq >= $2`

	selectCut = `SELECT seq, hash, key_id, signature, at FROM audit_cuts WHERE tenant = $1`
	putCut    = `INSERT INTO audit_cuts (tenant, seq, hash, key_id, signature, at) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (tenant) DO UPDATE SET seq = excluded.seq, hash = excluded.hash, key_id = excluded.key_id,
			signature = excluded.signature, at = excluded.at`
	dropEntries = `DELETE FROM audit_entries WHERE tenant = $1 AND seq IN (
		SELECT seq FROM audit_entries WHERE tenant = $1 AND seq <= $2 ORDER BY seq LIMIT $3)`
)

// Audit implements store.Store.
func (s *Store) Audit() store.Audit { return auditLog{s} }

// chainsOf lists the chains of drafts, in the order in which their heads are locked.
func chainsOf(drafts []*store.Draft) []string {
	out := make([]string, len(drafts))
	for i, d := range drafts {
		out[i] = d.Chain
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// place queues what puts drafts at the ends of their chains. Heads that are not locked
// yet it locks, in one order.
func place(ctx context.Context, q querier, b *pgx.Batch, drafts []*store.Draft, locked map[string]store.Head) error {
	drafts = slices.Clone(drafts)
	slices.SortStableFunc(drafts, func(a, b *store.Draft) int { return cmp.Compare(a.Chain, b.Chain) })
	var h store.Head
	for i, d := range drafts {
		if i == 0 || drafts[i-1].Chain != d.Chain {
			var err error
			if h, err = headOf(ctx, q, d.Chain, locked); err != nil {
				return err
			}
		}
		if there, err := isPlaced(ctx, q, d); err != nil || there {
			if err != nil {
				return err
			}
			continue
		}
		body, end, err := audit.Place(d.Chain, h.Position, d.Fact)
		if err != nil {
			return damage(err)
		}
		h.Position = end
		d.Place(store.Entry{Sequence: end.Sequence, Body: body})
		b.Queue(insertEntry, d.Chain, end.Sequence, body)
		b.Queue(moveHead, d.Chain, end.Sequence, end.Hash, millis(d.At))
	}
	return nil
}

// isPlaced says whether an earlier try, whose commit was not answered, has placed a
// draft. The head of its chain is locked, so that try has come to its end.
func isPlaced(ctx context.Context, q querier, d *store.Draft) (bool, error) {
	was := d.Placed()
	if was == nil {
		return false, nil
	}
	var body []byte
	found, err := one(ctx, q, selectEntry, []any{d.Chain, was.Sequence}, &body)
	return found && bytes.Equal(body, was.Body), err
}

// headOf is a chain's head, locked; a chain without one begins.
func headOf(ctx context.Context, q querier, chain string, locked map[string]store.Head) (h store.Head, err error) {
	if h, ok := locked[chain]; ok {
		return h, nil
	}
	h, err = scanOne(ctx, q, scanHead, lockHead, chain)
	if errors.Is(err, store.ErrNotFound) {
		if _, err = q.Exec(ctx, beginChain, chain); err == nil {
			h, err = scanOne(ctx, q, scanHead, lockHead, chain)
		}
	}
	return h, err
}

func scanHead(row pgx.CollectableRow) (h store.Head, err error) {
	err = row.Scan(&h.Chain, &h.Sequence, &h.Hash, &h.Anchored, (*stamp)(&h.Waiting))
	return h, err
}

// Append implements store.Audit.
func (a auditLog) Append(ctx context.Context, drafts ...*store.Draft) error {
	ctx = store.Audited(store.Unaudited(ctx), drafts...)
	return wrap("append to the audit log", a.s.tx(ctx, func(querier) error { return nil }))
}

// Head implements store.Audit.
func (a auditLog) Head(ctx context.Context, chain string) (h store.Head, err error) {
	err = a.s.read(ctx, func(q querier) error {
		h.Chain = chain
		got, err := list(ctx, q, scanHead, selectHead, chain)
		if len(got) > 0 {
			h = got[0]
		}
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
	err = a.s.read(ctx, func(q querier) error {
		out, err = list(ctx, q, scanHead, sql, after, bound(limit))
		return err
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
		below = math.MaxInt64
	}
	return a.entries(ctx, entriesBelow, chain, below, limit)
}

func (a auditLog) entries(ctx context.Context, sql, chain string, at int64, limit int) (out []store.Entry, err error) {
	err = a.s.read(ctx, func(q querier) error {
		out, err = list(ctx, q, func(row pgx.CollectableRow) (x store.Entry, err error) {
			err = row.Scan(&x.Sequence, &x.Body)
			return x, err
		}, sql, chain, at, bound(limit))
		return err
	})
	return out, wrap("read an audit log", err)
}

// Checkpoints implements store.Audit.
func (a auditLog) Checkpoints(ctx context.Context, chain string, after int64, limit int) (out []audit.Checkpoint, err error) {
	err = a.s.read(ctx, func(q querier) error {
		out, err = list(ctx, q, func(row pgx.CollectableRow) (p audit.Checkpoint, err error) {
			err = row.Scan(&p.AtSequence, &p.ID, &p.From, &p.Root, &p.KeyID, &p.Signature, &p.At)
			return p, err
		}, listPoints, chain, after, bound(limit))
		return err
	})
	return out, wrap("read checkpoints", err)
}

// Anchor implements store.Audit.
func (a auditLog) Anchor(ctx context.Context, chain string, p audit.Checkpoint, waiting time.Time) error {
	return wrap("add a checkpoint", a.s.tx(store.Unaudited(ctx), func(q querier) error {
		n, err := change(ctx, q, anchorHead, chain, p.AtSequence, millis(waiting), p.From)
		if err == nil && n == 0 {
			err = store.ErrStale
		}
		if err == nil {
			_, err = q.Exec(ctx, insertPoint, chain, p.AtSequence, p.ID, p.From, p.Root, p.KeyID, p.Signature, p.At)
		}
		return err
	}))
}

// Cut implements store.Audit.
func (a auditLog) Cut(ctx context.Context, chain string, m audit.Mark, limit int) (n int, err error) {
	err = a.s.tx(ctx, func(q querier) error {
		heads, err := list(ctx, q, scanHead, lockHead, chain)
		if err != nil {
			return err
		}
		last, found, err := findCut(ctx, q, chain)
		if err != nil {
			return err
		}
		if len(heads) == 0 || heads[0].Anchored < m.Sequence || found && last.Sequence > m.Sequence {
			return store.ErrStale
		}
		if _, err = q.Exec(ctx, putCut, chain, m.Sequence, m.Hash, m.KeyID, m.Signature, m.At); err != nil {
			return err
		}
		gone, err := change(ctx, q, dropEntries, chain, m.Sequence, bound(limit))
		n = int(gone)
		return err
	})
	if err != nil {
		return 0, wrap("cut an audit log", err)
	}
	return n, nil
}

func findCut(ctx context.Context, q querier, chain string) (m audit.Mark, found bool, err error) {
	m.Chain = chain
	found, err = one(ctx, q, selectCut, []any{chain}, &m.Sequence, &m.Hash, &m.KeyID, &m.Signature, &m.At)
	return m, found, err
}

// LastCut implements store.Audit.
func (a auditLog) LastCut(ctx context.Context, chain string) (m audit.Mark, err error) {
	err = a.s.read(ctx, func(q querier) error {
		var found bool
		if m, found, err = findCut(ctx, q, chain); err == nil && !found {
			err = store.ErrNotFound
		}
		return err
	})
	return m, wrap("read the cut of an audit log", err)
}
