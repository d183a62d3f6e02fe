package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/fermata-run/fermata/internal/store"
	"github.com/jackc/pgx/v5"
)

// Who is alive has a row in instances. A row whose lease is over is removed by
// whoever notices, and only with that is its instance lost: from then on it can
// neither beat nor claim. All times of a lease are the database's.

const (
	// firstLease is for the time until the first heartbeat, in seconds.
	register = `INSERT INTO instances (id, lease_until, since) VALUES ($1, now() + interval '60 seconds', 'epoch')
		ON CONFLICT (id) DO UPDATE SET lease_until = excluded.lease_until, since = excluded.since`
	// A lease that had run out begins a new time without a gap.
	beat = `UPDATE instances SET since = CASE WHEN lease_until < now() THEN now() ELSE since END,
		lease_until = now() + $2 * interval '1 millisecond' WHERE id = $1`
	deregister = `DELETE FROM instances WHERE id = $1`
	isAlive    = `SELECT 1 FROM instances WHERE id = $1`

	selectInstances = `SELECT id, lease_until <= now() FROM instances ORDER BY id`
	// After the database itself was away, all leases have run out. Who comes back
	// first does not declare the others lost: their leases must have run out while it
	// was alive, or it must have been alive again for as long as a lease lasts.
	declareLost = `DELETE FROM instances WHERE id = $1 AND lease_until <= now() AND EXISTS (
		SELECT 1 FROM instances me WHERE me.id = $2 AND me.lease_until > now()
		AND (instances.lease_until >= me.since OR me.since + (me.lease_until - now()) <= now()))`
)

// ownership implements store.Ownership.
type ownership struct{ s *Store }

// Register implements store.Ownership.
func (o ownership) Register(ctx context.Context, instance string) error {
	if instance == "" {
		return wrap("register", errors.New("an instance needs a name"))
	}
	err := o.s.tx(ctx, func(q querier) error {
		_, err := q.Exec(ctx, register, instance)
		return err
	})
	o.s.looks.again()
	return wrap("register", err)
}

// Heartbeat implements store.Ownership.
func (o ownership) Heartbeat(ctx context.Context, instance string, ttl time.Duration) error {
	// A try that hears nothing must leave time for another one, unless the lease is so
	// short that a healthy database may need more.
	try := o.s.timeout
	if ttl >= time.Second {
		try = min(ttl/3, try)
	}
	err := o.s.readWithin(ctx, try, func(q querier) error { // to beat twice does no harm
		n, err := change(ctx, q, beat, instance, ttl.Milliseconds())
		if err == nil && n == 0 {
			err = store.ErrNotFound
		}
		return err
	})
	// The one write that every host makes again and again, whatever it has to do.
	o.s.mute.Store(errors.Is(err, store.ErrUnavailable))
	return wrap("heartbeat", err)
}

// Deregister implements store.Ownership. The runs keep the name of an instance that
// is not known any more, which makes them claimable.
func (o ownership) Deregister(ctx context.Context, instance string) error {
	err := o.s.read(ctx, func(q querier) error {
		_, err := q.Exec(ctx, deregister, instance)
		return err
	})
	o.s.looks.again()
	if err == nil && o.s.hints != nil {
		o.s.hints.add(string(hintWork)) // its runs can be had
	}
	return wrap("deregister", err)
}

// alive fails if an instance is not registered.
func alive(ctx context.Context, q querier, instance string) error {
	var x int
	found, err := one(ctx, q, isAlive, []any{instance}, &x)
	if err == nil && !found {
		err = store.ErrNotFound
	}
	return err
}

// lives says whether the holder of something still lives, in the eyes of instance.
func lives(ctx context.Context, q querier, holder, instance string) (bool, error) {
	if _, err := q.Exec(ctx, declareLost, holder, instance); err != nil {
		return false, err
	}
	err := alive(ctx, q, holder)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// registered is an instance that has a row.
type registered struct {
	id   string
	over bool // its lease
}

func scanInstance(row pgx.CollectableRow) (x registered, err error) {
	err = row.Scan(&x.id, &x.over)
	return x, err
}

// others lists the instances that live, after those whose time is over have been
// declared lost. It fails if instance is not one of them.
func others(ctx context.Context, q querier, instance string) (living []string, err error) {
	rows, err := list(ctx, q, scanInstance, selectInstances)
	if err != nil {
		return nil, err
	}
	known := false
	for _, x := range rows {
		known = known || x.id == instance
		if x.over && x.id != instance {
			is, err := lives(ctx, q, x.id, instance)
			if err != nil {
				return nil, err
			}
			if !is {
				continue
			}
		}
		living = append(living, x.id)
	}
	if !known {
		return nil, store.ErrNotFound
	}
	return living, nil
}
