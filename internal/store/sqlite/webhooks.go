package sqlite

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/fermata-run/fermata/internal/store"
	"github.com/go-json-experiment/json"
)

// webhooks implements store.Webhooks.
type webhooks struct{ s *Store }

// Webhooks implements store.Store.
func (s *Store) Webhooks() store.Webhooks { return webhooks{s} }

const (
	oneHook     = ` WHERE tenant = ? AND id = ?`
	hookColumns = `id, url, events, tags, algorithms, rotated_at, previous_until, disabled_at, reason, created_at, major`

	countHooks = `SELECT count(*) FROM webhooks WHERE tenant = ?`
	insertHook = `INSERT INTO webhooks (tenant, ` + hookColumns + `, secret, previous)
		VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING`
	hookTarget = `INSERT INTO delivery_targets (tenant, target, url, due_at, resume_at, failures) VALUES (?,?,NULL,NULL,0,0)
		ON CONFLICT DO NOTHING`
	selectHook  = `SELECT ` + hookColumns + `, secret, previous FROM webhooks` + oneHook
	listHooks   = `SELECT ` + hookColumns + ` FROM webhooks WHERE tenant = ? AND id > ? ORDER BY id LIMIT ?`
	rotateHook  = `UPDATE webhooks SET previous = secret, secret = ?, rotated_at = ?, previous_until = ?` + oneHook
	enableHook  = `UPDATE webhooks SET disabled_at = NULL, reason = ''` + oneHook
	disableHook = `UPDATE webhooks SET disabled_at = ?, reason = ?` + oneHook + ` AND disabled_at IS NULL`
	removeHook  = `DELETE FROM webhooks` + oneHook

	removeTarget  = `DELETE FROM delivery_targets WHERE tenant = ? AND target = ?`
	removeQueued  = `DELETE FROM deliveries WHERE tenant = ? AND target = ?`
	removeLetters = `DELETE FROM dead_letters WHERE tenant = ? AND webhook = ?`
	resumeTarget  = `UPDATE delivery_targets SET resume_at = 0, failures = 0, failing_since = NULL WHERE tenant = ? AND target = ?`
	resumeQueued  = `UPDATE deliveries SET due_at = ?, attempts = 0 WHERE tenant = ? AND target = ? AND holder IS NULL`
)

// scanHook reads hookColumns.
func scanHook(r *row, tenant string) (store.Subscription, error) {
	s := store.Subscription{Tenant: tenant, ID: r.text(), URL: r.text()}
	for _, into := range []*[]string{&s.Events, &s.Tags, &s.Algorithms} {
		if b := r.raw(); b != nil {
			if err := json.Unmarshal(b, into); err != nil {
				return s, fmt.Errorf("subscription %s: %w", s.ID, err)
			}
		}
	}
	s.RotatedAt, s.PreviousUntil, s.DisabledAt = r.time(), r.time(), r.time()
	s.Reason = r.text()
	s.CreatedAt = r.time()
	s.Major = int(r.int())
	return s, nil
}

// strings binds a list as a JSON array, NULL if it is empty.
func (q *query) strings(list []string) *query {
	if len(list) == 0 {
		return q.null()
	}
	b, err := json.Marshal(list)
	return q.blob(b).bind(err)
}

// Add implements store.Webhooks.
func (w webhooks) Add(ctx context.Context, s store.Subscription, most int) error {
	if err := s.Check(); err != nil {
		return wrap("add a subscription", err)
	}
	err := w.s.writer.submit(ctx, 0, func(c *conn) error {
		found, err := c.prep(selectHook).text(s.Tenant).text(s.ID).one(func(*row) {})
		if err == nil && found {
			err = store.ErrExists
		}
		var have int64
		if err == nil {
			_, err = c.prep(countHooks).text(s.Tenant).one(func(r *row) { have = r.int() })
		}
		if err == nil && most > 0 && have >= int64(most) {
			err = store.ErrFull
		}
		if err != nil {
			return err
		}
		w.s.hooks.changed(s.Tenant)
		err = c.prep(insertHook).text(s.Tenant).text(s.ID).text(s.URL).strings(s.Events).strings(s.Tags).strings(s.Algorithms).
			time(s.RotatedAt).time(s.PreviousUntil).time(s.DisabledAt).text(s.Reason).time(s.CreatedAt).int(int64(s.Major)).
			text(s.Secret).text(s.Previous).run()
		if err == nil {
			err = c.prep(hookTarget).text(s.Tenant).text(s.ID).run()
		}
		return err
	})
	return wrap("add a subscription", err)
}

// Get implements store.Webhooks.
func (w webhooks) Get(ctx context.Context, tenant, id string) (s store.Subscription, err error) {
	err = w.s.readers.read(ctx, func(c *conn) error {
		var bad error
		found, err := c.prep(selectHook).text(tenant).text(id).one(func(r *row) {
			s, bad = scanHook(r, tenant)
			s.Secret, s.Previous = r.text(), r.text()
		})
		if err == nil && !found {
			err = store.ErrNotFound
		}
		if err == nil {
			err = bad
		}
		return err
	})
	if err != nil {
		return store.Subscription{}, wrap("read subscription "+id, err)
	}
	return s, nil
}

