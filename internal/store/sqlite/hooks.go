package sqlite

import (
	"fmt"

	"github.com/fermata-run/fermata/internal/store"
)

// hooks knows the tenants that have had subscriptions, so that the steps of all
// others cost no look. It belongs to the writer: only what runs inside a write
// may touch it, and what it knows is as of the write's own transaction.
type hooks struct {
	tenants map[string]bool
	known   map[string][]store.Subscription // without secrets; absent: to be read
}

const hookTenants = `SELECT DISTINCT tenant FROM webhooks`

func loadHooks(c *conn) (*hooks, error) {
	h := &hooks{tenants: map[string]bool{}, known: map[string][]store.Subscription{}}
	err := c.prep(hookTenants).each(func(r *row) (bool, error) {
		h.tenants[r.text()] = true
		return true, nil
	})
	return h, err
}

// changed says that a tenant's subscriptions are about to change.
func (h *hooks) changed(tenant string) {
	h.tenants[tenant] = true
	delete(h.known, tenant)
}

// undone says that a transaction was rolled back, in which something may have
// been read that is not so.
func (h *hooks) undone() { clear(h.known) }

// of lists a tenant's subscriptions.
func (h *hooks) of(c *conn, tenant string) ([]store.Subscription, error) {
	if !h.tenants[tenant] {
		return nil, nil
	}
	list, ok := h.known[tenant]
	if ok {
		return list, nil
	}
	list, err := scanHooks(c, tenant, "", 0)
	if err != nil {
		return nil, fmt.Errorf("subscriptions: %w", err)
	}
	// An empty list is kept as well. That the tenant has none may be undone like
	// anything else; to forget the tenant here would be for good.
	h.known[tenant] = list
	return list, nil
}
