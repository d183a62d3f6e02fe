package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/effect"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/node"
)

var payTwice = map[string]any{"settings": map[string]any{"maxRetries": 3, "retryDelayMs": 1, "retryBackoff": 1}}

// TestOneEffectForOneBusinessKey: of ten runs at once that want the same business
// operation one performs it, and all are given its outcome.
func TestOneEffectForOneBusinessKey(t *testing.T) {
	o := &outside{}
	entered, let := make(chan struct{}, 10), make(chan struct{})
	o.do = func(context.Context, string, int) (json.RawMessage, error) {
		entered <- struct{}{}
		<-let
		return json.RawMessage(`{"receipt": 1.00}`), nil
	}
	l := effectLab(t, o.payer(node.Effect{Key: "order-17", Operation: "charge"}, nil))
	w := l.register("pay", []any{step("p", "test.pay", nil)}, nil)
	var runs []ids.Run
	for range 10 {
		runs = append(runs, l.create(w))
	}
	await(t, "the effect", entered)
	eventually(t, "ten calls are out", func() bool {
		l.e.calls.mu.Lock()
		defer l.e.calls.mu.Unlock()
		return l.e.calls.n == 10
	})
	close(let)
	effects := map[string]bool{}
	for _, id := range runs {
		l.until(id, "completed")
		a := l.ledger(id, "completed")[0]
		effects[a.EffectID] = true
		if a.Keying != "business-identity" || a.ProviderKey != a.EffectID || a.NodeID != "p" || a.Attempt != 1 {
			t.Errorf("%+v", a)
		}
	}
	if key := o.came(t, 1); len(effects) != 1 || !effects[key[0]] {
		t.Errorf("effects %v, key %v", effects, key)
	}
	// A restart later still nothing happens anew, and the identity is the tenant's.
	l.restart()
	l.until(l.create(w), "completed")
	o.came(t, 1)
	if ids.Effect("acme", "charge", "order-17") == ids.Effect("other", "charge", "order-17") ||
		ids.Effect("acme", "charge", "order-17") == ids.Effect("acme", "chargeo", "rder-17") {
		t.Error("two identities are one")
	}
}

// TestEffectInDoubt: the process dies between the effect and the news of it. What
// may be repeated is, with the same key; what may not stops the node.
func TestEffectInDoubt(t *testing.T) {
	for _, again := range []node.InDoubt{node.StopInDoubt, node.RepeatInDoubt} {
		o := &outside{}
		entered, never := make(chan string, 10), make(chan struct{})
		t.Cleanup(func() { close(never) })
		o.do = func(_ context.Context, key string, n int) (json.RawMessage, error) {
			entered <- key
			if n == 1 {
				<-never // as good as dead: nothing of it is recorded
			}
			return json.RawMessage(`{"ok":true}`), nil
		}
		l := effectLab(t, o.payer(node.Effect{InDoubt: again}, nil))
		id := l.create(l.register("pay", []any{step("p", "test.pay", nil)}, nil))
		await(t, "the effect", entered)
		l.ledger(id, "claimed")
		l.restart()
		if again == node.RepeatInDoubt {
			l.until(id, "completed")
			o.came(t, 2)
			list := l.ledger(id, "escaped", "completed")
			if list[0].EffectID != list[1].EffectID || list[1].Attempt != list[0].Attempt+1 || list[1].Keying != "activity-recipe" {
				t.Errorf("%+v", list)
			}
			continue
		}
		f := l.failure(id)
		if f.Code != "upstream_unavailable" || f.Details["reason"] != "outcome-unknown" {
			t.Errorf("%+v", f)
		}
		o.came(t, 1)
		l.ledger(id, "escaped")
	}
}

// TestRecordedOutcomeIsNotBroughtAboutAgain: the effect is recorded, the node's
// outcome is not.
func TestRecordedOutcomeIsNotBroughtAboutAgain(t *testing.T) {
	o := &outside{}
	done := make(chan struct{}, 10)
	var once sync.Once
	l := effectLab(t, o.payer(node.Effect{}, func(ctx context.Context, in *node.Input) (err error) {
		once.Do(func() {
			done <- struct{}{}
			<-ctx.Done()
			err = ctx.Err()
		})
		return err
	}))
	id := l.create(l.register("pay", []any{step("p", "test.pay", nil)}, nil))
	await(t, "the effect", done)
	l.ledger(id, "completed")
	l.restart()
	l.until(id, "completed")
	o.came(t, 1)
	l.ledger(id, "completed", "completed")
}

