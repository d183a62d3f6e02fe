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

// Sweep does what is done now and then, until ctx ends: it removes idempotency
// records that are past their retention and lets go of runs whose time is over.
// One does not wait for the other.
func (h *Host) Sweep(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { h.sweepRecords(ctx) })
	wg.Go(func() { h.sweepRuns(ctx) })
	wg.Wait()
}

func (h *Host) sweepRecords(ctx context.Context) {
	for ctx.Err() == nil {
		n, err := h.store.Idempotency().Purge(ctx, h.clock.Now(), sweepBatch)
		if err != nil && h.cfg.Log != nil && ctx.Err() == nil && !errors.Is(err, store.ErrClosed) {
			h.cfg.Log.Warn("idempotency records were not purged", "err", err)
		}
		if n == sweepBatch {
			continue // there may be more
		}
		select {
		case <-ctx.Done():
		case <-h.clock.After(sweepEvery):
		}
	}
}
