package sqlite

import (
	"bytes"
	"context"
	"fmt"

	"github.com/fermata-run/fermata/internal/store"
)

// vault implements store.Vault.
type vault struct{ s *Store }

// Vault implements store.Store.
func (s *Store) Vault() store.Vault { return vault{s} }

const (
	vaultKeys  = `SELECT tenant, id, master, wrapped, created_at FROM vault_keys ORDER BY created_at, id`
	insertData = `INSERT INTO vault_keys (tenant, id, master, wrapped, created_at) VALUES (?,?,?,?,?) ON CONFLICT DO NOTHING`
	rewrapData = `UPDATE vault_keys SET master = ?, wrapped = ? WHERE tenant = ? AND id = ?`
)

// cellPlace is where cells of a kind are. The three statements name the tenant, the id
// and its second part alike, so that a kind without one ignores it.
type cellPlace struct {
	list string // kind's columns: tenant, id, second part, version, value
	get  string
	set  string
	sub  bool
	any  bool // no tenant
}

var cellPlaces = map[string]cellPlace{
	store.CellSecret: {
		list: `SELECT '', purpose, CAST(id AS BLOB), 0, value FROM secrets`,
		get:  `SELECT value FROM secrets WHERE purpose = ? AND id = CAST(? AS TEXT)`,
		set:  `UPDATE secrets SET value = ? WHERE purpose = ? AND id = CAST(? AS TEXT)`,
		sub:  true, any: true,
	},
	store.CellWebhook: {
		list: `SELECT tenant, id, NULL, 0, CAST(secret AS BLOB) FROM webhooks`,
		get:  `SELECT CAST(secret AS BLOB) FROM webhooks WHERE tenant = ? AND id = ?`,
		set:  `UPDATE webhooks SET secret = CAST(? AS TEXT) WHERE tenant = ? AND id = ?`,
	},
	store.CellWebhookOld: {
		list: `SELECT tenant, id, NULL, 0, CAST(previous AS BLOB) FROM webhooks`,
		get:  `SELECT CAST(previous AS BLOB) FROM webhooks WHERE tenant = ? AND id = ?`,
		set:  `UPDATE webhooks SET previous = CAST(? AS TEXT) WHERE tenant = ? AND id = ?`,
	},
	store.CellCredential: {
		list: `SELECT tenant, ref, NULL, version, sealed FROM credentials`,
		get:  `SELECT sealed FROM credentials WHERE tenant = ? AND ref = ?`,
		set:  `UPDATE credentials SET sealed = ? WHERE tenant = ? AND ref = ?`,
	},
	store.CellCredOld: {
		list: `SELECT tenant, ref, NULL, version - 1, previous FROM credentials`,
		get:  `SELECT previous FROM credentials WHERE tenant = ? AND ref = ?`,
		set:  `UPDATE credentials SET previous = ? WHERE tenant = ? AND ref = ?`,
	},
	store.CellAnswer: {
		list: `SELECT tenant, endpoint, key, 0, body FROM idempotency WHERE endpoint = ? AND status IS NOT NULL`,
		get:  `SELECT body FROM idempotency WHERE tenant = ? AND endpoint = ? AND key = ?`,
		set:  `UPDATE idempotency SET body = ? WHERE tenant = ? AND endpoint = ? AND key = ?`,
		sub:  true,
	},
}

// kinds is the order in which cells are listed.
var kinds = []string{
	store.CellSecret, store.CellWebhook, store.CellWebhookOld, store.CellCredential, store.CellCredOld, store.CellAnswer,
}

// name binds what a cell is found by.
func (p cellPlace) name(q *query, v *store.Cell) *query {
	if !p.any {
		q.text(v.Tenant)
	}
	q.text(v.ID)
	if p.sub {
		q.blob(v.Sub)
	}
	return q
}

