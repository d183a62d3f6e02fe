package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/fermata-run/fermata/internal/store"
	"github.com/ncruces/go-sqlite3"
)

const (
	openInterrupt = `INSERT INTO interrupts
		(tenant, id, run_id, node_id, kind, key, data, created_at, expires_at, open) VALUES (?,?,?,?,?,?,?,?,?,1)`
	closeInterrupt = `UPDATE interrupts SET open = 0, data = NULL
		WHERE tenant = ? AND id = ? AND run_id = ? AND open = 1`
	interruptPlace = `SELECT created_at FROM interrupts WHERE tenant = ? AND id = ?`
	listInterrupts = `SELECT id, run_id, node_id, kind, key, data, created_at, expires_at FROM interrupts
		WHERE tenant = ? AND open = 1 AND (created_at, id) > (?, ?) ORDER BY created_at, id LIMIT ?`
)

// putInterrupts closes and opens the interrupts of a step, in this order.
func putInterrupts(c *conn, a *store.Append) error {
	id := a.Row.ID
	for _, closed := range a.Closed {
		err := c.prep(closeInterrupt).text(id.Tenant).text(closed).text(id.Opaque).run()
		if err != nil {
			return fmt.Errorf("close interrupt %s: %w", closed, err)
		}
	}
	for i := range a.Opened {
		o := &a.Opened[i]
		err := c.prep(openInterrupt).text(id.Tenant).text(o.ID).text(id.Opaque).text(o.NodeID).
			text(o.Kind).text(o.Key).blob(o.Data).int(o.CreatedAt.UnixMilli()).time(o.ExpiresAt).run()
		if errors.Is(err, sqlite3.CONSTRAINT_PRIMARYKEY) {
			err = store.ErrExists
		}
		if err != nil {
			return fmt.Errorf("open interrupt %s: %w", o.ID, err)
		}
	}
	return nil
}

// OpenInterrupts implements store.Runs. A cursor may be an interrupt that has
// been closed since it was read.
func (r runs) OpenInterrupts(ctx context.Context, tenant, after string, limit int) (out []store.Interrupt, err error) {
	err = r.s.readers.snapshot(ctx, func(c *conn) error {
		place := int64(-1 << 63)
		if after != "" {
			found, err := c.prep(interruptPlace).text(tenant).text(after).one(func(r *row) { place = r.int() })
			if err == nil && !found {
				err = fmt.Errorf("cursor %q: %w", after, store.ErrNotFound)
			}
			if err != nil {
				return err
			}
		}
		q := c.prep(listInterrupts).text(tenant).int(place).text(after).bound(limit)
		return q.each(func(r *row) (bool, error) {
			out = append(out, scanInterrupt(r, tenant))
			return true, nil
		})
	})
	if err != nil {
		out = nil
	}
	return out, wrap("list interrupts", err)
}

func scanInterrupt(r *row, tenant string) store.Interrupt {
	var i store.Interrupt
	i.ID = r.text()
	i.Run.Tenant, i.Run.Opaque = tenant, r.text()
	i.NodeID = r.text()
	i.Kind = r.text()
	i.Key = r.text()
	i.Data = r.blob()
	i.CreatedAt = r.time()
	i.ExpiresAt = r.time()
	return i
}
