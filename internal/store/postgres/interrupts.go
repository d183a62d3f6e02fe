package postgres

import (
	"context"
	"fmt"
	"math"

	"github.com/fermata-run/fermata/internal/store"
	"github.com/jackc/pgx/v5"
)

const (
	openInterrupt = `INSERT INTO interrupts (tenant, id, run_id, node_id, kind, key, data, created_at, expires_at, open)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, true)`
	closeInterrupt = `UPDATE interrupts SET open = false, data = NULL
		WHERE tenant = $1 AND id = $2 AND run_id = $3 AND open`
	interruptPlace = `SELECT created_at FROM interrupts WHERE tenant = $1 AND id = $2`
	listInterrupts = `SELECT id, run_id, node_id, kind, key, data, created_at, expires_at FROM interrupts
		WHERE tenant = $1 AND open AND (created_at, id) > ($2, $3) ORDER BY created_at, id LIMIT $4`
)

// queueInterrupts closes and opens the interrupts of a step, in this order.
func queueInterrupts(b *pgx.Batch, a *store.Append) {
	id := a.Row.ID
	for _, closed := range a.Closed {
		b.Queue(closeInterrupt, id.Tenant, closed, id.Opaque)
	}
	for i := range a.Opened {
		o := &a.Opened[i]
		b.Queue(openInterrupt, id.Tenant, o.ID, id.Opaque, []byte(o.NodeID), []byte(o.Kind), []byte(o.Key), o.Data,
			o.CreatedAt.UnixMilli(), millis(o.ExpiresAt))
	}
}

// OpenInterrupts implements store.Runs. A cursor may be an interrupt that has been
// closed since it was read: its place does not change.
func (r runs) OpenInterrupts(ctx context.Context, tenant, after string, limit int) (out []store.Interrupt, err error) {
	err = r.s.read(ctx, func(q querier) error {
		place := int64(math.MinInt64)
		if after != "" {
			found, err := one(ctx, q, interruptPlace, []any{tenant, after}, &place)
			if err == nil && !found {
				err = fmt.Errorf("cursor %q: %w", after, store.ErrNotFound)
			}
			if err != nil {
				return err
			}
		}
		out, err = list(ctx, q, func(row pgx.CollectableRow) (i store.Interrupt, err error) {
			i.Run.Tenant = tenant
			err = row.Scan(&i.ID, &i.Run.Opaque, (*raw)(&i.NodeID), (*raw)(&i.Kind), (*raw)(&i.Key), &i.Data,
				(*stamp)(&i.CreatedAt), (*stamp)(&i.ExpiresAt))
			return i, err
		}, listInterrupts, tenant, place, after, bound(limit))
		return err
	})
	return out, wrap("list interrupts", err)
}
