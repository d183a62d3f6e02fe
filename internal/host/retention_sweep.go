package host

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/fermata-run/fermata/internal/audit"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
)

// Passes of retention, a different time apart on every host, so that replicas
// that were started together do not all sweep together. What two of them do at
// once does no harm: each run is let go of by a compare-and-set.
const (
	passEvery  = 10 * time.Minute
	passJitter = 5 * time.Minute
	firstPass  = time.Minute
)

// sweepRuns lets go of runs whose time is over, pass by pass, until ctx ends.
func (h *Host) sweepRuns(ctx context.Context) {
	wait := rand.N(firstPass)
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.clock.After(wait):
		}
		if err := h.expirePass(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrClosed) {
			h.warn("runs were not let go of", "err", err)
		}
		wait = passEvery + rand.N(passJitter)
	}
}

func (h *Host) warn(msg string, args ...any) {
	if h.cfg.Log != nil {
		h.cfg.Log.Warn(msg, args...)
	}
}

// expirePass is one look at everything: runs that are old, what they have left
// behind, tombstones that are old themselves, and the room all of it took.
func (h *Host) expirePass(ctx context.Context) error {
	now, err := h.believed(ctx)
	if err != nil {
		return err
	}
	if !now.IsZero() {
		p := prune{h: h, now: now, bounds: h.cfg.Retention.of, cut: func(b Bounds, end store.Ending) store.Ending { return b.cut(now, end) }}
		if err := p.all(ctx, ""); err != nil {
			return err
		}
		if p.total > 0 {
			h.note(ctx, h.fact(audit.HostChain, "runs.expire", audit.Target{Type: "run"}, map[string]string{"runs": sequenceText(int64(p.total))}))
		}
		if p.total > 0 && h.cfg.Log != nil {
			h.cfg.Log.Info("runs have expired", "runs", p.total)
		}
	}
	if err := h.clearExpired(ctx); err != nil {
		return err
	}
	if !now.IsZero() {
		err = h.forgetExpired(ctx, now.Add(-h.cfg.Retention.Tombstones))
	}
	return err
}

// believed is the time by which runs are called old; zero if none is known yet.
func (h *Host) believed(ctx context.Context) (time.Time, error) {
	r := h.store.Retention()
	was, err := r.Clock(ctx)
	if err != nil {
		return time.Time{}, err
	}
	now, is := believe(was, h.clock.Now())
	if is.Since != was.Since && !is.Since.IsZero() && !was.Trusted.IsZero() {
		h.warn("the clock has leapt forward: for a day, no run is called old by it", "trusted", was.Trusted, "now", is.Since)
	}
	if is != was {
		err = r.SetClock(ctx, was, is)
	}
	if errors.Is(err, store.ErrStale) {
		return time.Time{}, nil // another replica judges; the next pass sees what it said
	}
	return now, err
}

// prune lets runs go.
type prune struct {
	h      *Host
	now    time.Time
	bounds func(tenant string) Bounds
	cut    func(Bounds, store.Ending) store.Ending
	dry    bool

	total int
	by    map[string]int // counted by tenant, if it is there
}

// all walks over one tenant, or over all if it is empty.
func (p *prune) all(ctx context.Context, only string) error {
	w := newWalk(p.h.store.Retention(), only, p.bounds, p.cut)
	for {
		begun := time.Now()
		rows, err := w.next(ctx)
		if err != nil || len(rows) == 0 {
			return err
		}
		n, err := p.page(ctx, rows)
		if err != nil {
			return err
		}
		p.total += n
		if p.by != nil && n > 0 {
			p.by[rows[0].ID.Tenant] += n
		}
		if err := pace(ctx, begun); err != nil {
			return err
		}
	}
}

// page lets go of those of some runs that nothing needs.
func (p *prune) page(ctx context.Context, rows []store.Run) (int, error) {
	kept := rows[:0]
	for i := range rows {
		if !mayExpire(&rows[i]) {
			continue
		}
		if p.dry {
			needed, err := p.h.store.Retention().Needed(ctx, rows[i].ID)
			if err != nil {
				return 0, err
			}
			if needed {
				continue
			}
		}
		kept = append(kept, rows[i])
	}
	if p.dry || len(kept) == 0 {
		return len(kept), nil
	}
	gone, err := p.h.store.Retention().Expire(ctx, p.now, kept)
	if err != nil {
		return 0, err
	}
	p.h.letGo(gone)
	return len(gone), p.h.clearExpired(ctx)
}

// letGo drops what is kept in memory of runs that have expired.
func (h *Host) letGo(gone []ids.Run) {
	for _, id := range gone {
		h.engine.Forget(id)
		h.cache.forget(id)
	}
}

// clearExpired clears away what expired runs have left behind, and gives the
// room back.
func (h *Host) clearExpired(ctx context.Context) error {
	r := h.store.Retention()
	for _, piece := range []func(context.Context) (bool, error){
		func(ctx context.Context) (bool, error) { return r.Clear(ctx, clearRows, clearBytes) },
		r.Reclaim,
	} {
		for {
			begun := time.Now()
			more, err := piece(ctx)
			if err != nil {
				return err
			}
			if !more {
				break
			}
			if err := pace(ctx, begun); err != nil {
				return err
			}
		}
	}
	return nil
}

func (h *Host) forgetExpired(ctx context.Context, until time.Time) error {
	for {
		begun := time.Now()
		n, err := h.store.Retention().Forget(ctx, until, clearRows)
		if err != nil || n < clearRows {
			return err
		}
		if err := pace(ctx, begun); err != nil {
			return err
		}
	}
}
