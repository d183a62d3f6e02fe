package sqlite

import (
	"context"
	"errors"
	"time"

	"github.com/fermata-run/fermata/internal/store"
)

// ownership implements store.Ownership. The database belongs to one process, so
// one instance is alive: the one that registered last. It is kept in memory.
type ownership struct{ s *Store }

// going says which runs can be claimed at all: it matches the partial indexes.
const going = `(status NOT IN ('completed', 'failed', 'cancelled') OR compensation IN ('pending', 'running'))`

const (
	nextHolder = `SELECT instance FROM runs INDEXED BY runs_instance
		WHERE instance IS NOT NULL AND instance > ? AND ` + going + ` ORDER BY instance LIMIT 1`
	lostRuns = `SELECT ` + runColumns + ` FROM runs INDEXED BY runs_instance
		WHERE instance IS NOT NULL AND instance = ? AND ` + going + ` LIMIT ?`
	dueRuns = `SELECT ` + runColumns + ` FROM runs INDEXED BY runs_wake
		WHERE instance IS NULL AND wake_at IS NOT NULL AND wake_at <= ? AND ` + going + `
		ORDER BY wake_at LIMIT ?`
	// Of more than can be had at once, each tenant's share.
	nextLost = `SELECT tenant, 1 FROM runs INDEXED BY runs_instance
		WHERE instance IS NOT NULL AND instance = ? AND tenant > ? AND ` + going + ` ORDER BY tenant LIMIT 1`
	lostOf = `SELECT ` + runColumns + ` FROM runs INDEXED BY runs_instance
		WHERE instance IS NOT NULL AND instance = ? AND tenant = ? AND ` + going + ` LIMIT ?`
	nextDue = `SELECT tenant, wake_at <= ? FROM runs INDEXED BY runs_due
		WHERE instance IS NULL AND wake_at IS NOT NULL AND tenant > ? AND ` + going + ` ORDER BY tenant, wake_at LIMIT 1`
	dueOf = `SELECT ` + runColumns + ` FROM runs INDEXED BY runs_due
		WHERE instance IS NULL AND wake_at IS NOT NULL AND wake_at <= ? AND tenant = ? AND ` + going + `
		ORDER BY wake_at LIMIT ?`
	claimRun = `UPDATE runs SET instance = ?, epoch = epoch + 1 WHERE tenant = ? AND run_id = ? AND epoch = ?`

	nextWake = `SELECT wake_at FROM runs INDEXED BY runs_wake
		WHERE instance IS NULL AND wake_at IS NOT NULL AND ` + going + ` ORDER BY wake_at LIMIT 1`
	unsettled = `SELECT ` + runColumns + ` FROM runs WHERE notify = 1 ORDER BY run_id LIMIT ?`
)

// alive fails if another instance has registered since, or none has.
func (o ownership) alive(instance string) error {
	if live := o.s.live.Load(); live == nil || *live != instance {
		return store.ErrNotFound
	}
	return nil
}

// Register implements store.Ownership: every other instance is lost.
func (o ownership) Register(ctx context.Context, instance string) error {
	if instance == "" {
		return wrap("register", errors.New("an instance needs a name"))
	}
	err := o.s.writer.submit(ctx, 0, func(*conn) error {
		o.s.live.Store(&instance)
		return nil
	})
	return wrap("register", err)
}

// Heartbeat implements store.Ownership. The process that could ask is alive, so
// there is nothing to write and no time to keep.
func (o ownership) Heartbeat(ctx context.Context, instance string, _ time.Duration) error {
	if err := o.s.writer.ready(ctx); err != nil {
		return wrap("heartbeat", err)
	}
	return wrap("heartbeat", o.alive(instance))
}

// Deregister implements store.Ownership. The runs keep the name of an instance
// that is not known any more, which makes them claimable.
func (o ownership) Deregister(ctx context.Context, instance string) error {
	err := o.s.writer.submit(ctx, 0, func(*conn) error {
		if o.alive(instance) == nil {
			o.s.live.Store(nil)
		}
		return nil
	})
	return wrap("deregister", err)
}

// Claim implements store.Ownership: of each tenant runs of lost instances first, then
// those whose timer is due, the earliest first.
func (o ownership) Claim(ctx context.Context, instance string, now time.Time, limit int, skip ...string) (out []store.Run, err error) {
	err = o.s.writer.submit(ctx, 0, func(c *conn) error {
		out = nil
		if err := o.alive(instance); err != nil {
			return err
		}
		out, err = o.claimable(c, instance, now, limit, skip)
		for i := range out {
			if err == nil {
				err = take(c, &out[i], instance)
			}
		}
		return err
	})
	if err != nil {
		return nil, wrap("claim", err)
	}
	return out, nil
}

// claimable reads up to limit runs that instance may take.
func (o ownership) claimable(c *conn, instance string, now time.Time, limit int, skip []string) ([]store.Run, error) {
	var out []store.Run
	for holder := ""; ; {
		found, err := c.prep(nextHolder).text(holder).one(func(r *row) { holder = r.text() })
		if err != nil {
			return nil, err
		}
		if !found || limit > 0 && len(out) >= limit {
			break
		}
		if holder == instance {
			continue
		}
		got, err := o.pick(c, lost, func(q *query) *query { return q.text(holder) }, limit, skip)
		if err != nil {
			return nil, err
		}
		out = append(out, got...)
	}
	ready, err := o.pick(c, due, func(q *query) *query { return q.int(now.UnixMilli()) }, limit, skip)
	return store.Turns(append(out, ready...), limit), err
}

func take(c *conn, r *store.Run, instance string) error {
	n, err := c.prep(claimRun).text(instance).text(r.ID.Tenant).text(r.ID.Opaque).int(r.Epoch).change()
	if err == nil && n != 1 {
		err = errors.New("a run changed inside the writer's transaction")
	}
	r.Instance, r.Epoch = instance, r.Epoch+1
	return err
}

// NextWake implements store.Ownership.
func (o ownership) NextWake(ctx context.Context) (at time.Time, err error) {
	err = o.s.readers.read(ctx, func(c *conn) error {
		_, err := c.prep(nextWake).one(func(r *row) { at = r.time() })
		return err
	})
	return at, wrap("next wake", err)
}

// Unsettled implements store.Ownership.
func (o ownership) Unsettled(ctx context.Context, limit int) (out []store.Run, err error) {
	err = o.s.readers.read(ctx, func(c *conn) error {
		out, err = scanRuns(c.prep(unsettled).bound(limit))
		return err
	})
	return out, wrap("list unsettled runs", err)
}
