package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
)

// wants is a claim as an engine makes it.
func (e *env) wants(run ids.Run, effect string, attempt int, instance string) store.EffectClaim {
	return store.EffectClaim{
		Tenant: run.Tenant, ID: "effect-0123456789-" + effect, Run: run, NodeID: "n1", Attempt: attempt,
		Keying: "activity-recipe", ProviderKey: "key-of-" + effect, InvocationID: "call-" + effect, Instance: instance,
		At: e.tick(), ExpiresAt: e.now.Add(30 * 24 * time.Hour),
	}
}

// outcomeOf is the effect that a claim comes to.
func outcomeOf(k store.EffectClaim, state string, claims int64) store.Effect {
	x := store.Effect{
		Tenant: k.Tenant, ID: k.ID, State: state, Claims: claims, At: k.At,
		Run: k.Run, NodeID: k.NodeID, Attempt: k.Attempt, ExpiresAt: k.ExpiresAt,
	}
	if state == store.EffectClaimed {
		x.Instance = k.Instance
	}
	return x
}

// took claims an effect and wants it as it is afterwards.
func (e *env) took(k store.EffectClaim, want store.Effect, mine bool) store.Effect {
	e.Helper()
	got, ok, err := e.s.Effects().Claim(e.ctx, k)
	e.ok(err)
	same(e, "granted", ok, mine)
	same(e, "effect", got, want)
	return got
}

// performs claims an effect for the how manieth time, and is granted it.
func (e *env) performs(k store.EffectClaim, claims int64) store.Effect {
	e.Helper()
	return e.took(k, outcomeOf(k, store.EffectClaimed, claims), true)
}

// finishes says what became of an effect.
func (e *env) finishes(x store.Effect, state, outcome string) store.Effect {
	e.Helper()
	x.State, x.At, x.ExpiresAt = state, e.tick(), e.now.Add(30*24*time.Hour)
	if outcome != "" {
		x.Outcome = []byte(outcome)
	}
	e.ok(e.s.Effects().Finish(e.ctx, x))
	x.Instance = ""
	return x
}

// attempts wants the states of a run's attempts, oldest first.
func (e *env) attempts(run ids.Run, want ...string) []store.EffectAttempt {
	e.Helper()
	got, err := e.s.Effects().Attempts(e.ctx, run, 0, 0)
	e.ok(err)
	var states []string
	for i, a := range got {
		states = append(states, a.State)
		same(e, "number", a.N, int64(i+1))
	}
	same(e, "attempts", fmt.Sprint(states), fmt.Sprint(want))
	return got
}

// effectRecords: an effect is claimed once, and its outcome is everybody's.
func effectRecords(e *env) {
	e.register("host-1")
	run, other := e.id("acme"), e.id("acme")
	k := e.wants(run, "a", 1, "host-1")
	x := e.performs(k, 1)
	list := e.attempts(run, "claimed")
	same(e, "attempt", list[0], store.EffectAttempt{
		N: 1, EffectID: k.ID, NodeID: "n1", Attempt: 1, Keying: k.Keying, ProviderKey: k.ProviderKey,
		InvocationID: k.InvocationID, State: "claimed", At: k.At,
	})
	// The tenant and the identity are all of its name.
	e.performs(e.wants(e.id("other"), "a", 1, "host-1"), 1)
	e.performs(e.wants(run, "b", 1, "host-1"), 1)

	done := e.finishes(x, store.EffectCompleted, "{\"n\": 1.00}\u2028")
	same(e, "when", e.attempts(run, "completed", "claimed")[0].At, done.At)
	e.fails(e.s.Effects().Finish(e.ctx, store.Effect{
		Tenant: "acme", ID: k.ID, State: store.EffectReleased, Instance: "host-1", Claims: 1, At: e.now, ExpiresAt: e.now,
	}), store.ErrStale)
	for range 2 {
		e.took(k, done, false) // the attempt itself once more: nothing is listed
		e.attempts(run, "completed", "claimed")
		e.reopen()
		e.register("host-1")
	}
	// Another run, and another attempt, are told and listed.
	for i, ask := range []store.EffectClaim{e.wants(other, "a", 4, "host-1"), e.wants(run, "a", 2, "host-1")} {
		want := done
		want.Run, want.Attempt, want.ExpiresAt = ask.Run, ask.Attempt, ask.ExpiresAt
		for range 2 {
			e.took(ask, want, false)
		}
		same(e, "when", e.attempts(other, "completed")[0].Attempt, 4)
		if i == 1 {
			e.attempts(run, "completed", "claimed", "completed")
		}
	}
}

