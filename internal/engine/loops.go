package engine

import (
	"context"
	"errors"
	"time"

	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
)

// claimBatch is how many runs one look into the store takes on.
const claimBatch = 256

// heartbeat keeps this instance alive in the store.
func (e *Engine) heartbeat() {
	for {
		ctx, done := context.WithTimeout(context.Background(), e.cfg.LeaseTTL)
		err := e.store.Ownership().Heartbeat(ctx, e.Instance(), e.cfg.LeaseTTL)
		done()
		if err != nil && !errors.Is(err, store.ErrClosed) {
			e.log.Error("heartbeat failed", "instance", e.Instance(), "err", err)
		}
		select {
		case <-e.stop:
			return
		case <-e.clock.After(e.cfg.LeaseTTL / 3):
		}
	}
}

// reconcile finds work nobody told this instance of: due parked runs, runs of
// lost owners, news of children that did not reach their parents. It runs at
// every due time it knows, and at least every ReconcileEvery.
func (e *Engine) reconcile() {
	for {
		e.claim()
		e.settleNews()
		wait := e.cfg.ReconcileEvery
		if d := e.timers.nextParked(); d >= 0 && d < wait {
			wait = d
		}
		select {
		case <-e.stop:
			return
		case <-e.timers.parkedChanged:
			// A due time before the known ones: wait for it instead.
			if d := e.timers.nextParked(); d > 0 {
				select {
				case <-e.stop:
					return
				case <-e.clock.After(min(d, e.cfg.ReconcileEvery)):
				}
			}
		case <-e.clock.After(wait):
		}
	}
}

// claim takes on runs that have something to do and nobody alive to do it.
func (e *Engine) claim() {
	ctx, done := context.WithTimeout(context.Background(), 30*time.Second)
	defer done()
	for {
		if e.draining.Load() {
			return
		}
		runs, err := e.store.Ownership().Claim(ctx, e.Instance(), e.clock.Now(), claimBatch)
		if err != nil {
			if !errors.Is(err, store.ErrClosed) {
				e.log.Error("claiming runs failed", "err", err)
			}
			return
		}
		for _, r := range runs {
			e.actors.deliver(e, r.ID, message{cmd: run.Tick{}})
		}
		if len(runs) < claimBatch {
			break
		}
	}
	next, err := e.store.Ownership().NextWake(ctx)
	if err == nil {
		e.timers.setParked(next)
	}
}

// settleNews passes on news of children that have not been settled. News that
// is on its way already arrives twice and counts once.
func (e *Engine) settleNews() {
	ctx, done := context.WithTimeout(context.Background(), 30*time.Second)
	defer done()
	rows, err := e.store.Ownership().Unsettled(ctx, claimBatch)
	if err != nil {
		return
	}
	for _, r := range rows {
		e.tellParent(r)
	}
}

// tickActive lets the timers of runs fire that are being worked on.
func (e *Engine) tickActive() {
	for {
		ready, wait := e.timers.popDue()
		for _, id := range ready {
			e.actors.deliver(e, id, message{cmd: run.Tick{}})
		}
		if wait < 0 {
			wait = time.Hour
		}
		select {
		case <-e.stop:
			return
		case <-e.timers.activeChanged:
		case <-e.clock.After(wait):
		}
	}
}
