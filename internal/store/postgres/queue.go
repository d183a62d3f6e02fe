package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/jackc/pgx/v5"
)

const (
	// A target is locked before an entry of it is written: whoever takes entries and
	// then says when the target is due does so, too, and neither misses the other.
	lockTarget = `SELECT 1 FROM delivery_targets WHERE tenant = $1 AND target = $2 FOR UPDATE`
	lockURL    = `INSERT INTO delivery_targets (tenant, target, url, due_at, resume_at, failures) VALUES ($1, $2, $3, NULL, 0, 0)
		ON CONFLICT (tenant, target) DO UPDATE SET url = excluded.url`
	// What was queued for a target that has been removed meanwhile goes nowhere.
	putDelivery = `INSERT INTO deliveries (tenant, target, run_id, next_seq, last_seq, attempts, due_at, holder, claim, created_at)
		SELECT $1, $2, $3, $4, $5, 0, $6, NULL, 0, $6
		WHERE EXISTS (SELECT 1 FROM delivery_targets WHERE tenant = $1 AND target = $2)
		ON CONFLICT (tenant, target, run_id) DO UPDATE SET last_seq = greatest(deliveries.last_seq, excluded.last_seq)`
	targetDue = `UPDATE delivery_targets SET due_at = greatest(d.due_at, delivery_targets.resume_at) FROM deliveries d
		WHERE delivery_targets.tenant = $1 AND delivery_targets.target = $2
		AND d.tenant = $1 AND d.target = $2 AND d.run_id = $3
		AND (delivery_targets.due_at IS NULL OR delivery_targets.due_at > greatest(d.due_at, delivery_targets.resume_at))`
)

// queued is an entry of a run for a target.
type queued struct {
	run ids.Run
	store.Queued
}

// hooks knows the subscriptions of tenants, each as of a turn. What it knows counts
// only for a transaction that sees the same turn.
type hooks struct {
	mu    sync.Mutex
	known map[string]knownHooks
}

type knownHooks struct {
	turn int64
	subs []store.Subscription // without secrets
}

// maxKnownHooks bounds the tenants that are remembered.
const maxKnownHooks = 4096

func (h *hooks) get(tenant string, turn int64) ([]store.Subscription, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k, ok := h.known[tenant]
	return k.subs, ok && k.turn == turn
}

func (h *hooks) put(tenant string, turn int64, subs []store.Subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.known == nil || len(h.known) >= maxKnownHooks {
		h.known = map[string]knownHooks{}
	}
	h.known[tenant] = knownHooks{turn, subs}
}

// matched lists the tenants of a batch whose subscriptions are asked for.
func matched(batch []*request) []string {
	var out []string
	for _, r := range batch {
		for i := range r.steps {
			if r.steps[i].Matcher != nil {
				out = append(out, r.steps[i].Row.ID.Tenant)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// matches collects what the steps of a transaction send, in the order of the targets,
// so that two transactions lock them in one order.
func (t *writing) matches(ctx context.Context) error {
	subs := map[string][]store.Subscription{}
	for tenant, turn := range t.turns {
		list1, ok := t.s.hooks.get(tenant, turn)
		if !ok {
			var err error
			// Not older than the turn that was read before it.
			if list1, err = list(ctx, t.q, scanHook(tenant), listHooks, tenant, "", bound(0)); err != nil {
				return fmt.Errorf("subscriptions: %w", err)
			}
			t.s.hooks.put(tenant, turn, list1)
		}
		subs[tenant] = list1
	}
	for _, r := range t.batch {
		for i := range r.steps {
			if r.err == nil {
				r.err = t.send(&r.steps[i], subs[r.steps[i].Row.ID.Tenant])
			}
			if r.err != nil && r.changed {
				return errSplit
			}
		}
	}
	slices.SortStableFunc(t.out, func(a, b queued) int {
		return cmp.Or(cmp.Compare(a.run.Tenant, b.run.Tenant), cmp.Compare(a.Target, b.Target), cmp.Compare(a.run.Opaque, b.run.Opaque))
	})
	return nil
}

func (t *writing) send(s *step, subs []store.Subscription) error {
	for _, q := range s.Queued {
		t.out = append(t.out, queued{s.Row.ID, q})
	}
	if s.Matcher == nil || len(subs) == 0 {
		return nil
	}
	for _, q := range s.Matcher.Match(subs) {
		if err := q.Check(); err != nil {
			return damage(err)
		}
		t.out = append(t.out, queued{s.Row.ID, q})
	}
	return nil
}

func queueDeliveries(b *pgx.Batch, out []queued) {
	for i := range out {
		d := &out[i]
		if d.URL != "" {
			b.Queue(lockURL, d.run.Tenant, d.Target, []byte(d.URL))
		} else {
			b.Queue(lockTarget, d.run.Tenant, d.Target)
		}
		b.Queue(putDelivery, d.run.Tenant, d.Target, d.run.Opaque, d.First, d.Last, millis(d.At))
		b.Queue(targetDue, d.run.Tenant, d.Target, d.run.Opaque)
	}
}
