package host

import (
	"context"
	"errors"
	"time"

	"github.com/fermata-run/fermata/internal/store"
)

const (
	sweepEvery = 10 * time.Minute
	sweepBatch = 500 // rows in one transaction, so that no other write waits long
)

// Sweep removes idempotency records and dead letters past their retention, now and then,
// until ctx ends.
func (h *Host) Sweep(ctx context.Context) {
	for ctx.Err() == nil {
		n, err := h.store.Idempotency().Purge(ctx, h.clock.Now(), sweepBatch)
		if err == nil && n < sweepBatch {
			n, err = h.store.Webhooks().PurgeDeadLetters(ctx, h.clock.Now(), sweepBatch)
		}
		if err != nil && h.cfg.Log != nil && ctx.Err() == nil && !errors.Is(err, store.ErrClosed) {
			h.cfg.Log.Warn("what is past its retention was not purged", "err", err)
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
