package postgres

import (
	"bytes"
	"context"
	"time"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/jackc/pgx/v5"
)

// effects implements store.Effects.
type effects struct{ s *Store }

const (
	oneEffect    = ` WHERE tenant = $1 AND effect_id = $2`
	selectEffect = `SELECT state, instance, claims, at, expires_at, run_id, node_id, attempt, n, outcome FROM effects` + oneEffect
	lockEffect   = selectEffect + ` FOR UPDATE`
	insertEffect = `INSERT INTO effects (tenant, effect_id, state, instance, claims, at, expires_at, run_id, node_id, attempt, n)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING`
	updateEffect = `UPDATE effects SET state = $3, instance = $4, claims = $5, at = $6, expires_at = $7, run_id = $8,
		node_id = $9, attempt = $10, n = $11` + oneEffect
	finishEffect = `UPDATE effects SET state = $5, instance = NULL, at = $6, expires_at = $7, outcome = $8` + oneEffect + `
		AND instance = $3 AND claims = $4 AND state = 'claimed'`
	finishAttempt = `UPDATE effect_attempts SET state = $4, at = $5, expires_at = greatest(expires_at, $6)
		WHERE tenant = $1 AND run_id = $2 AND n = $3`
	countAttempt = `INSERT INTO effect_counts (tenant, run_id, n) VALUES ($1, $2, 1)
		ON CONFLICT (tenant, run_id) DO UPDATE SET n = effect_counts.n + 1 RETURNING n`
	insertAttempt = `INSERT INTO effect_attempts (tenant, run_id, n, effect_id, node_id, attempt, keying, provider_key,
		invocation_id, state, at, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`
	listAttempts = `SELECT n, effect_id, node_id, attempt, keying, provider_key, invocation_id, state, at
		FROM effect_attempts WHERE tenant = $1 AND run_id = $2 AND n > $3 ORDER BY n LIMIT $4`

	// What a run that is not over may still ask for stays.
	pinned = `EXISTS (SELECT 1 FROM runs r WHERE r.tenant = e.tenant AND r.run_id = e.run_id
		AND r.status NOT IN ('completed', 'failed', 'cancelled'))`
	oldEffects   = `SELECT tenant, effect_id FROM effects e WHERE expires_at <= $1 AND NOT ` + pinned + ` ORDER BY expires_at LIMIT $2`
	purgeEffect  = `DELETE FROM effects WHERE expires_at <= $1 AND tenant = $2 AND effect_id = $3`
	oldAttempts  = `SELECT tenant, run_id, n FROM effect_attempts e WHERE expires_at <= $1 AND NOT ` + pinned + ` ORDER BY expires_at LIMIT $2`
	purgeAttempt = `DELETE FROM effect_attempts WHERE expires_at <= $1 AND tenant = $2 AND run_id = $3 AND n = $4`
)

// effectRow is an effect with the place of its last claim among the run's attempts.
type effectRow struct {
	store.Effect
	n int64
}

func findEffect(ctx context.Context, q querier, sql, tenant, id string) (e effectRow, found bool, err error) {
	e.Tenant, e.ID, e.Run.Tenant = tenant, id, tenant
	found, err = one(ctx, q, sql, []any{tenant, id}, &e.State, (*opt)(&e.Instance), &e.Claims, (*stamp)(&e.At), (*stamp)(&e.ExpiresAt),
		&e.Run.Opaque, (*raw)(&e.NodeID), &e.Attempt, &e.n, &e.Outcome)
	if len(e.Outcome) == 0 {
		e.Outcome = nil
	}
	return e, found, err
}

// again reports whether a claim asks for what its own last claim has come to, so
// that there is nothing to write.
func (e *effectRow) again(k *store.EffectClaim) bool {
	return e.State == store.EffectCompleted && e.Run == k.Run && e.NodeID == k.NodeID && e.Attempt == k.Attempt
}

// Claim implements store.Effects.
func (x effects) Claim(ctx context.Context, k store.EffectClaim) (out store.Effect, mine bool, err error) {
	if err := k.Check(); err != nil {
		return out, false, wrap("claim an effect", err)
	}
	err = x.s.tx(ctx, func(q querier) error {
		if err := alive(ctx, q, k.Instance); err != nil {
			return err
		}
		e, ok, err := claimEffect(ctx, q, &k)
		out, mine = e.Effect, ok
		return err
	})
	if err != nil {
		return store.Effect{}, false, wrap("claim an effect", err)
	}
	return out, mine, nil
}

