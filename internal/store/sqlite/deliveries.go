package sqlite

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/fermata-run/fermata/internal/store"
	"github.com/go-json-experiment/json"
)

// deliveries implements store.Deliveries.
type deliveries struct{ s *Store }

// Deliveries implements store.Store.
func (s *Store) Deliveries() store.Deliveries { return deliveries{s} }

const (
	oneTarget   = ` WHERE tenant = ? AND target = ?`
	oneDelivery = oneTarget + ` AND run_id = ?`

	growDelivery   = `UPDATE deliveries SET last_seq = max(last_seq, ?)` + oneDelivery
	insertDelivery = `INSERT INTO deliveries
		(tenant, target, run_id, next_seq, last_seq, attempts, due_at, holder, claim, created_at) VALUES (?,?,?,?,?,0,?,NULL,0,?)`
	urlTarget = `INSERT INTO delivery_targets (tenant, target, url, due_at, resume_at, failures) VALUES (?,?,?,NULL,0,0)
		ON CONFLICT DO NOTHING`
	targetDue = `UPDATE delivery_targets SET due_at = max(?, resume_at)` + oneTarget + ` AND (due_at IS NULL OR due_at > max(?, resume_at))`

	// reschedule says when a target is due from what its entries say.
	reschedule = `UPDATE delivery_targets SET due_at = (SELECT max(d.due_at, delivery_targets.resume_at) FROM deliveries d
		WHERE d.tenant = delivery_targets.tenant AND d.target = delivery_targets.target ORDER BY d.due_at LIMIT 1)` + oneTarget

	dueTargets = `SELECT tenant, target, coalesce(url, ''), due_at, failures FROM delivery_targets INDEXED BY delivery_targets_due
		WHERE due_at IS NOT NULL AND due_at <= ? AND tenant NOT IN (SELECT value FROM json_each(?)) ORDER BY due_at LIMIT ?`
	nextTarget = `SELECT due_at FROM delivery_targets INDEXED BY delivery_targets_due
		WHERE due_at IS NOT NULL ORDER BY due_at LIMIT 1`
	selectTarget = `SELECT coalesce(url, ''), failures, failing_since FROM delivery_targets` + oneTarget + ` AND due_at <= ?`
	dueEntries   = `SELECT run_id, next_seq, last_seq, attempts, created_at FROM deliveries INDEXED BY deliveries_due` + oneTarget + `
		AND due_at <= ? ORDER BY due_at LIMIT ?`
	takeEntry = `UPDATE deliveries SET due_at = ?, holder = ?, claim = ?` + oneDelivery

	heldEntry    = `SELECT last_seq FROM deliveries` + oneDelivery + ` AND claim = ?`
	removeEntry  = `DELETE FROM deliveries` + oneDelivery
	moveEntry    = `UPDATE deliveries SET next_seq = ?, attempts = ?, due_at = ?` + oneDelivery
	releaseEntry = `UPDATE deliveries SET next_seq = ?, attempts = ?, due_at = ?, holder = NULL, claim = 0` + oneDelivery
	fareTarget   = `UPDATE delivery_targets SET failures = ?, failing_since = ?, resume_at = ?` + oneTarget
	emptyTarget  = `DELETE FROM delivery_targets` + oneTarget + ` AND url IS NOT NULL AND due_at IS NULL`

	lostTargets = `UPDATE delivery_targets SET due_at = max(?, resume_at) WHERE (tenant, target) IN (
		SELECT tenant, target FROM deliveries INDEXED BY deliveries_held WHERE holder IS NOT NULL AND holder <> ?)`
	lostEntries = `UPDATE deliveries SET due_at = ?, holder = NULL, claim = 0 WHERE holder IS NOT NULL AND holder <> ?`
)

// putQueued writes what goes out because of a step.
func putQueued(c *conn, h *hooks, a *store.Append) error {
	for i := range a.Queued {
		if err := putOne(c, a, &a.Queued[i]); err != nil {
			return err
		}
	}
	if a.Matcher == nil {
		return nil
	}
	subs, err := h.of(c, a.Row.ID.Tenant)
	if err != nil || len(subs) == 0 {
		return err
	}
	for _, q := range a.Matcher.Match(subs) {
		if err := q.Check(); err != nil {
			return err
		}
		if err := putOne(c, a, &q); err != nil {
			return err
		}
	}
	return nil
}

func putOne(c *conn, a *store.Append, d *store.Queued) error {
	id := a.Row.ID
	n, err := c.prep(growDelivery).int(d.Last).text(id.Tenant).text(d.Target).text(id.Opaque).change()
	if err != nil || n > 0 {
		return err
	}
	err = c.prep(insertDelivery).text(id.Tenant).text(d.Target).text(id.Opaque).int(d.First).int(d.Last).time(d.At).time(d.At).run()
	if err == nil && d.URL != "" {
		err = c.prep(urlTarget).text(id.Tenant).text(d.Target).text(d.URL).run()
	}
	if err == nil {
		err = c.prep(targetDue).time(d.At).text(id.Tenant).text(d.Target).time(d.At).run()
	}
	if err != nil {
		return fmt.Errorf("queue for %s: %w", d.Target, err)
	}
	return nil
}

