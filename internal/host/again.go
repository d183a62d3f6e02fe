package host

import (
	"context"
	"errors"
	"strings"

	"github.com/fermata-run/fermata/internal/engine"
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
)

// What follows is for a keyed request that is tried again after a try of which
// nobody knows how far it came: the process died, or the store did not answer.
// What has been reached already is a success then, not a conflict.

// created finds the run of an earlier attempt.
func (h *Host) created(ctx context.Context, a attempt) (Created, bool, error) {
	if !a.again {
		return Created{}, false, nil
	}
	row, err := h.store.Runs().Get(ctx, a.run)
	var x store.Expired
	if errors.As(err, &x) {
		return Created{}, false, engine.ErrExpired(x) // there was one, and it is not made twice
	}
	if errors.Is(err, store.ErrNotFound) {
		return Created{}, false, nil
	}
	return Created{ID: a.run, Status: accepted(row.Status)}, err == nil, err
}

// reached reports whether a refusal says that a run is where the request wanted
// it to be.
func (a attempt) reached(err error, code problem.Code, there func(status string) bool) bool {
	var p *problem.Error
	if !a.again || !errors.As(err, &p) || p.Code != code {
		return false
	}
	status, _ := p.Details["runStatus"].(string)
	return there(status)
}

func isCancelled(status string) bool { return status == run.Cancelled }
func isPaused(status string) bool    { return status == run.Paused }
func isNotPaused(status string) bool { return status != run.Paused }

// answered looks for the answer of an earlier attempt in a run's log.
func (h *Host) answered(ctx context.Context, a attempt, id ids.Run, nodeID string) (string, bool, error) {
	return h.recorded(ctx, a, id, func(e *event.Event) bool { return e.NodeID == nodeID })
}

// recorded looks for an event that an earlier attempt has left in a run's log.
func (h *Host) recorded(ctx context.Context, a attempt, id ids.Run, of func(*event.Event) bool) (string, bool, error) {
	if !a.again {
		return "", false, nil
	}
	for after := int64(-1); ; {
		row, events, err := h.store.Runs().Events(ctx, id, after, 1000, 1<<20)
		if err != nil {
			if errors.Is(err, store.ErrNotFound) {
				err = nil
			}
			return "", false, err
		}
		for i := range events {
			if of(&events[i]) && a.marks(&events[i]) {
				return row.Status, true, nil
			}
		}
		if len(events) == 0 {
			return "", false, nil
		}
		after = events[len(events)-1].Seq
	}
}

// marks reports whether an event came of this very request.
func (a attempt) marks(e *event.Event) bool {
	if !strings.Contains(string(e.Payload), a.mark) {
		return false
	}
	p, err := event.Read[struct {
		X struct {
			event.ResolutionX
			Signal  event.ResolutionX `json:"signal"`
			Plan    event.ResolutionX `json:"plan"`
			Inverse event.ResolutionX `json:"inverse"`
		} `json:"x-fermata"`
	}](e.Payload)
	return err == nil && (p.X.Request == a.mark || p.X.Signal.Request == a.mark ||
		p.X.Plan.Request == a.mark || p.X.Inverse.Request == a.mark)
}