// claimEffect decides a claim of an instance that lives.
func claimEffect(ctx context.Context, q querier, k *store.EffectClaim) (effectRow, bool, error) {
	e, found, err := findEffect(ctx, q, lockEffect, k.Tenant, k.ID)
	switch {
	case err != nil:
		return e, false, err
	case !found || e.State == store.EffectReleased:
		return takeEffect(ctx, q, e, k, store.EffectClaimed, !found)
	case e.State == store.EffectCompleted:
		if e.again(k) {
			return e, false, nil
		}
		e, _, err = takeEffect(ctx, q, e, k, store.EffectCompleted, false)
		return e, false, err
	}
	if e.State == store.EffectClaimed {
		if e.Instance != k.Instance {
			if held, err := lives(ctx, q, e.Instance, k.Instance); err != nil || held {
				return e, false, err
			}
		}
		e.State, e.At = store.EffectEscaped, k.At
		if err := endEffect(ctx, q, &e.Effect, e.n); err != nil {
			return e, false, err
		}
		e.Instance = ""
	}
	if !k.Again {
		return e, false, nil
	}
	return takeEffect(ctx, q, e, k, store.EffectClaimed, false)
}

// takeEffect writes a claim and lists the attempt. Of a completed effect it notes
// who has asked for it last, which keeps the record for them.
func takeEffect(ctx context.Context, q querier, e effectRow, k *store.EffectClaim, state string, fresh bool) (effectRow, bool, error) {
	if state == store.EffectClaimed {
		e.Instance, e.At = k.Instance, k.At
		e.Claims++
	}
	e.State, e.Run, e.NodeID, e.Attempt = state, k.Run, k.NodeID, k.Attempt
	if k.ExpiresAt.After(e.ExpiresAt) {
		e.ExpiresAt = k.ExpiresAt
	}
	if _, err := one(ctx, q, countAttempt, []any{k.Tenant, k.Run.Opaque}, &e.n); err != nil {
		return e, false, err
	}
	put := updateEffect
	if fresh {
		put = insertEffect
	}
	n, err := change(ctx, q, put, k.Tenant, k.ID, state, optional(e.Instance), e.Claims, millis(e.At), millis(e.ExpiresAt),
		k.Run.Opaque, []byte(k.NodeID), k.Attempt, e.n)
	if err == nil && n == 0 { // somebody else has claimed it meanwhile
		err = errAgain
	}
	if err != nil {
		return e, false, err
	}
	_, err = q.Exec(ctx, insertAttempt, k.Tenant, k.Run.Opaque, e.n, k.ID, []byte(k.NodeID), k.Attempt, k.Keying,
		[]byte(k.ProviderKey), []byte(k.InvocationID), state, millis(k.At), millis(k.ExpiresAt))
	return e, err == nil, err
}

// endEffect writes what became of a claim, if it is held as e says.
func endEffect(ctx context.Context, q querier, e *store.Effect, n int64) error {
	var outcome []byte
	if e.State == store.EffectCompleted {
		outcome = full(e.Outcome)
	}
	changed, err := change(ctx, q, finishEffect, e.Tenant, e.ID, e.Instance, e.Claims, e.State, millis(e.At), millis(e.ExpiresAt), outcome)
	if err == nil && changed == 0 {
		err = store.ErrStale
	}
	if err == nil {
		_, err = q.Exec(ctx, finishAttempt, e.Tenant, e.Run.Opaque, n, e.State, millis(e.At), millis(e.ExpiresAt))
	}
	return err
}

// Finish implements store.Effects.
func (x effects) Finish(ctx context.Context, e store.Effect) error {
	if err := e.Check(); err != nil {
		return wrap("finish an effect", err)
	}
	return wrap("finish an effect", x.s.sure(ctx, func(q querier) error {
		is, _, err := findEffect(ctx, q, lockEffect, e.Tenant, e.ID)
		if err != nil {
			return err
		}
		done := e
		done.Run = is.Run
		return endEffect(ctx, q, &done, is.n)
	}, func(q querier) (bool, error) {
		is, found, err := findEffect(ctx, q, selectEffect, e.Tenant, e.ID)
		return found && is.State == e.State && is.Claims == e.Claims && bytes.Equal(is.Outcome, e.Outcome), err
	}))
}

// Attempts implements store.Effects.
func (x effects) Attempts(ctx context.Context, run ids.Run, after int64, limit int) (out []store.EffectAttempt, err error) {
	err = x.s.read(ctx, func(q querier) error {
		out, err = list(ctx, q, func(row pgx.CollectableRow) (a store.EffectAttempt, err error) {
			err = row.Scan(&a.N, &a.EffectID, (*raw)(&a.NodeID), &a.Attempt, &a.Keying, (*raw)(&a.ProviderKey),
				(*raw)(&a.InvocationID), &a.State, (*stamp)(&a.At))
			return a, err
		}, listAttempts, run.Tenant, run.Opaque, after, bound(limit))
		return err
	})
	return out, wrap("list effects", err)
}

// Purge implements store.Effects.
func (x effects) Purge(ctx context.Context, now time.Time, limit int) (int, error) {
	n, err := x.s.purge(ctx, now, limit, purging{oldEffects, purgeEffect}, purging{oldAttempts, purgeAttempt})
	return n, wrap("purge effects", err)
}