// Keys implements store.Vault.
func (x vault) Keys(ctx context.Context) (out []store.DataKey, err error) {
	err = x.s.readers.read(ctx, func(c *conn) error {
		return c.prep(vaultKeys).each(func(r *row) (bool, error) {
			k := store.DataKey{Tenant: r.text(), ID: r.text(), Master: r.text()}
			k.Wrapped, k.CreatedAt = r.blob(), r.time()
			out = append(out, k)
			return true, nil
		})
	})
	if err != nil {
		return nil, wrap("list data keys", err)
	}
	return out, nil
}

// Cells implements store.Vault.
func (x vault) Cells(ctx context.Context, endpoint string) (out []store.Cell, err error) {
	err = x.s.readers.read(ctx, func(c *conn) error {
		for _, kind := range kinds {
			q := c.prep(cellPlaces[kind].list)
			if kind == store.CellAnswer {
				q.text(endpoint)
			}
			err := q.each(func(r *row) (bool, error) {
				v := store.Cell{Kind: kind, Tenant: r.text(), ID: r.text(), Sub: r.blob(), At: r.int(), Value: r.blob()}
				if len(v.Value) > 0 {
					out = append(out, v)
				}
				return true, nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, wrap("list sealed values", err)
	}
	return out, nil
}

// Change implements store.Vault. Everything is looked at before anything is
// written, so that a refusal leaves the transaction as it was.
func (x vault) Change(ctx context.Context, v store.VaultChange) error {
	if err := v.Check(); err != nil {
		return wrap("change the vault", err)
	}
	err := x.s.writer.submit(ctx, 0, func(c *conn) error {
		for i := range v.Replace {
			if err := unchanged(c, &v.Replace[i].Cell); err != nil {
				return err
			}
		}
		for _, k := range v.Add {
			n, err := c.prep(insertData).text(k.Tenant).text(k.ID).text(k.Master).blob(k.Wrapped).int(k.CreatedAt.UnixMilli()).change()
			if err == nil && n == 0 {
				err = store.ErrExists
			}
			if err != nil {
				return err
			}
		}
		for _, k := range v.Rewrap {
			n, err := c.prep(rewrapData).text(k.Master).blob(k.Wrapped).text(k.Tenant).text(k.ID).change()
			if err == nil && n == 0 {
				err = store.ErrNotFound
			}
			if err != nil {
				return err
			}
		}
		return replace(c, v.Replace)
	})
	return wrap("change the vault", err)
}

func unchanged(c *conn, v *store.Cell) error {
	p, ok := cellPlaces[v.Kind]
	if !ok {
		return fmt.Errorf("there is no kind of cells %q", v.Kind)
	}
	same := false
	_, err := p.name(c.prep(p.get), v).one(func(r *row) { same = bytes.Equal(r.raw(), v.Value) })
	if err == nil && !same {
		err = store.ErrStale
	}
	return err
}

// replace overwrites values. What they were does not stay behind in the page.
func replace(c *conn, list []store.Replaced) error {
	if len(list) == 0 {
		return nil
	}
	if err := c.db.Exec(`PRAGMA secure_delete = ON`); err != nil {
		return err
	}
	for i := range list {
		p := cellPlaces[list[i].Kind]
		if err := p.name(c.prep(p.set).blob(list[i].New), &list[i].Cell).run(); err != nil {
			return err
		}
	}
	return c.db.Exec(`PRAGMA secure_delete = OFF`)
}

// scrubBelow is up to what size a database is written anew: above it, copies that
// earlier versions of a page may have left in unused space stay until it is.
const scrubBelow = 512 << 20

// Scrub implements store.Vault. The write-ahead log still holds pages as they were.
func (x vault) Scrub(ctx context.Context) error {
	c, err := x.s.connect()
	if err != nil {
		return wrap("scrub", err)
	}
	defer c.close()
	var pages, size int64
	if _, err = c.prep(`PRAGMA page_count`).one(func(r *row) { pages = r.int() }); err == nil {
		_, err = c.prep(`PRAGMA page_size`).one(func(r *row) { size = r.int() })
	}
	if err == nil && pages*size <= scrubBelow {
		err = c.db.Exec(`VACUUM`)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = c.db.Exec(`PRAGMA wal_checkpoint(TRUNCATE)`)
	}
	return wrap("scrub", err)
}
