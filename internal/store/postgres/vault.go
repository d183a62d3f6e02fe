package postgres

import (
	"bytes"
	"context"
	"fmt"

	"github.com/fermata-run/fermata/internal/store"
	"github.com/jackc/pgx/v5"
)

// vault implements store.Vault.
type vault struct{ s *Store }

// Vault implements store.Store.
func (s *Store) Vault() store.Vault { return vault{s} }

const (
	vaultKeys  = `SELECT tenant, id, master, wrapped, created_at FROM vault_keys ORDER BY created_at, id`
	insertData = `INSERT INTO vault_keys (tenant, id, master, wrapped, created_at) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`
	rewrapData = `UPDATE vault_keys SET master = $3, wrapped = $4 WHERE tenant = $1 AND id = $2`

	listSecretCells  = `SELECT '', convert_to(purpose, 'UTF8'), convert_to(id, 'UTF8'), 0::bigint, value FROM secrets`
	listHookCells    = `SELECT tenant, convert_to(id, 'UTF8'), NULL::bytea, 0::bigint, secret FROM webhooks`
	listHookOldCells = `SELECT tenant, convert_to(id, 'UTF8'), NULL::bytea, 0::bigint, previous FROM webhooks`
	listCredCells    = `SELECT tenant, convert_to(ref, 'UTF8'), NULL::bytea, version, sealed FROM credentials`
	listCredOldCells = `SELECT tenant, convert_to(ref, 'UTF8'), NULL::bytea, version - 1, previous FROM credentials`
	listAnswerCells  = `SELECT tenant, endpoint, key, 0::bigint, body FROM idempotency WHERE endpoint = $1 AND status IS NOT NULL`

	getSecretCell  = `SELECT value FROM secrets WHERE purpose = $1 AND id = $2 FOR UPDATE`
	setSecretCell  = `UPDATE secrets SET value = $3 WHERE purpose = $1 AND id = $2`
	getHookCell    = `SELECT secret FROM webhooks` + oneHook + ` FOR UPDATE`
	setHookCell    = `UPDATE webhooks SET secret = $3` + oneHook
	getHookOldCell = `SELECT previous FROM webhooks` + oneHook + ` FOR UPDATE`
	setHookOldCell = `UPDATE webhooks SET previous = $3` + oneHook
	getCredCell    = `SELECT sealed FROM credentials` + oneCredential + ` FOR UPDATE`
	setCredCell    = `UPDATE credentials SET sealed = $3` + oneCredential
	getCredOldCell = `SELECT previous FROM credentials` + oneCredential + ` FOR UPDATE`
	setCredOldCell = `UPDATE credentials SET previous = $3` + oneCredential
	getAnswerCell  = `SELECT body FROM idempotency` + oneRecord + ` FOR UPDATE`
	setAnswerCell  = `UPDATE idempotency SET body = $4` + oneRecord
)

// cellPlace is where cells of a kind are, and what they are found by.
type cellPlace struct {
	kind           string
	list, get, set string
	name           func(v *store.Cell) []any
}

func byID(v *store.Cell) []any { return []any{v.Tenant, v.ID} }

// cellPlaces is the order in which cells are listed.
var cellPlaces = []cellPlace{
	{store.CellSecret, listSecretCells, getSecretCell, setSecretCell, func(v *store.Cell) []any { return []any{v.ID, string(v.Sub)} }},
	{store.CellWebhook, listHookCells, getHookCell, setHookCell, byID},
	{store.CellWebhookOld, listHookOldCells, getHookOldCell, setHookOldCell, byID},
	{store.CellCredential, listCredCells, getCredCell, setCredCell, byID},
	{store.CellCredOld, listCredOldCells, getCredOldCell, setCredOldCell, byID},
	{store.CellAnswer, listAnswerCells, getAnswerCell, setAnswerCell, func(v *store.Cell) []any { return []any{v.Tenant, []byte(v.ID), v.Sub} }},
}

func placeOf(kind string) (cellPlace, error) {
	for _, p := range cellPlaces {
		if p.kind == kind {
			return p, nil
		}
	}
	return cellPlace{}, damage(fmt.Errorf("there is no kind of cells %q", kind))
}

// Keys implements store.Vault.
func (x vault) Keys(ctx context.Context) (out []store.DataKey, err error) {
	err = x.s.read(ctx, func(q querier) error {
		out, err = list(ctx, q, func(row pgx.CollectableRow) (k store.DataKey, err error) {
			err = row.Scan(&k.Tenant, &k.ID, &k.Master, &k.Wrapped, (*stamp)(&k.CreatedAt))
			return k, err
		}, vaultKeys)
		return err
	})
	return out, wrap("list data keys", err)
}

// Cells implements store.Vault.
func (x vault) Cells(ctx context.Context, endpoint string) (out []store.Cell, err error) {
	err = x.s.read(ctx, func(q querier) error {
		out = nil
		for _, p := range cellPlaces {
			var args []any
			if p.kind == store.CellAnswer {
				args = []any{[]byte(endpoint)}
			}
			got, err := list(ctx, q, func(row pgx.CollectableRow) (store.Cell, error) {
				v := store.Cell{Kind: p.kind}
				err := row.Scan(&v.Tenant, (*raw)(&v.ID), &v.Sub, &v.At, &v.Value)
				return v, err
			}, p.list, args...)
			if err != nil {
				return err
			}
			for _, v := range got {
				if len(v.Value) > 0 {
					out = append(out, v)
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, wrap("list sealed values", err)
	}
	return out, nil
}

// Change implements store.Vault.
func (x vault) Change(ctx context.Context, v store.VaultChange) error {
	if err := v.Check(); err != nil {
		return wrap("change the vault", err)
	}
	return wrap("change the vault", x.s.tx(ctx, func(q querier) error {
		for _, k := range v.Add {
			n, err := change(ctx, q, insertData, k.Tenant, k.ID, k.Master, k.Wrapped, k.CreatedAt.UnixMilli())
			if err == nil && n == 0 {
				err = store.ErrExists
			}
			if err != nil {
				return err
			}
		}
		for _, k := range v.Rewrap {
			n, err := change(ctx, q, rewrapData, k.Tenant, k.ID, k.Master, k.Wrapped)
			if err == nil && n == 0 {
				err = store.ErrNotFound
			}
			if err != nil {
				return err
			}
		}
		for i := range v.Replace {
			if err := replace(ctx, q, &v.Replace[i]); err != nil {
				return err
			}
		}
		return nil
	}))
}

// replace overwrites a value that is still what the change says it is.
func replace(ctx context.Context, q querier, r *store.Replaced) error {
	p, err := placeOf(r.Kind)
	if err != nil {
		return err
	}
	var is []byte
	found, err := one(ctx, q, p.get, p.name(&r.Cell), &is)
	if err == nil && (!found || !bytes.Equal(is, r.Value)) {
		err = store.ErrStale
	}
	if err == nil {
		_, err = q.Exec(ctx, p.set, append(p.name(&r.Cell), r.New)...)
	}
	if err == nil && (r.Kind == store.CellWebhook || r.Kind == store.CellWebhookOld) {
		_, err = q.Exec(ctx, turnHooks, r.Tenant)
	}
	return err
}

// Scrub implements store.Vault. Rows that were overwritten stay in the files of the
// server until it vacuums, and in its log and archives for as long as these are kept;
// neither is a replica's to decide.
func (x vault) Scrub(ctx context.Context) error { return wrap("scrub", x.s.open(ctx)) }
