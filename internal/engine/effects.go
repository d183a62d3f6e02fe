package engine

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/fermata-run/fermata/internal/effect"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/node"
)

// Ways to make an effect's identity (spec v2 idempotency.md §Layer 2).
const (
	keyedByBusiness = "business-identity"
	keyedByActivity = "activity-recipe"
)

// Bounds of the ledger. A business operation is recognized for as long as its
// record is there, so the default is generous; the text asks for 14 days.
const (
	effectRetention    = 30 * 24 * time.Hour
	minEffectRetention = 14 * 24 * time.Hour

	maxBusinessKey = 1024             // bytes of a key, an operation, a name
	lookAgain      = time.Second      // between looks at an effect another instance holds
	waitForOther   = 10 * time.Minute // for whoever is at the same effect
	maxEffects     = 1000             // of one call, so that a run's ledger can be read whole
)

// performer lets one call of a node have effects.
type performer struct {
	e    *Engine
	in   *node.Input
	run  ids.Run
	typ  *node.Type
	at   string // what the effects of this call are counted beside
	mu   sync.Mutex
	made int // effects of this call that are told apart by counting
	all  int
}

// outsideServices are what only a call beside the turn is given.
func (e *Engine) outsideServices(s *run.State, typ *node.Type, x run.Execute, in *node.Input) {
	id := s.ID
	p := &performer{e: e, in: in, run: id, typ: typ, at: x.NodeID}
	if x.Inverse != nil { // never the effect that it undoes
		p.at = "inverse\x00" + x.Inverse.EffectKey
	}
	in.Services.Guard, in.Services.Effect = effect.Guard, p.effect
	in.Services.Credential = (&credentials{e: e, in: in, id: id, owner: s.Owner, typ: typ, x: x}).resolve
}

// effect is node.Services.Effect.
func (p *performer) effect(ctx context.Context, ef node.Effect, do node.Perform) (json.RawMessage, error) {
	seam, err := p.seam(ef)
	if err != nil {
		return nil, err
	}
	if err := effect.Guard(ctx, seam); err != nil { // before anything is claimed
		return nil, err
	}
	k, key, err := p.claim(ef)
	if err != nil {
		return nil, err
	}
	if within(ctx, k.ID) { // it would wait for itself
		return nil, node.Fail(node.CodeInternal, "an effect of node type %s has itself as a part", p.typ.ID)
	}
	leave, err := p.e.performing.enter(ctx, p.e, ids.Run{Tenant: k.Tenant, Opaque: k.ID})
	if err != nil {
		return nil, err
	}
	defer leave()
	ctx = context.WithValue(ctx, insideKey{}, inside{k.ID, ctx})
	x, mine, err := p.granted(ctx, &k)
	switch {
	case err != nil:
		return nil, err
	case mine:
		return p.perform(ctx, x, ef, func(ctx context.Context) (json.RawMessage, error) { return do(ctx, key) })
	case x.State == store.EffectCompleted:
		return x.Outcome, nil
	}
	return nil, inDoubt(x, nil)
}

// seam is the way out of an effect.
func (p *performer) seam(ef node.Effect) (string, error) {
	if ef.Seam != "" {
		return ef.Seam, nil
	}
	if len(p.typ.Seams) != 1 {
		return "", node.Fail(node.CodeInternal, "node type %s has an effect that names none of its %d seams", p.typ.ID, len(p.typ.Seams))
	}
	return p.typ.Seams[0].Name, nil
}

// claim makes the claim of an effect. Neither the attempt nor, with a business key,
// the run is part of its identity.
func (p *performer) claim(ef node.Effect) (k store.EffectClaim, key string, err error) {
	if len(ef.Key)+len(ef.Operation)+len(ef.Name)+len(ef.InvocationID) > maxBusinessKey {
		return k, "", node.Fail(node.CodeConfig, "what identifies an effect is longer than %d bytes", maxBusinessKey)
	}
	p.mu.Lock()
	p.all++
	over := p.all > maxEffects
	p.mu.Unlock()
	if over {
		return k, "", node.Fail(string(problem.LoopLimitExceeded), "one call of a node has at most %d effects", maxEffects)
	}
	now := p.e.clock.Now()
	k = store.EffectClaim{
		Tenant: p.run.Tenant, Run: p.run, NodeID: p.in.NodeID, Attempt: p.in.Attempt + 1,
		Keying: keyedByActivity, InvocationID: p.e.cfg.Redact.Text(p.run.Tenant, ef.InvocationID), Instance: p.e.Instance(),
		At: now, ExpiresAt: now.Add(p.e.cfg.EffectRetention), Again: ef.InDoubt == node.RepeatInDoubt,
	}
	switch {
	case ef.Key != "":
		k.Keying = keyedByBusiness
		operation := ef.Operation
		if operation == "" {
			operation = p.typ.ID
		}
		k.ID = ids.Effect(k.Tenant, operation, ef.Key).Opaque
	case ef.Name != "":
		k.ID = run.EffectID(p.run, p.at+"\x00"+ef.Name, p.in.Visit, 0)
	default:
		p.mu.Lock()
		if k.ID = p.in.EffectKey; p.made > 0 {
			k.ID = run.EffectID(p.run, p.at, p.in.Visit, p.made)
		}
		p.made++
		p.mu.Unlock()
	}
	if !ef.NoKey {
		k.ProviderKey = k.ID
	}
	return k, k.ID, nil
}

// granted claims an effect, waiting while another living instance holds it.
func (p *performer) granted(ctx context.Context, k *store.EffectClaim) (store.Effect, bool, error) {
	var late <-chan time.Time
	for wait := firstWait; ; wait = min(2*wait, longestGap) {
		x, mine, err := p.e.store.Effects().Claim(ctx, *k)
		switch {
		case ctx.Err() != nil:
			if err == nil && mine { // in time, but for nothing
				x.State = store.EffectReleased
				p.finish(x)
			}
			return x, false, ctx.Err()
		case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrClosed):
			return x, false, node.Retry(string(problem.ServiceUnavailable), "this instance executes nothing any more")
		case err != nil: // nothing has happened, and nothing may without the claim
			if !p.e.rest(wait) {
				return x, false, node.Retry(string(problem.ServiceUnavailable), "the host is shutting down")
			}
			continue
		case mine || x.State != store.EffectClaimed:
			return x, mine, nil
		}
		if late == nil {
			late = p.e.clock.After(waitForOther)
		}
		select {
		case <-p.e.clock.After(lookAgain):
		case <-late:
			return x, false, busyElsewhere()
		case <-ctx.Done():
			return x, false, ctx.Err()
		}
		k.At = p.e.clock.Now()
	}
}
