package host

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
)

// maxReason bounds a free-form reason, in bytes.
const maxReason = 4096

func checkReason(reason string) error {
	if len(reason) > maxReason {
		return problem.Invalid("reason", "has at most %d bytes", maxReason)
	}
	return nil
}

// CancelRun asks a run to end (spec v2 runs.md §Cancel). It returns the status
// afterwards, cancelling or cancelled.
func (h *Host) CancelRun(ctx context.Context, c identity.Caller, id ids.Run, reason string) (string, error) {
	if err := h.admit(c, identity.RunsCancel, id); err != nil {
		return "", err
	}
	if err := checkReason(reason); err != nil {
		return "", err
	}
	return h.cancel(ctx, c, id, reason, onRun("run.cancel", id))
}

func (h *Host) cancel(ctx context.Context, c identity.Caller, id ids.Run, reason string, d deed) (string, error) {
	return audited(ctx, h, c, d, func(ctx context.Context, _ *store.Draft) (string, error) {
		return h.cancelled(ctx, c, id, reason)
	})
}

func (h *Host) cancelled(ctx context.Context, c identity.Caller, id ids.Run, reason string) (string, error) {
	out := h.engine.Do(ctx, id, run.Cancel{Reason: reason, By: c.Subject.SubjectID})
	if attemptIn(ctx).reached(out.Err, problem.RunTerminal, isCancelled) {
		return run.Cancelled, nil
	}
	return out.Status, out.Err
}

// BulkResult is what became of one run of a bulk cancel.
type BulkResult struct {
	RunID  string
	Status string
	Err    error
}

// BulkCancel cancels many runs, each by itself; the results are in request order.
// A foreign run fails in its own entry, a malformed id fails the request: no
// entry could name it. A run named twice is cancelled once and answered twice.
func (h *Host) BulkCancel(ctx context.Context, c identity.Caller, runIDs []string, reason string) ([]BulkResult, error) {
	if err := h.allow(c, identity.RunsCancel); err != nil {
		return nil, err
	}
	if max := h.cfg.Limits.MaxBulk; len(runIDs) > max {
		return nil, problem.Invalid("runIds", "at most %d runs can be cancelled at once", max).With("maxRunIds", max)
	}
	if len(runIDs) == 0 {
		return nil, problem.Invalid("runIds", "names no run").With("maxRunIds", h.cfg.Limits.MaxBulk)
	}
	if err := checkReason(reason); err != nil {
		return nil, err
	}
	parsed := make([]ids.Run, len(runIDs))
	out := make([]BulkResult, len(runIDs))
	for i, s := range runIDs {
		out[i].RunID = s
		id, err := ids.ParseRun(s)
		if err != nil {
			return nil, problem.Invalid("runIds", "%q is not a run id", s)
		}
		parsed[i] = id
	}
	var wg sync.WaitGroup
	for i, id := range parsed {
		if slices.Index(parsed, id) < i {
			continue
		}
		if out[i].Err = h.own(c, id); out[i].Err != nil {
			continue
		}
		wg.Go(func() {
			out[i].Status, out[i].Err = h.cancel(ctx, c, id, reason, onRun("run.cancel", id).with("bulk", "true"))
		})
	}
	wg.Wait()
	for i, id := range parsed {
		first := out[slices.Index(parsed, id)]
		out[i].Status, out[i].Err = first.Status, first.Err
	}
	return out, nil
}

// PauseRun asks a run to stand still (spec v2 runs.md §Pause and resume). It
// returns when the request is durable; with the policy drain-current-node the
// run may still be finishing what it executes.
func (h *Host) PauseRun(ctx context.Context, c identity.Caller, id ids.Run, reason, policy string) (time.Time, error) {
	if err := h.admit(c, identity.RunsCancel, id); err != nil {
		return time.Time{}, err
	}
	if policy == "" {
		policy = "drain-current-node"
	}
	if policy != "immediate" && policy != "drain-current-node" {
		return time.Time{}, problem.Invalid("drainPolicy", "%q is not immediate or drain-current-node", policy)
	}
	if err := checkReason(reason); err != nil {
		return time.Time{}, err
	}
	return audited(ctx, h, c, onRun("run.pause", id).with("drainPolicy", policy), func(ctx context.Context, _ *store.Draft) (time.Time, error) {
		return h.pause(ctx, id, reason, policy)
	})
}

func (h *Host) pause(ctx context.Context, id ids.Run, reason, policy string) (time.Time, error) {
	out := h.engine.Do(ctx, id, run.Pause{Reason: reason, DrainPolicy: policy})
	if attemptIn(ctx).reached(out.Err, problem.RunStateConflict, isPaused) {
		return time.Time{}, nil
	}
	if out.Err != nil || out.Status != run.Paused {
		return time.Time{}, out.Err
	}
	return out.At, nil
}

// ResumeRun lets a paused run go on.
func (h *Host) ResumeRun(ctx context.Context, c identity.Caller, id ids.Run, reason string) (time.Time, error) {
	if err := h.admit(c, identity.RunsCancel, id); err != nil {
		return time.Time{}, err
	}
	if err := checkReason(reason); err != nil {
		return time.Time{}, err
	}
	return audited(ctx, h, c, onRun("run.resume", id), func(ctx context.Context, _ *store.Draft) (time.Time, error) {
		out := h.engine.Do(ctx, id, run.Resume{Reason: reason})
		if attemptIn(ctx).reached(out.Err, problem.RunStateConflict, isNotPaused) {
			return time.Time{}, nil
		}
		return out.At, out.Err
	})
}
