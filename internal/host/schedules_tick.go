package host

import (
	"context"
	"errors"
	"time"

	"github.com/fermata-run/fermata/internal/audit"
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/schedule"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/go-json-experiment/json"
)

const (
	tickBatch  = 50               // schedules of one claim
	tickLook   = 15 * time.Second // at the latest: another replica may know of new ones
	tickHold   = time.Minute      // after which a claim passes to others
	tickRetry  = 5 * time.Second  // after which a tick that had no room is tried again
	tickRest   = time.Minute      // between two looks at a suspended tenant
	tickGrace  = 5 * time.Minute  // for which a tick counts as on time with catchUp none
	mostCaught = 100              // ticks that catchUp all makes good
)

// Tick starts the runs of schedules, until ctx ends. Any number of replicas may do so:
// a claim keeps them out of each other's way, and the run's id, which follows from the
// tick, keeps a tick from having two.
func (h *Host) Tick(ctx context.Context) {
	for ctx.Err() == nil {
		wait, err := h.tickPass(ctx)
		if err != nil {
			wait = tickRetry
			if ctx.Err() == nil && !errors.Is(err, store.ErrClosed) {
				h.warn("schedules were not looked at", "err", err)
			}
		}
		if wait <= 0 {
			continue
		}
		select {
		case <-ctx.Done():
		case <-h.tickNow:
		case <-h.clock.After(wait):
		}
	}
}

// rescheduled wakes the loop: there may be something sooner than what it waits for.
func (h *Host) rescheduled() {
	select {
	case h.tickNow <- struct{}{}:
	default:
	}
}

// tickPass deals with one batch of what is due, and says how long to wait for more.
func (h *Host) tickPass(ctx context.Context) (time.Duration, error) {
	next, err := h.store.Schedules().NextDue(ctx)
	if err != nil || next.IsZero() {
		return tickLook, err
	}
	now := h.clock.Now()
	if next.After(now) {
		return min(next.Sub(now), tickLook), nil
	}
	list, err := h.store.Schedules().Claim(ctx, now, now.Add(tickHold), tickBatch)
	if err != nil {
		return 0, err
	}
	for i := range list {
		if err := h.tick(ctx, &list[i]); err != nil {
			return 0, err // the rest is due again when the claim ends
		}
	}
	if len(list) == 0 {
		return time.Second, nil // another replica has them in its hands
	}
	return 0, nil
}

// tick makes of one schedule that is due what there is to make, and moves it on.
func (h *Host) tick(ctx context.Context, s *store.Schedule) error {
	spec, err := schedule.Parse(s.Spec)
	if err != nil { // it was checked when it was registered: another program's
		h.missed(ctx, s, s.NextAt, "unreadable")
		s.NextAt, s.DueAt = time.Time{}, time.Time{}
		return h.moveOn(ctx, s)
	}
	now := h.clock.Now()
	most := 1
	if spec.CatchUp == schedule.All {
		most = mostCaught
	}
	ticks, older := spec.Due(s.NextAt, now, most)
	if len(ticks) == 0 { // it was put off and has moved since, or the zone's rules have changed
		s.NextAt = spec.Next(now)
		s.DueAt = s.NextAt
		return h.moveOn(ctx, s)
	}
	at := ticks[0]
	if older {
		// The oldest tick may have its run: its process died before it said so.
		switch has, err := h.hasRun(ctx, scheduled(s, s.NextAt)); {
		case err != nil:
			return err
		case has:
			s.LastAt, s.LastRun = s.NextAt, scheduled(s, s.NextAt).Opaque
			if second := spec.Next(s.NextAt); second.Before(at) {
				h.missed(ctx, s, second, "superseded")
			}
		default:
			h.missed(ctx, s, s.NextAt, "superseded")
		}
		s.NextAt = at
	}
	put, err := h.fire(ctx, s, spec, at, now)
	if err != nil {
		return err
	}
	if put > 0 {
		s.DueAt = now.Add(put)
		return h.moveOn(ctx, s)
	}
	s.NextAt = spec.Next(at)
	s.DueAt = s.NextAt
	return h.moveOn(ctx, s)
}

func (h *Host) moveOn(ctx context.Context, s *store.Schedule) error {
	err := h.store.Schedules().Move(ctx, *s)
	if errors.Is(err, store.ErrStale) {
		return nil // registered anew meanwhile, or the claim has passed on: it is somebody else's
	}
	return err
}

