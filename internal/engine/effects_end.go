package engine

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/fermata-run/fermata/internal/effect"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/node"
	"github.com/go-json-experiment/json/jsontext"
)

// perform brings a claimed effect about and records what became of it before
// anybody hears of it.
func (p *performer) perform(ctx context.Context, x store.Effect, ef node.Effect, do func(context.Context) (json.RawMessage, error)) (out json.RawMessage, err error) {
	x.State = store.EffectEscaped
	defer func() { p.finish(x) }() // even if do panics
	if out, err = do(ctx); err == nil {
		x.State = store.EffectCompleted
		if len(out) == 0 {
			out = json.RawMessage("null")
		}
		if err = fitOutcome(out); err != nil {
			return nil, err // it has happened all the same
		}
		out = p.e.cfg.Redact.JSON(p.run.Tenant, out) // recorded and returned alike, or a repetition would differ
		x.Outcome = out
		return out, nil
	}
	var ne *node.Error
	switch {
	case node.IsNotDone(err) || effect.Refused(err):
		x.State = store.EffectReleased
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case ef.InDoubt == node.StopInDoubt:
		errors.As(err, &ne)
		return nil, inDoubt(x, ne)
	}
	return nil, err
}

// fitOutcome refuses an outcome that cannot be kept.
func fitOutcome(out json.RawMessage) error {
	switch {
	case len(out) > store.MaxValue:
		return node.Fail(string(problem.PayloadTooLarge), "the outcome of an effect is larger than %d bytes", store.MaxValue)
	case !jsontext.Value(out).IsValid():
		return node.Fail(node.CodeInternal, "the outcome of an effect is no JSON")
	}
	return nil
}

// finish records what became of an effect. If the store cannot, the claim stands
// with nobody at it, which puts the effect in doubt.
func (p *performer) finish(x store.Effect) {
	x.At = p.e.clock.Now()
	x.ExpiresAt = x.At.Add(p.e.cfg.EffectRetention)
	for wait := firstWait; ; wait = min(2*wait, longestGap) {
		err := p.e.store.Effects().Finish(context.Background(), x)
		if err == nil {
			return
		}
		lost := errors.Is(err, store.ErrStale) || errors.Is(err, store.ErrClosed)
		if wait == firstWait || lost {
			p.e.log.Warn("what became of an effect could not be recorded", "run", p.in.RunID, "node", p.in.NodeID, "err", err)
		}
		if lost || !p.e.rest(wait) {
			return
		}
	}
}

// inDoubt ends a node of whose effect nobody knows whether it has happened.
func inDoubt(x store.Effect, cause *node.Error) error {
	e := node.Fail(node.CodeUnavailable, "nobody knows whether the effect has happened, and it may not be repeated")
	e.Details = map[string]any{"reason": "outcome-unknown", "effectId": ids.Run{Tenant: x.Tenant, Opaque: x.ID}.String()}
	if cause != nil {
		e.Message += ": " + cause.Message
		e.Details["cause"] = cause.Code
	}
	return e
}

func busyElsewhere() error {
	e := node.Retry(node.CodeUnavailable, "the same effect is still being performed by another node")
	e.Details = map[string]any{"reason": "effect-in-progress"}
	return e
}
