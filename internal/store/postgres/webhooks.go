package postgres

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/fermata-run/fermata/internal/store"
	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"
)

// webhooks implements store.Webhooks.
type webhooks struct{ s *Store }

const (
	oneHook     = ` WHERE tenant = $1 AND id = $2`
	hookColumns = `id, url, events, tags, algorithms, rotated_at, previous_until, disabled_at, reason, created_at, major`

	// Whoever changes subscriptions of a tenant counts it here first; so they come one
	// after another, and steps see that something has changed.
	turnHooks = `INSERT INTO webhook_turns (tenant, turn) VALUES ($1, 1)
		ON CONFLICT (tenant) DO UPDATE SET turn = webhook_turns.turn + 1`
	selectTurn = `SELECT turn FROM webhook_turns WHERE tenant = $1`

	countHooks = `SELECT count(*) FROM webhooks WHERE tenant = $1`
	insertHook = `INSERT INTO webhooks (tenant, ` + hookColumns + `, secret, previous)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) ON CONFLICT DO NOTHING`
	hookTarget = `INSERT INTO delivery_targets (tenant, target, url, due_at, resume_at, failures) VALUES ($1, $2, NULL, NULL, 0, 0)
		ON CONFLICT DO NOTHING`
	selectHook  = `SELECT ` + hookColumns + `, secret, previous FROM webhooks` + oneHook
	listHooks   = `SELECT ` + hookColumns + `, NULL::bytea, NULL::bytea FROM webhooks WHERE tenant = $1 AND id > $2 ORDER BY id LIMIT $3`
	rotateHook  = `UPDATE webhooks SET previous = secret, secret = $3, rotated_at = $4, previous_until = $5` + oneHook
	enableHook  = `UPDATE webhooks SET disabled_at = NULL, reason = ''` + oneHook
	disableHook = `UPDATE webhooks SET disabled_at = $3, reason = $4` + oneHook + ` AND disabled_at IS NULL`
	removeHook  = `DELETE FROM webhooks` + oneHook

	removeTarget  = `DELETE FROM delivery_targets WHERE tenant = $1 AND target = $2`
	removeQueued  = `DELETE FROM deliveries WHERE tenant = $1 AND target = $2`
	removeLetters = `DELETE FROM dead_letters WHERE tenant = $1 AND webhook = $2`
	resumeTarget  = `UPDATE delivery_targets SET resume_at = 0, failures = 0, failing_since = NULL WHERE tenant = $1 AND target = $2`
	resumeQueued  = `UPDATE deliveries SET due_at = $3, attempts = 0 WHERE tenant = $1 AND target = $2 AND holder IS NULL`

	insertLetter = `INSERT INTO dead_letters
		(tenant, webhook, at, id, run_id, event_id, event_type, attempts, reason, last_status, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING`
	listLetters = `SELECT at, id, run_id, event_id, event_type, attempts, reason, last_status, expires_at FROM dead_letters
		WHERE tenant = $1 AND webhook = $2 AND (at, id) < ($3, $4) AND expires_at > $5 ORDER BY at DESC, id DESC LIMIT $6`
	oldLetters  = `SELECT tenant, webhook, at, id FROM dead_letters WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2`
	purgeLetter = `DELETE FROM dead_letters WHERE expires_at <= $1 AND tenant = $2 AND webhook = $3 AND at = $4 AND id = $5`
)

func scanHook(tenant string) func(row pgx.CollectableRow) (store.Subscription, error) {
	return func(row pgx.CollectableRow) (s store.Subscription, err error) {
		s.Tenant = tenant
		var lists [3][]byte
		err = row.Scan(&s.ID, (*raw)(&s.URL), &lists[0], &lists[1], &lists[2], (*stamp)(&s.RotatedAt), (*stamp)(&s.PreviousUntil),
			(*stamp)(&s.DisabledAt), (*raw)(&s.Reason), (*stamp)(&s.CreatedAt), &s.Major, (*raw)(&s.Secret), (*raw)(&s.Previous))
		for i, into := range []*[]string{&s.Events, &s.Tags, &s.Algorithms} {
			if err == nil && lists[i] != nil {
				if err = json.Unmarshal(lists[i], into); err != nil {
					err = damage(fmt.Errorf("subscription %s: %w", s.ID, err))
				}
			}
		}
		return s, err
	}
}

// names writes a list as a JSON array, NULL if it is empty.
func names(list []string) []byte {
	if len(list) == 0 {
		return nil
	}
	b, err := json.Marshal(list)
	if err != nil {
		return nil // strings that are no text were refused long before
	}
	return b
}