// List implements store.Webhooks.
func (w webhooks) List(ctx context.Context, tenant, after string, limit int) (out []store.Subscription, err error) {
	err = w.s.readers.read(ctx, func(c *conn) error {
		out, err = scanHooks(c, tenant, after, limit)
		return err
	})
	if err != nil {
		return nil, wrap("list subscriptions", err)
	}
	return out, nil
}

func scanHooks(c *conn, tenant, after string, limit int) (out []store.Subscription, err error) {
	err = c.prep(listHooks).text(tenant).text(after).bound(limit).each(func(r *row) (bool, error) {
		s, err := scanHook(r, tenant)
		out = append(out, s)
		return true, err
	})
	return out, err
}

// changeHook executes a statement that changes one subscription, then what
// follows from it.
func (w webhooks) changeHook(ctx context.Context, tenant string, q func(c *conn) *query, then ...func(c *conn) *query) error {
	return w.s.writer.submit(ctx, 0, func(c *conn) error {
		w.s.hooks.changed(tenant)
		n, err := q(c).change()
		if err == nil && n == 0 {
			err = store.ErrNotFound
		}
		for _, q := range then {
			if err == nil {
				err = q(c).run()
			}
		}
		return err
	})
}

// Remove implements store.Webhooks.
func (w webhooks) Remove(ctx context.Context, tenant, id string) error {
	rest := func(sql string) func(c *conn) *query {
		return func(c *conn) *query { return c.prep(sql).text(tenant).text(id) }
	}
	return wrap("remove subscription "+id, w.changeHook(ctx, tenant, rest(removeHook),
		rest(removeTarget), rest(removeQueued), rest(removeLetters)))
}

// Rotate implements store.Webhooks.
func (w webhooks) Rotate(ctx context.Context, tenant, id, secret string, at, until time.Time) error {
	return wrap("rotate the secret of subscription "+id, w.changeHook(ctx, tenant, func(c *conn) *query {
		return c.prep(rotateHook).text(secret).time(at).time(until).text(tenant).text(id)
	}))
}

// Enable implements store.Webhooks.
func (w webhooks) Enable(ctx context.Context, tenant, id string, now time.Time) error {
	return wrap("enable subscription "+id, w.changeHook(ctx, tenant,
		func(c *conn) *query { return c.prep(enableHook).text(tenant).text(id) },
		func(c *conn) *query { return c.prep(resumeTarget).text(tenant).text(id) },
		func(c *conn) *query { return c.prep(resumeQueued).time(now).text(tenant).text(id) },
		func(c *conn) *query { return c.prep(reschedule).text(tenant).text(id) },
	))
}

const (
	insertLetter = `INSERT INTO dead_letters
		(tenant, webhook, at, id, run_id, event_id, event_type, attempts, reason, last_status, expires_at)
		VALUES (?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING`
	listLetters = `SELECT at, id, run_id, event_id, event_type, attempts, reason, last_status, expires_at FROM dead_letters
		WHERE tenant = ? AND webhook = ? AND (at, id) < (?, ?) AND expires_at > ? ORDER BY at DESC, id DESC LIMIT ?`
	purgeLetters = `DELETE FROM dead_letters WHERE (tenant, webhook, at, id) IN (
		SELECT tenant, webhook, at, id FROM dead_letters INDEXED BY dead_letters_expires
		WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)`
)

func putLetter(c *conn, d *store.DeadLetter) error {
	return c.prep(insertLetter).text(d.Tenant).text(d.Subscription).int(d.At.UnixMilli()).text(d.ID).text(d.Run.Opaque).
		text(d.EventID).text(d.EventType).int(int64(d.Attempts)).text(d.Reason).int(int64(d.LastStatus)).
		int(d.ExpiresAt.UnixMilli()).run()
}

// DeadLetters implements store.Webhooks.
func (w webhooks) DeadLetters(ctx context.Context, x store.DeadLetterQuery) (out []store.DeadLetter, err error) {
	at := int64(math.MaxInt64)
	if !x.BeforeAt.IsZero() {
		at = x.BeforeAt.UnixMilli()
	}
	err = w.s.readers.read(ctx, func(c *conn) error {
		q := c.prep(listLetters).text(x.Tenant).text(x.Subscription).int(at).text(x.BeforeID).int(x.Now.UnixMilli()).bound(x.Limit)
		return q.each(func(r *row) (bool, error) {
			d := store.DeadLetter{Tenant: x.Tenant, Subscription: x.Subscription}
			d.At, d.ID = r.time(), r.text()
			d.Run.Tenant, d.Run.Opaque = x.Tenant, r.text()
			d.EventID, d.EventType = r.text(), r.text()
			d.Attempts, d.Reason, d.LastStatus = int(r.int()), r.text(), int(r.int())
			d.ExpiresAt = r.time()
			out = append(out, d)
			return true, nil
		})
	})
	if err != nil {
		return nil, wrap("list dead letters", err)
	}
	return out, nil
}

// PurgeDeadLetters implements store.Webhooks.
func (w webhooks) PurgeDeadLetters(ctx context.Context, now time.Time, limit int) (n int, err error) {
	err = w.s.writer.submit(ctx, 0, func(c *conn) error {
		gone, err := c.prep(purgeLetters).int(now.UnixMilli()).bound(limit).change()
		n = int(gone)
		return err
	})
	if err != nil {
		return 0, wrap("purge dead letters", err)
	}
	return n, nil
}