// Due implements store.Deliveries.
func (d deliveries) Due(ctx context.Context, now time.Time, skip []string, limit int) (out []store.Target, err error) {
	if skip == nil {
		skip = []string{}
	}
	names, err := json.Marshal(skip)
	if err != nil {
		return nil, err
	}
	err = d.s.readers.read(ctx, func(c *conn) error {
		return c.prep(dueTargets).time(now).text(string(names)).bound(limit).each(func(r *row) (bool, error) {
			t := store.Target{Tenant: r.text(), ID: r.text(), URL: r.text()}
			t.DueAt, t.Failures = r.time(), int(r.int())
			out = append(out, t)
			return true, nil
		})
	})
	if err != nil {
		return nil, wrap("list what is due", err)
	}
	return out, nil
}

// NextDue implements store.Deliveries.
func (d deliveries) NextDue(ctx context.Context) (at time.Time, err error) {
	err = d.s.readers.read(ctx, func(c *conn) error {
		_, err := c.prep(nextTarget).one(func(r *row) { at = r.time() })
		return err
	})
	return at, wrap("next delivery", err)
}

// Take implements store.Deliveries.
func (d deliveries) Take(ctx context.Context, q store.TakeQuery) (out []store.Delivery, err error) {
	err = d.s.writer.submit(ctx, 0, func(c *conn) error {
		out = nil
		if err := ownership(d).alive(q.Instance); err != nil {
			return err
		}
		for _, x := range q.Quotas {
			if out, err = takeFrom(c, out, &q, x); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, wrap("take deliveries", err)
	}
	return out, nil
}

func takeFrom(c *conn, out []store.Delivery, q *store.TakeQuery, x store.Quota) ([]store.Delivery, error) {
	t := store.Delivery{Tenant: x.Tenant, Target: x.Target}
	found, err := c.prep(selectTarget).text(x.Tenant).text(x.Target).time(q.Now).one(func(r *row) {
		t.URL, t.Failures, t.FailingSince = r.text(), int(r.int()), r.time()
	})
	if err != nil || !found {
		return out, err
	}
	first := len(out)
	err = c.prep(dueEntries).text(x.Tenant).text(x.Target).time(q.Now).bound(x.Limit).each(func(r *row) (bool, error) {
		e := t
		e.Run.Tenant, e.Run.Opaque = x.Tenant, r.text()
		e.Next, e.Last, e.Attempts, e.CreatedAt = r.int(), r.int(), int(r.int()), r.time()
		e.Claim = 1 + rand.Int64N(1<<62)
		out = append(out, e)
		return true, nil
	})
	for i := first; i < len(out) && err == nil; i++ {
		e := &out[i]
		err = c.prep(takeEntry).time(q.Until).text(q.Instance).int(e.Claim).text(e.Tenant).text(e.Target).text(e.Run.Opaque).run()
	}
	if err == nil { // even if nothing was due: then it is the target that was wrong
		err = c.prep(reschedule).text(x.Tenant).text(x.Target).run()
	}
	return out, err
}

// Settle implements store.Deliveries.
func (d deliveries) Settle(ctx context.Context, s store.Settlement) error {
	err := s.Check()
	if err == nil {
		err = d.s.writer.submit(ctx, 0, func(c *conn) error { return d.settle(c, &s) })
	}
	return wrap("settle a delivery", err)
}

func (d deliveries) settle(c *conn, s *store.Settlement) error {
	key := func(q *query) *query { return q.text(s.Tenant).text(s.Target).text(s.Run.Opaque) }
	var last int64
	found, err := key(c.prep(heldEntry)).int(s.Claim).one(func(r *row) { last = r.int() })
	if err == nil && !found {
		err = store.ErrStale
	}
	if err != nil {
		return err
	}
	switch {
	case s.Next > last:
		err = key(c.prep(removeEntry)).run()
	case s.Next > s.Last: // it has grown
		err = key(c.prep(releaseEntry).int(s.Next).int(0).time(s.Now)).run()
	case s.Hold:
		err = key(c.prep(moveEntry).int(s.Next).int(int64(s.Attempts)).time(s.DueAt)).run()
	default:
		err = key(c.prep(releaseEntry).int(s.Next).int(int64(s.Attempts)).time(s.DueAt)).run()
	}
	for i := range s.Letters {
		if err == nil {
			err = putLetter(c, &s.Letters[i])
		}
	}
	if err == nil && s.Disable != "" {
		d.s.hooks.changed(s.Tenant)
		err = c.prep(disableHook).time(s.Now).text(s.Disable).text(s.Tenant).text(s.Target).run()
	}
	resume := int64(0)
	if !s.ResumeAt.IsZero() {
		resume = s.ResumeAt.UnixMilli()
	}
	if err == nil {
		err = c.prep(fareTarget).int(int64(s.Failures)).time(s.FailingSince).int(resume).text(s.Tenant).text(s.Target).run()
	}
	if err == nil {
		err = c.prep(reschedule).text(s.Tenant).text(s.Target).run()
	}
	if err == nil && s.Next > last {
		err = c.prep(emptyTarget).text(s.Tenant).text(s.Target).run()
	}
	return err
}

// Recover implements store.Deliveries. The database belongs to one process, so
// everybody but the live instance is lost.
func (d deliveries) Recover(ctx context.Context, instance string, now time.Time) (n int, err error) {
	err = d.s.writer.submit(ctx, 0, func(c *conn) error {
		if err := ownership(d).alive(instance); err != nil {
			return err
		}
		if err := c.prep(lostTargets).time(now).text(instance).run(); err != nil {
			return err
		}
		gone, err := c.prep(lostEntries).time(now).text(instance).change()
		n = int(gone)
		return err
	})
	if err != nil {
		return 0, wrap("recover deliveries", err)
	}
	return n, nil
}