// Add implements store.Webhooks.
func (w webhooks) Add(ctx context.Context, s store.Subscription, most int) error {
	if err := s.Check(); err != nil {
		return wrap("add a subscription", err)
	}
	return wrap("add a subscription", w.s.tx(ctx, func(q querier) error {
		if _, err := q.Exec(ctx, turnHooks, s.Tenant); err != nil {
			return err
		}
		have := 0
		if _, err := one(ctx, q, countHooks, []any{s.Tenant}, &have); err != nil {
			return err
		}
		n, err := change(ctx, q, insertHook, s.Tenant, s.ID, []byte(s.URL), names(s.Events), names(s.Tags), names(s.Algorithms),
			millis(s.RotatedAt), millis(s.PreviousUntil), millis(s.DisabledAt), []byte(s.Reason), millis(s.CreatedAt), s.Major,
			[]byte(s.Secret), []byte(s.Previous))
		switch {
		case err != nil:
			return err
		case n == 0:
			return store.ErrExists
		case most > 0 && have >= most:
			return store.ErrFull
		}
		_, err = q.Exec(ctx, hookTarget, s.Tenant, s.ID)
		return err
	}))
}

// Get implements store.Webhooks.
func (w webhooks) Get(ctx context.Context, tenant, id string) (s store.Subscription, err error) {
	err = w.s.read(ctx, func(q querier) error {
		s, err = scanOne(ctx, q, scanHook(tenant), selectHook, tenant, id)
		return err
	})
	if err != nil {
		return store.Subscription{}, wrap("read subscription "+id, err)
	}
	return s, nil
}

// List implements store.Webhooks.
func (w webhooks) List(ctx context.Context, tenant, after string, limit int) (out []store.Subscription, err error) {
	err = w.s.read(ctx, func(q querier) error {
		out, err = list(ctx, q, scanHook(tenant), listHooks, tenant, after, bound(limit))
		return err
	})
	return out, wrap("list subscriptions", err)
}

// statement is one of several that follow from a change.
type statement struct {
	sql  string
	args []any
}

// changeHook executes a statement that changes one subscription, then what follows
// from it.
func (w webhooks) changeHook(ctx context.Context, tenant string, first statement, then ...statement) error {
	return w.s.tx(ctx, func(q querier) error {
		if _, err := q.Exec(ctx, turnHooks, tenant); err != nil {
			return err
		}
		n, err := change(ctx, q, first.sql, first.args...)
		if err == nil && n == 0 {
			err = store.ErrNotFound
		}
		for _, x := range then {
			if err == nil {
				_, err = q.Exec(ctx, x.sql, x.args...)
			}
		}
		return err
	})
}

// Remove implements store.Webhooks.
func (w webhooks) Remove(ctx context.Context, tenant, id string) error {
	name := []any{tenant, id}
	return wrap("remove subscription "+id, w.changeHook(ctx, tenant, statement{removeHook, name},
		statement{removeTarget, name}, statement{removeQueued, name}, statement{removeLetters, name}))
}

// Rotate implements store.Webhooks.
func (w webhooks) Rotate(ctx context.Context, tenant, id, secret string, at, until time.Time) error {
	return wrap("rotate the secret of subscription "+id, w.changeHook(ctx, tenant,
		statement{rotateHook, []any{tenant, id, []byte(secret), millis(at), millis(until)}}))
}

// Enable implements store.Webhooks.
func (w webhooks) Enable(ctx context.Context, tenant, id string, now time.Time) error {
	name := []any{tenant, id}
	return wrap("enable subscription "+id, w.changeHook(ctx, tenant, statement{enableHook, name},
		statement{resumeTarget, name}, statement{resumeQueued, []any{tenant, id, millis(now)}}, statement{reschedule, name}))
}

func putLetter(ctx context.Context, q querier, d *store.DeadLetter) error {
	_, err := q.Exec(ctx, insertLetter, d.Tenant, d.Subscription, d.At.UnixMilli(), d.ID, d.Run.Opaque,
		[]byte(d.EventID), []byte(d.EventType), d.Attempts, []byte(d.Reason), d.LastStatus, d.ExpiresAt.UnixMilli())
	return err
}

// DeadLetters implements store.Webhooks.
func (w webhooks) DeadLetters(ctx context.Context, x store.DeadLetterQuery) (out []store.DeadLetter, err error) {
	at := int64(math.MaxInt64)
	if !x.BeforeAt.IsZero() {
		at = x.BeforeAt.UnixMilli()
	}
	err = w.s.read(ctx, func(q querier) error {
		out, err = list(ctx, q, func(row pgx.CollectableRow) (d store.DeadLetter, err error) {
			d.Tenant, d.Subscription, d.Run.Tenant = x.Tenant, x.Subscription, x.Tenant
			err = row.Scan((*stamp)(&d.At), &d.ID, &d.Run.Opaque, (*raw)(&d.EventID), (*raw)(&d.EventType), &d.Attempts,
				(*raw)(&d.Reason), &d.LastStatus, (*stamp)(&d.ExpiresAt))
			return d, err
		}, listLetters, x.Tenant, x.Subscription, at, x.BeforeID, x.Now.UnixMilli(), bound(x.Limit))
		return err
	})
	return out, wrap("list dead letters", err)
}

// PurgeDeadLetters implements store.Webhooks.
func (w webhooks) PurgeDeadLetters(ctx context.Context, now time.Time, limit int) (int, error) {
	n, err := w.s.purge(ctx, now, limit, purging{oldLetters, purgeLetter})
	return n, wrap("purge dead letters", err)
}