// TestEffectThatDidNotHappen is claimed anew by the next attempt, and one of which
// that is not known is not.
func TestEffectThatDidNotHappen(t *testing.T) {
	boom := node.Retry("upstream_unavailable", "boom")
	for name, c := range map[string]struct {
		fails    error
		again    node.InDoubt
		came     int
		attempts []string
		reason   any
	}{
		"not done":             {node.NotDone(boom), node.StopInDoubt, 3, []string{"released", "released", "completed"}, nil},
		"unknown":              {boom, node.StopInDoubt, 1, []string{"escaped"}, "outcome-unknown"},
		"unknown, repeated":    {boom, node.RepeatInDoubt, 3, []string{"escaped", "escaped", "completed"}, nil},
		"refused at the seam":  {fmt.Errorf("dial: %w", effect.Guard(t.Context(), "x")), node.StopInDoubt, 1, []string{"released"}, "no-permission"},
		"panics":               {nil, node.StopInDoubt, 1, []string{"escaped"}, nil},
		"a wrapped not done":   {fmt.Errorf("dial: %w", node.NotDone(boom)), node.StopInDoubt, 3, []string{"released", "released", "completed"}, nil},
		"no code and no doubt": {errors.New("odd"), node.StopInDoubt, 1, []string{"escaped"}, "outcome-unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &outside{}
			o.do = func(_ context.Context, _ string, n int) (json.RawMessage, error) {
				if c.fails == nil {
					panic("ouch")
				}
				if n < 3 {
					return nil, c.fails
				}
				return nil, nil
			}
			l := effectLab(t, o.payer(node.Effect{InDoubt: c.again}, nil))
			id := l.create(l.register("pay", []any{step("p", "test.pay", nil, payTwice)}, nil))
			if last := c.attempts[len(c.attempts)-1]; last == "completed" {
				l.until(id, "completed")
			} else if f := l.failure(id); f.Details["reason"] != c.reason {
				t.Errorf("%+v", f)
			}
			o.came(t, c.came)
			l.ledger(id, c.attempts...)
		})
	}
}

// TestEffectsAreToldApart: visits, places within a visit and names each make an
// effect of their own; an attempt does not.
func TestEffectsAreToldApart(t *testing.T) {
	o := &outside{}
	n := 0
	two := node.Type{ID: "test.two", Seams: []node.Seam{paySeam}, Run: func(ctx context.Context, in *node.Input) (node.Result, error) {
		for _, ef := range []node.Effect{{}, {}, {Name: "a"}, {Name: "b"}, {Key: "k"}} {
			if _, err := in.Services.Effect(ctx, ef, o.perform); err != nil {
				return node.Result{}, err
			}
		}
		if n++; n == 1 {
			return node.Result{}, node.Retry("upstream_unavailable", "once more")
		}
		return node.Done(nil), nil
	}}
	l := effectLab(t, two)
	id := l.create(l.register("two", []any{step("p", "test.two", nil, payTwice), step("q", "test.two", nil)}, []any{edge("p", "q")}))
	l.until(id, "completed")
	keys := o.came(t, 1, 1, 1, 1, 1, 1, 1, 1, 1) // four of each node, and the one of the key
	if keys[0] != run.EffectID(id, "p", 1, 0) {
		t.Errorf("the first effect has the key %s, not Input.EffectKey", keys[0])
	}
	if list, _ := l.db.Effects().Attempts(t.Context(), id, 0, 0); len(list) != 15 {
		t.Errorf("%d attempts", len(list))
	}
}

// TestSeamsOfEffects: without a listed seam nothing happens, and nothing is claimed.
func TestSeamsOfEffects(t *testing.T) {
	for reason, nt := range map[string]node.Type{
		"":              {ID: "test.pay"},
		"unlisted-seam": {ID: "test.pay", Seams: []node.Seam{paySeam}},
	} {
		o := &outside{}
		nt.Run = o.payer(node.Effect{}, nil).Run
		l := newLab(t, nt)
		l.engine()
		id := l.create(l.register("pay", []any{step("p", "test.pay", nil)}, nil))
		if f := l.failure(id); fmt.Sprint(f.Details["reason"]) != fmt.Sprint(map[bool]any{true: reason, false: nil}[reason != ""]) {
			t.Errorf("%+v", f)
		}
		o.came(t)
		l.ledger(id)
	}
}

// TestClaimForNothing: a call that is over by the time its claim is granted gives it
// back, so that nobody is in doubt about it.
func TestClaimForNothing(t *testing.T) {
	o := &outside{}
	var l *lab
	l = effectLab(t, node.Type{ID: "test.pay", Seams: []node.Seam{paySeam}, Run: func(ctx context.Context, in *node.Input) (node.Result, error) {
		over, cancel := context.WithCancel(ctx)
		defer cancel()
		if in.Attempt == 0 {
			l.db.mu.Lock()
			l.db.after = cancel
			l.db.mu.Unlock()
		}
		out, err := in.Services.Effect(over, node.Effect{}, o.perform)
		l.db.mu.Lock()
		l.db.after = nil
		l.db.mu.Unlock()
		if errors.Is(err, context.Canceled) {
			err = node.Retry("upstream_unavailable", "over")
		}
		return node.Done(node.Outputs{"paid": out}), err
	}})
	id := l.create(l.register("pay", []any{step("p", "test.pay", nil, payTwice)}, nil))
	l.until(id, "completed")
	o.came(t, 1)
	l.ledger(id, "released", "completed")
}