// scheduled is the run of a tick.
func scheduled(s *store.Schedule, at time.Time) ids.Run {
	return ids.Run{Tenant: s.Tenant, Opaque: ids.Derive(at, "schedule", s.Tenant, s.Workflow, s.Trigger, run.Stamp(at))}
}

func (h *Host) hasRun(ctx context.Context, id ids.Run) (bool, error) {
	_, err := h.store.Runs().Get(ctx, id)
	var gone store.Expired
	switch {
	case errors.As(err, &gone):
		return true, nil
	case errors.Is(err, store.ErrNotFound):
		return false, nil
	}
	return err == nil, err
}

// fire starts the run of a tick, or leaves it out for a reason that is kept. The tick
// is tried again after put, if there is no room for it now.
func (h *Host) fire(ctx context.Context, s *store.Schedule, spec *schedule.Spec, at, now time.Time) (put time.Duration, err error) {
	var owner event.Owner
	if err := json.Unmarshal(s.Owner, &owner); err != nil {
		h.missed(ctx, s, at, "unreadable")
		return 0, nil
	}
	st, err := h.standing(ctx, owner.Subject)
	if err != nil {
		return h.later(s, at, err)
	}
	if st.Tenant.State != store.TenantActive {
		return tickRest, nil
	}
	id := scheduled(s, at)
	has, err := h.hasRun(ctx, id)
	if err != nil {
		return 0, err
	}
	if !has {
		if reason, err := h.leftOut(ctx, s, spec, at, now); err != nil || reason != "" {
			if err == nil {
				h.missed(ctx, s, at, reason)
			}
			return 0, err
		}
		c := identity.Caller{Subject: owner.Subject, Workspace: owner.Workspace, Scopes: []string{identity.RunsCreate}}
		_, err = h.begin(ctx, c, CreateRun{WorkflowID: s.Workflow, Inputs: spec.Inputs}, birth{
			id: id, version: s.Version, trigger: &event.Trigger{ID: s.Trigger, Tick: run.Stamp(at)},
		})
		switch {
		case errors.Is(err, store.ErrExists): // another replica's
		case err != nil && mayPass(err):
			return h.later(s, at, err)
		case err != nil && ctx.Err() == nil:
			h.warn("the run of a schedule was refused", "tenant", s.Tenant, "workflow", s.Workflow, "trigger", s.Trigger, "tick", run.Stamp(at), "err", err)
			h.missed(ctx, s, at, string(problem.From(err).Code))
			return 0, nil
		case err != nil:
			return 0, err
		}
	}
	s.LastAt, s.LastRun = at, id.Opaque
	return 0, nil
}

// leftOut says why a tick is to have no run; empty if it is to have one.
func (h *Host) leftOut(ctx context.Context, s *store.Schedule, spec *schedule.Spec, at, now time.Time) (string, error) {
	if spec.CatchUp == schedule.None && now.Sub(at) > tickGrace {
		return "late", nil
	}
	if spec.Overlap != schedule.Skip || s.LastRun == "" {
		return "", nil
	}
	row, err := h.store.Runs().Get(ctx, ids.Run{Tenant: s.Tenant, Opaque: s.LastRun})
	if errors.Is(err, store.ErrNotFound) {
		return "", nil // it has expired
	}
	if err == nil && !run.Terminal(row.Status) {
		return "overlap", nil
	}
	return "", err
}

// mayPass reports whether a refusal may pass by itself.
func mayPass(err error) bool {
	var p *problem.Error
	if !errors.As(err, &p) {
		return true // of the store
	}
	return p.Code == problem.RateLimited || p.Status() >= 500
}

func (h *Host) later(s *store.Schedule, at time.Time, err error) (time.Duration, error) {
	h.warn("the run of a schedule has to wait", "tenant", s.Tenant, "workflow", s.Workflow, "trigger", s.Trigger, "tick", run.Stamp(at), "err", err)
	return tickRetry, nil
}

// missed keeps that a tick, and with superseded those between it and the next, came to
// nothing.
func (h *Host) missed(ctx context.Context, s *store.Schedule, at time.Time, reason string) {
	if h.cfg.Log != nil {
		h.cfg.Log.Info("a tick of a schedule was left out", "tenant", s.Tenant, "workflow", s.Workflow, "trigger", s.Trigger, "tick", run.Stamp(at), "reason", reason)
	}
	h.note(ctx, h.fact(s.Tenant, "schedule.skip", audit.Target{Type: "workflow", ID: s.Workflow},
		map[string]string{"trigger": s.Trigger, "tick": run.Stamp(at), "reason": reason}))
}
