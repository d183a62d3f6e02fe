package engine

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
)

// claimBatch is how many runs one look into the store takes on. Of an instance with
// little room that shares the store it is fewer, but leastBatch.
const (
	claimBatch = 256
	leastBatch = 16
)

// heartbeat keeps this instance alive in the store.
func (e *Engine) heartbeat() {
	for {
		ctx, done := context.WithTimeout(e.looking, e.cfg.LeaseTTL)
		id := e.Instance()
		err := e.store.Ownership().Heartbeat(ctx, id, e.cfg.LeaseTTL)
		done()
		switch {
		case err == nil, errors.Is(err, store.ErrClosed), e.looking.Err() != nil:
		case errors.Is(err, store.ErrNotFound):
			e.fence(id)
		default:
			e.log.Log(e.looking, severity(err), "heartbeat failed", "instance", e.Instance(), "err", err)
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
		if !e.untilDue() {
			return
		}
	}
}

// untilDue waits for the next moment to reconcile at; false means to end.
func (e *Engine) untilDue() bool {
	latest := e.clock.Now().Add(e.cfg.ReconcileEvery)
	for {
		wait := latest.Sub(e.clock.Now())
		if d := e.timers.nextParked(); d >= 0 {
			wait = min(wait, d)
		}
		select {
		case <-e.stop:
			return false
		case <-e.clock.After(wait):
			return true
		case <-e.timers.parkedChanged:
			// Something is due before what was known: wait for that instead.
		}
	}
}

// claim takes on runs that have something to do and nobody alive to do it.
func (e *Engine) claim() {
	e.claiming.Lock() // so that what one look takes on is counted before the next
	defer e.claiming.Unlock()
	ctx, done := context.WithTimeout(e.looking, 30*time.Second)
	defer done()
	// What is due after this is found by the look, or told. It is forgotten even if
	// the look fails, or a failing store would be asked without a pause.
	e.timers.forgetParked()
	var skip []string
	for {
		if e.draining.Load() {
			return
		}
		id := e.Instance()
		skip = e.backlog.full()
		runs, err := e.store.Ownership().Claim(ctx, id, e.clock.Now(), e.batch, skip...)
		if errors.Is(err, store.ErrNotFound) {
			e.fence(id)
			return
		}
		if err != nil {
			if !errors.Is(err, store.ErrClosed) && e.looking.Err() == nil {
				e.log.Log(e.looking, severity(err), "claiming runs failed", "err", err)
			}
			return
		}
		for _, r := range runs {
			e.backlog.add(r.ID.Tenant, 1)
			e.actors.deliver(e, r.ID, message{cmd: run.Tick{}, claimed: true})
		}
		if len(runs) < e.batch {
			break
		}
	}
	next, err := e.store.Ownership().NextWake(ctx)
	if err != nil || next.IsZero() {
		return
	}
	if now := e.clock.Now(); len(skip) > 0 && !next.After(now) {
		next = now.Add(e.cfg.ReconcileEvery / 10) // due, and left to others for now
	}
	e.timers.poke(next)
}

// settleNews passes on news of children that have not been settled. News that
// is on its way already arrives twice and counts once.
func (e *Engine) settleNews() {
	if e.draining.Load() {
		return
	}
	ctx, done := context.WithTimeout(e.looking, 30*time.Second)
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

// severity is that of a failed look. A database that is away comes back, and everything
// goes on by itself.
func severity(err error) slog.Level {
	if errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
		return slog.LevelWarn // the store did not answer in time: it will, or others take over
	}
	return slog.LevelError
}