// effectStates: what is released is claimed anew; what is in doubt only by those
// who say that it may happen again.
func effectStates(e *env) {
	e.register("host-1")
	run := e.id("acme")
	x := e.performs(e.wants(run, "a", 1, "host-1"), 1)
	e.finishes(x, store.EffectReleased, "")
	x = e.performs(e.wants(run, "a", 2, "host-1"), 2)
	stale := x
	stale.Claims, stale.State = 1, store.EffectReleased
	e.fails(e.s.Effects().Finish(e.ctx, stale), store.ErrStale)

	escaped := e.finishes(x, store.EffectEscaped, "")
	e.took(e.wants(run, "a", 3, "host-1"), escaped, false)
	e.attempts(run, "released", "escaped")
	again := e.wants(run, "a", 3, "host-1")
	again.Again = true
	x = e.performs(again, 3)
	// Held by the asking instance itself, which lost sight of it.
	k := e.wants(run, "a", 4, "host-1")
	want := x
	want.State, want.Instance, want.At = store.EffectEscaped, "", k.At
	e.took(k, want, false)
	e.fails(e.s.Effects().Finish(e.ctx, func() store.Effect { x.State = store.EffectReleased; return x }()), store.ErrStale)
	again = e.wants(run, "a", 5, "host-1")
	again.Again = true
	x = e.performs(again, 4)
	k = e.wants(run, "a", 6, "host-1")
	k.Again = true
	x = e.performs(k, 5)
	e.attempts(run, "released", "escaped", "escaped", "escaped", "claimed")
	done := e.finishes(x, store.EffectCompleted, "")
	k.Again = true
	got := e.took(k, done, false)
	same(e, "outcome", len(got.Outcome), 0)
	page, err := e.s.Effects().Attempts(e.ctx, run, 1, 2)
	e.ok(err)
	same(e, "page", fmt.Sprint(page[0].N, page[1].N, len(page)), "2 3 2")
	none, err := e.s.Effects().Attempts(e.ctx, e.id("acme"), 0, 10)
	e.ok(err)
	same(e, "none", len(none), 0)
}

// effectTakeover: what a lost instance has claimed is in doubt, and the lost one
// changes nothing any more.
func effectTakeover(e *env) {
	e.register("host-1")
	run := e.id("acme")
	first := e.performs(e.wants(run, "a", 1, "host-1"), 1)
	kept := e.performs(e.wants(run, "b", 1, "host-1"), 1)
	e.reopen()
	_, _, err := e.s.Effects().Claim(e.ctx, e.wants(run, "a", 2, "host-2"))
	e.fails(err, store.ErrNotFound)
	e.register("host-2")
	e.lose("host-1")
	_, _, err = e.s.Effects().Claim(e.ctx, e.wants(run, "a", 2, "host-1"))
	e.fails(err, store.ErrNotFound)

	k := e.wants(run, "a", 2, "host-2")
	want := first
	want.State, want.Instance, want.At = store.EffectEscaped, "", k.At
	e.took(k, want, false)
	first.State = store.EffectReleased
	e.fails(e.s.Effects().Finish(e.ctx, first), store.ErrStale)
	k = e.wants(run, "b", 2, "host-2")
	k.Again = true
	second := e.performs(k, 2)
	kept.State = store.EffectReleased
	e.fails(e.s.Effects().Finish(e.ctx, kept), store.ErrStale)
	e.finishes(second, store.EffectCompleted, "1")
	e.attempts(run, "escaped", "escaped", "completed")
}

// effectRivals: of instances that claim one effect at once, one is granted it,
// whether or not the backend lets both be alive.
func effectRivals(e *env) {
	hosts := []string{"host-1", "host-2"}
	for _, h := range hosts {
		e.register(h)
	}
	var granted [writers]atomic.Int64
	var runs []ids.Run
	for range writers {
		runs = append(runs, e.id("acme"))
	}
	var wg sync.WaitGroup
	for n := range writers {
		for _, h := range hosts {
			k := e.wants(runs[n], fmt.Sprint(n), 1, h)
			wg.Go(func() {
				_, mine, err := e.s.Effects().Claim(e.ctx, k)
				if err != nil && !errors.Is(err, store.ErrNotFound) {
					e.Errorf("claim: %v", err)
				}
				if mine {
					granted[n].Add(1)
				}
			})
		}
	}
	wg.Wait()
	for n := range granted {
		same(e, "grants", granted[n].Load(), 1)
	}
}

