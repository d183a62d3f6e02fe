package host

import (
	"context"
	"errors"
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
)

// PausedForTenant is the reason with which the runs of a suspended tenant are
// paused. Those that somebody paused before stay paused afterwards.
const PausedForTenant = "tenant-suspended"

const (
	settleEvery = 5 * time.Second // while a tenant is unsettled
	settleIdle  = time.Minute     // else; another replica may have been told
	settlePage  = 100
)

// going are the statuses of runs that may do something.
var going = []string{run.Pending, run.Running, run.WaitingApproval, run.WaitingInput, run.WaitingExternal}

// settleTenants brings the runs of tenants in line with the state of the tenant,
// until ctx ends. What is to be done is in the store: a process that dies leaves it
// to the next.
func (h *Host) settleTenants(ctx context.Context) {
	for ctx.Err() == nil {
		left, err := h.settleAll(ctx)
		if err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrClosed) && h.cfg.Log != nil {
			h.cfg.Log.Warn("runs of a tenant were not brought in line with its state", "err", err)
		}
		var again <-chan time.Time
		if left || err != nil {
			again = h.clock.After(settleEvery)
		} else {
			again = h.clock.After(settleIdle)
		}
		select {
		case <-ctx.Done():
		case <-h.settleNow:
		case <-again:
		}
	}
}

// settleAll makes one pass over the tenants that are unsettled.
func (h *Host) settleAll(ctx context.Context) (left bool, err error) {
	for after := ""; ; {
		list, err := h.store.Tenants().Unsettled(ctx, after, settlePage)
		if err != nil {
			return true, err
		}
		for _, t := range list {
			done, err := h.settle(ctx, t)
			if err != nil {
				return true, err
			}
			left = left || !done
			after = t.ID
		}
		if len(list) < settlePage {
			return left, nil
		}
	}
}

// settle makes one pass over a tenant's runs. A pass that finds nothing to do, and
// the tenant as it was, is the last one.
func (h *Host) settle(ctx context.Context, t store.Tenant) (done bool, err error) {
	statuses, change := going, h.still
	if t.State == store.TenantActive {
		statuses, change = []string{run.Paused}, h.goOn
	}
	busy := false
	for _, status := range statuses {
		for before := ""; ; {
			rows, err := h.store.Runs().List(ctx, store.ListQuery{Tenant: t.ID, Status: status, Before: before, Limit: settlePage})
			if err != nil {
				return false, err
			}
			for _, r := range rows {
				changed, err := change(ctx, r.ID)
				if err != nil {
					return false, err
				}
				busy = busy || changed
				before = r.ID.Opaque
			}
			if len(rows) < settlePage {
				break
			}
		}
	}
	if busy {
		return false, nil
	}
	t.Unsettled = false
	err = h.store.Tenants().Update(ctx, t)
	if errors.Is(err, store.ErrStale) {
		return false, nil
	}
	return err == nil, err
}

// still pauses a run. What it executes comes to its end first; its timers wait.
func (h *Host) still(ctx context.Context, id ids.Run) (bool, error) {
	out := h.engine.Do(ctx, id, run.Pause{Reason: PausedForTenant, DrainPolicy: "drain-current-node"})
	return true, over(ctx, out.Err)
}

// goOn resumes a run that was paused for its tenant's sake.
func (h *Host) goOn(ctx context.Context, id ids.Run) (bool, error) {
	why, err := h.pausedBy(ctx, id)
	if err != nil || why != PausedForTenant {
		return false, over(ctx, err)
	}
	return true, over(ctx, h.engine.Do(ctx, id, run.Resume{Reason: "tenant-activated"}).Err)
}

// over makes nothing of a refusal: the run has come to its end, or is what was
// wanted already. The next pass sees.
func over(ctx context.Context, err error) error {
	var p *problem.Error
	if ctx.Err() == nil && (errors.As(err, &p) && p.Status() < 500 || errors.Is(err, store.ErrNotFound)) {
		return nil
	}
	return err
}

// pausedBy finds the reason of the last pause in a run's log. Little is written
// behind it, so it is looked for from the end.
func (h *Host) pausedBy(ctx context.Context, id ids.Run) (string, error) {
	row, err := h.store.Runs().Get(ctx, id)
	for end := row.Seq; err == nil && end >= 0; end -= settlePage {
		var events []event.Event
		_, events, err = h.store.Runs().Events(ctx, id, max(end-settlePage, -1), settlePage, 0)
		for i := len(events) - 1; i >= 0; i-- {
			if events[i].Type != event.RunPaused {
				continue
			}
			p, err := event.Read[event.Paused](events[i].Payload)
			return p.Reason, err
		}
	}
	return "", err
}
