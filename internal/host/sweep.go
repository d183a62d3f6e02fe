package host

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fermata-run/fermata/internal/store"
)

const (
	sweepEvery = 10 * time.Minute
	sweepBatch = 500 // rows in one transaction, so that no other write waits long
)

// Sweep does what is done now and then, until ctx ends: it removes
// idempotency records, effects and dead letters that are past their retention, and
// lets go of runs whose time is over.
// One does not wait for the other.
func (h *Host) Sweep(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { h.sweepRecords(ctx) })
	wg.Go(func() { h.sweepRuns(ctx) })
	wg.Wait()
}

func (h *Host) sweepRecords(ctx context.Context) {
	purges := map[string]func(context.Context, time.Time, int) (int, error){
		"idempotency records": h.store.Idempotency().Purge, "effects": h.store.Effects().Purge,
		"dead letters": h.store.Webhooks().PurgeDeadLetters,
		"credentials of runs that are over": func(ctx context.Context, _ time.Time, most int) (int, error) {
			return h.store.Credentials().PurgeEnded(ctx, most)
		},
	}
	for ctx.Err() == nil {
		h.unstage(ctx)
		more := false
		for what, purge := range purges {
			n, err := purge(ctx, h.clock.Now(), sweepBatch)
			if err != nil && h.cfg.Log != nil && ctx.Err() == nil && !errors.Is(err, store.ErrClosed) {
				h.cfg.Log.Warn(what+" were not purged", "err", err)
			}
			more = more || n >= sweepBatch
		}
		if more {
			continue
		}
		select {
		case <-ctx.Done():
		case <-h.clock.After(sweepEvery):
		}
	}
}

// abandoned is after how long a fork that was being made when its process died is
// cleared away.
const abandoned = time.Hour

// unstage removes what is left of forks that never came into being.
func (h *Host) unstage(ctx context.Context) {
	for ctx.Err() == nil {
		n, err := h.store.Runs().Unstage(ctx, h.clock.Now().Add(-abandoned), sweepBatch)
		if err != nil && h.cfg.Log != nil && ctx.Err() == nil && !errors.Is(err, store.ErrClosed) {
			h.cfg.Log.Warn("what is left of abandoned forks was not removed", "err", err)
		}
		if n == 0 {
			return
		}
	}
}