// effectRace: of one instance's claims made at once one is granted, and the others
// find it in doubt; the run's attempts are counted without a gap.
func effectRace(e *env) {
	e.register("host-1")
	run := e.id("acme")
	var granted atomic.Int64
	var wg sync.WaitGroup
	for n := range writers {
		k := e.wants(run, fmt.Sprint("own-", n), 1, "host-1")
		shared := e.wants(run, "shared", n, "host-1")
		wg.Go(func() {
			for _, k := range []store.EffectClaim{k, shared} {
				_, mine, err := e.s.Effects().Claim(e.ctx, k)
				if err != nil {
					e.Errorf("claim: %v", err)
				}
				if mine && k.ID == shared.ID {
					granted.Add(1)
				}
			}
		})
	}
	wg.Wait()
	same(e, "grants", granted.Load(), 1)
	list, err := e.s.Effects().Attempts(e.ctx, run, 0, 0)
	e.ok(err)
	same(e, "attempts", len(list), writers+1)
	for i, a := range list {
		same(e, "number", a.N, int64(i+1))
	}
}

// effectPurge removes what is past its end, but nothing of a run that goes on.
func effectPurge(e *env) {
	e.register("host-1")
	live, over := e.create(e.id("acme")), e.create(e.id("acme"), func(a *store.Append) { a.Row.Status = "failed" })
	unknown := e.id("acme")
	from := e.now
	for i, run := range []ids.Run{live.row.ID, over.row.ID, unknown, over.row.ID} {
		k := e.wants(run, fmt.Sprint(i), 1, "host-1")
		k.ExpiresAt = from.Add(time.Duration(i) * time.Hour)
		e.performs(k, 1)
	}
	purge := func(after time.Duration, limit, want int) {
		e.Helper()
		n, err := e.s.Effects().Purge(e.ctx, from.Add(after), limit)
		e.ok(err)
		same(e, "purged", n, want)
	}
	purge(59*time.Minute, 10, 0)
	purge(time.Hour, 10, 2) // the effect and the attempt at it
	purge(9*time.Hour, 1, 2)
	e.attempts(unknown)
	purge(9*time.Hour, 10, 2)
	purge(9*time.Hour, 10, 0)
	e.attempts(live.row.ID, "claimed")
	end := live.next()
	end.Row.Status = "completed"
	e.ok(e.s.Runs().Append(e.ctx, end))
	purge(9*time.Hour, 0, 2)
	e.performs(e.wants(live.row.ID, "0", 2, "host-1"), 1)
}

// effectMalformed: what could not be found again is not written.
func effectMalformed(e *env) {
	e.register("host-1")
	run := e.id("acme")
	for _, change := range []func(k *store.EffectClaim){
		func(k *store.EffectClaim) { k.Tenant = "other" }, func(k *store.EffectClaim) { k.ID = "short" },
		func(k *store.EffectClaim) { k.Run.Opaque = "" }, func(k *store.EffectClaim) { k.NodeID = "" },
		func(k *store.EffectClaim) { k.Attempt = -1 }, func(k *store.EffectClaim) { k.Keying = "" },
		func(k *store.EffectClaim) { k.Instance = "" }, func(k *store.EffectClaim) { k.At = time.Time{} },
		func(k *store.EffectClaim) { k.ExpiresAt = time.Time{} },
		func(k *store.EffectClaim) { k.ProviderKey = string(make([]byte, 5000)) },
	} {
		k := e.wants(run, "a", 1, "host-1")
		change(&k)
		if _, _, err := e.s.Effects().Claim(e.ctx, k); err == nil {
			e.Errorf("claimed: %+v", k)
		}
	}
	x := e.performs(e.wants(run, "a", 1, "host-1"), 1)
	for _, change := range []func(x *store.Effect){
		func(x *store.Effect) { x.State = store.EffectClaimed }, func(x *store.Effect) { x.State = "" },
		func(x *store.Effect) { x.Outcome = []byte("1") }, func(x *store.Effect) { x.At = time.Time{} },
		func(x *store.Effect) { x.State, x.Outcome = store.EffectCompleted, make([]byte, store.MaxValue+1) },
	} {
		bad := x
		bad.State = store.EffectReleased
		change(&bad)
		if err := e.s.Effects().Finish(e.ctx, bad); err == nil || errors.Is(err, store.ErrStale) {
			e.Errorf("finished as %q: %v", bad.State, err)
		}
	}
	e.attempts(run, "claimed")
}

// everyEffect calls each method once, as every does.
func (e *env) everyEffect(ctx context.Context, run ids.Run, keep func(string, error)) {
	k := e.wants(run, "every", 1, "host-1")
	x, _, err := e.s.Effects().Claim(ctx, k)
	keep("Claim an effect", err)
	if err != nil {
		x = outcomeOf(k, store.EffectClaimed, 1)
	}
	x.State = store.EffectReleased
	keep("Finish an effect", e.s.Effects().Finish(ctx, x))
	_, err = e.s.Effects().Attempts(ctx, run, 0, 10)
	keep("Attempts", err)
	_, err = e.s.Effects().Purge(ctx, e.now, 10)
	keep("Purge effects", err)
}
