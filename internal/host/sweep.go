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

// Sweep removes idempotency records that are past their retention, now and then,
// until ctx ends.
func (h *Host) Sweep(ctx context.Context) {
	for ctx.Err() == nil {
		h.unstage(ctx)
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