// TestEffectsThatCannotBe: one that would wait for itself, too many of them, a name
// without an end, an outcome that is no JSON.
func TestEffectsThatCannotBe(t *testing.T) {
	o := &outside{}
	bad := func(context.Context, string) (json.RawMessage, error) { return json.RawMessage(`{"a":`), nil }
	for code, fn := range map[string]func(ctx context.Context, in *node.Input) error{
		"has itself as a part": func(ctx context.Context, in *node.Input) error {
			_, err := in.Services.Effect(ctx, node.Effect{Key: "k"}, func(ctx context.Context, _ string) (json.RawMessage, error) {
				return in.Services.Effect(ctx, node.Effect{Key: "other"}, func(ctx context.Context, _ string) (json.RawMessage, error) {
					return in.Services.Effect(ctx, node.Effect{Key: "k"}, o.perform)
				})
			})
			return err
		},
		"at most 1000 effects": func(ctx context.Context, in *node.Input) error {
			for range 1001 {
				if _, err := in.Services.Effect(ctx, node.Effect{Key: "k"}, func(context.Context, string) (json.RawMessage, error) { return nil, nil }); err != nil {
					return err
				}
			}
			return nil
		},
		"longer than 1024 bytes": func(ctx context.Context, in *node.Input) error {
			_, err := in.Services.Effect(ctx, node.Effect{Key: strings.Repeat("k", 1025)}, o.perform)
			return err
		},
		"is no JSON": func(ctx context.Context, in *node.Input) error {
			_, err := in.Services.Effect(ctx, node.Effect{}, bad)
			return err
		},
	} {
		l := effectLab(t, node.Type{ID: "test.pay", Seams: []node.Seam{paySeam}, Run: func(ctx context.Context, in *node.Input) (node.Result, error) {
			return node.Result{}, fn(ctx, in)
		}})
		id := l.create(l.register("pay", []any{step("p", "test.pay", nil)}, nil))
		if f := l.failure(id); !strings.Contains(f.Message, code) {
			t.Errorf("%s: %+v", code, f)
		}
	}
	o.came(t)
}

// TestNothingHappensWithoutAClaim: a store that does not answer holds the effect
// up; one that does not take its outcome holds the node up.
func TestNothingHappensWithoutAClaim(t *testing.T) {
	o := &outside{}
	l := effectLab(t, o.payer(node.Effect{}, nil))
	asked, failed := make(chan struct{}, 4096), make(chan struct{}, 4096)
	l.db.failingEffects(func(store.EffectClaim) (store.Effect, error) {
		asked <- struct{}{}
		return store.Effect{}, errDisk
	}, nil)
	id := l.create(l.register("pay", []any{step("p", "test.pay", nil)}, nil))
	await(t, "a claim", asked)
	await(t, "another", asked)
	o.came(t)
	l.db.failingEffects(nil, func(store.Effect) error { failed <- struct{}{}; return errDisk })
	await(t, "an end", failed)
	await(t, "another", failed)
	o.came(t, 1)
	if st := l.row(id).Status; st != "running" {
		t.Errorf("the run is %s", st)
	}
	l.db.failingEffects(nil, nil)
	l.until(id, "completed")
	o.came(t, 1)
	l.ledger(id, "completed")
}

// TestEffectRetention: no setting keeps an effect for less than the protocol asks.
func TestEffectRetention(t *testing.T) {
	for given, want := range map[time.Duration]time.Duration{0: 30 * 24 * time.Hour, time.Hour: 14 * 24 * time.Hour, 1000 * time.Hour: 1000 * time.Hour} {
		l := newLab(t)
		if got := New(Config{Store: l.db, Catalog: l, EffectRetention: given}).cfg.EffectRetention; got != want {
			t.Errorf("%v becomes %v", given, got)
		}
	}
}

// TestEffectHeldElsewhere: while another instance is at it, a call waits, and is
// given the outcome then.
func TestEffectHeldElsewhere(t *testing.T) {
	o := &outside{}
	l := effectLab(t, o.payer(node.Effect{Key: "k"}, nil))
	asked := make(chan struct{}, 4096)
	var mu sync.Mutex
	state := store.EffectClaimed
	l.db.failingEffects(func(k store.EffectClaim) (store.Effect, error) {
		mu.Lock()
		defer mu.Unlock()
		asked <- struct{}{}
		return store.Effect{Tenant: k.Tenant, ID: k.ID, State: state, Instance: "another", Outcome: json.RawMessage(`"theirs"`)}, nil
	}, nil)
	w := l.register("pay", []any{step("p", "test.pay", nil)}, nil)
	id, cancelled := l.create(w), l.create(w)
	await(t, "a look", asked)
	l.must(cancelled, run.Cancel{})
	l.until(cancelled, "cancelled")
	mu.Lock()
	state = store.EffectCompleted
	mu.Unlock()
	l.until(id, "completed")
	o.came(t)
}
