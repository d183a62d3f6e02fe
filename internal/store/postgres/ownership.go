package postgres

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/fermata-run/fermata/internal/store"
	"github.com/jackc/pgx/v5"
)

// going says which runs can be claimed at all: it matches the partial indexes.
const going = `(status NOT IN ('completed', 'failed', 'cancelled') OR compensation IN ('pending', 'running'))`

const (
	nextHolder = `SELECT instance FROM runs WHERE instance IS NOT NULL AND instance > $1 AND ` + going + `
		ORDER BY instance LIMIT 1`
	lostRuns = `SELECT ` + runColumns + ` FROM runs WHERE instance IS NOT NULL AND instance = $1 AND ` + going + `
		LIMIT $2 FOR UPDATE SKIP LOCKED`
	dueRuns = `SELECT ` + runColumns + ` FROM runs WHERE instance IS NULL AND wake_at IS NOT NULL AND wake_at <= $1 AND ` + going + `
		ORDER BY wake_at LIMIT $2 FOR UPDATE SKIP LOCKED`
	// Of more than can be had at once, each tenant's share.
	nextLost = `SELECT tenant, true FROM runs WHERE instance IS NOT NULL AND instance = $1 AND tenant > $2 AND ` + going + `
		ORDER BY tenant LIMIT 1`
	lostOf = `SELECT ` + runColumns + ` FROM runs WHERE instance IS NOT NULL AND instance = $1 AND tenant = $2 AND ` + going + `
		LIMIT $3 FOR UPDATE SKIP LOCKED`
	nextDue = `SELECT tenant, wake_at <= $1 FROM runs WHERE instance IS NULL AND wake_at IS NOT NULL AND tenant > $2 AND ` + going + `
		ORDER BY tenant, wake_at LIMIT 1`
	dueOf = `SELECT ` + runColumns + ` FROM runs WHERE instance IS NULL AND wake_at IS NOT NULL AND wake_at <= $1 AND tenant = $2 AND ` + going + `
		ORDER BY wake_at LIMIT $3 FOR UPDATE SKIP LOCKED`
	claimRun = `UPDATE runs SET instance = $3, epoch = epoch + 1 WHERE tenant = $1 AND run_id = $2 AND epoch = $4`

	nextWake  = `SELECT wake_at FROM runs WHERE instance IS NULL AND wake_at IS NOT NULL AND ` + going + ` ORDER BY wake_at LIMIT 1`
	unsettled = `SELECT ` + runColumns + ` FROM runs WHERE notify ORDER BY run_id LIMIT $1`
)

// lookEvery is how often runs of holders nobody knows are looked for although the
// instances have not changed: one that was lost, and has not noticed yet, may still
// have created a run.
const lookEvery = 10 * time.Second

// looks remembers whether runs of lost instances may be there, so that a look of an
// idle replica is one query.
type looks struct {
	mu     sync.Mutex
	living []string
	at     time.Time // of the last look that found everything
}

// again makes the next claim look.
func (l *looks) again() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at = time.Time{}
}

func (l *looks) wanted(living []string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range l.living {
		if !slices.Contains(living, id) {
			return true
		}
	}
	l.living = living // with those that have joined: they may leave before the next look
	return time.Since(l.at) >= lookEvery
}

func (l *looks) done(living []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.living, l.at = living, time.Now()
}

// Claim implements store.Ownership: of each tenant runs of lost instances first, then
// those whose timer is due, the earliest first.
func (o ownership) Claim(ctx context.Context, instance string, now time.Time, limit int, skip ...string) (out []store.Run, err error) {
	if quiet, err := o.quiet(ctx, instance, now); quiet || err != nil {
		if err != nil {
			o.s.looks.again()
		}
		return nil, wrap("claim", err)
	}
	err = o.s.tx(ctx, func(q querier) error {
		out = nil
		living, err := others(ctx, q, instance)
		if err != nil {
			return err
		}
		o.s.living.Store(int32(len(living)))
		if o.s.looks.wanted(living) {
			whole := false
			if out, whole, err = o.fromLost(ctx, q, living, limit, skip); err != nil {
				return err
			}
			if whole {
				o.s.looks.done(living)
			}
			if _, err := q.Exec(ctx, dropTold); err != nil {
				return err
			}
		}
		ready, _, err := o.pick(ctx, q, due, now.UnixMilli(), limit, skip)
		if err != nil {
			return err
		}
		out, err = takeAll(ctx, q, store.Turns(append(out, ready...), limit), instance)
		return err
	})
	if err != nil {
		o.s.looks.again()
		return nil, wrap("claim", err)
	}
	return out, nil
}

// fromLost reads up to limit runs or a few more of holders that are not among the
// living, and says whether these are all. The index is asked for one holder after
// another: there are few, however many runs they have.
func (o ownership) fromLost(ctx context.Context, q querier, living []string, limit int, skip []string) (out []store.Run, whole bool, err error) {
	whole = true
	for holder := ""; ; {
		found, err := one(ctx, q, nextHolder, []any{holder}, &holder)
		if err != nil || !found {
			return out, whole, err
		}
		if slices.Contains(living, holder) {
			continue
		}
		if limit > 0 && len(out) >= limit {
			return out, false, nil
		}
		got, all, err := o.pick(ctx, q, fromHolder, holder, limit, skip)
		if err != nil {
			return nil, false, err
		}
		out, whole = append(out, got...), whole && all
	}
}

// takeAll raises the epoch of every run, in one round trip, and returns those that
// were still as they were read.
func takeAll(ctx context.Context, q querier, rows []store.Run, instance string) (out []store.Run, err error) {
	if len(rows) == 0 {
		return nil, nil
	}
	b := &pgx.Batch{}
	for i := range rows {
		b.Queue(claimRun, rows[i].ID.Tenant, rows[i].ID.Opaque, instance, rows[i].Epoch)
	}
	res := q.SendBatch(ctx, b)
	for i := range rows {
		tag, err := res.Exec()
		if err != nil {
			res.Close() //nolint:errcheck // the first failure counts
			return nil, err
		}
		if tag.RowsAffected() == 1 {
			rows[i].Instance, rows[i].Epoch = instance, rows[i].Epoch+1
			out = append(out, rows[i])
		}
	}
	return out, res.Close()
}

// NextWake implements store.Ownership.
func (o ownership) NextWake(ctx context.Context) (at time.Time, err error) {
	err = o.s.read(ctx, func(q querier) error {
		_, err := one(ctx, q, nextWake, nil, (*stamp)(&at))
		return err
	})
	return at, wrap("next wake", err)
}

// Unsettled implements store.Ownership.
func (o ownership) Unsettled(ctx context.Context, limit int) (out []store.Run, err error) {
	err = o.s.read(ctx, func(q querier) error {
		out, err = list(ctx, q, scanRun, unsettled, bound(limit))
		return err
	})
	return out, wrap("list unsettled runs", err)
}
