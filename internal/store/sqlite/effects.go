package sqlite

import (
	"context"
	"errors"
	"time"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
)

// effects implements store.Effects. The database belongs to one process: every
// holder but the live instance is lost.
type effects struct{ s *Store }

const (
	oneEffect    = ` WHERE tenant = ? AND effect_id = ?`
	selectEffect = `SELECT state, instance, claims, at, expires_at, run_id, node_id, attempt, n, outcome FROM effects` + oneEffect
	putEffect    = `INSERT INTO effects (tenant, effect_id, state, instance, claims, at, expires_at, run_id, node_id, attempt, n)
		VALUES (?,?,?,?,?,?,?,?,?,?,?)
		ON CONFLICT DO UPDATE SET state = excluded.state, instance = excluded.instance, claims = excluded.claims,
		at = excluded.at, expires_at = excluded.expires_at, run_id = excluded.run_id, node_id = excluded.node_id,
		attempt = excluded.attempt, n = excluded.n`
	finishEffect = `UPDATE effects SET state = ?, instance = NULL, at = ?, expires_at = ?, outcome = ?` + oneEffect + `
		AND instance = ? AND claims = ? AND state = 'claimed'`
	finishAttempt = `UPDATE effect_attempts SET state = ?, at = ?, expires_at = max(expires_at, ?)
		WHERE tenant = ? AND run_id = ? AND n = ?`
	lastAttempt   = `SELECT n FROM effect_attempts WHERE tenant = ? AND run_id = ? ORDER BY n DESC LIMIT 1`
	insertAttempt = `INSERT INTO effect_attempts (tenant, run_id, n, effect_id, node_id, attempt, keying, provider_key,
		invocation_id, state, at, expires_at) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)`
	listAttempts = `SELECT n, effect_id, node_id, attempt, keying, provider_key, invocation_id, state, at
		FROM effect_attempts WHERE tenant = ? AND run_id = ? AND n > ? ORDER BY n LIMIT ?`

	// What a run that is not over may still ask for stays.
	pinned = `EXISTS (SELECT 1 FROM runs r WHERE r.tenant = e.tenant AND r.run_id = e.run_id
		AND r.status NOT IN ('completed', 'failed', 'cancelled'))`
	purgeEffects = `DELETE FROM effects WHERE (tenant, effect_id) IN (
		SELECT tenant, effect_id FROM effects e INDEXED BY effects_expires
		WHERE expires_at <= ? AND NOT ` + pinned + ` ORDER BY expires_at LIMIT ?)`
	purgeAttempts = `DELETE FROM effect_attempts WHERE (tenant, run_id, n) IN (
		SELECT tenant, run_id, n FROM effect_attempts e INDEXED BY effect_attempts_expires
		WHERE expires_at <= ? AND NOT ` + pinned + ` ORDER BY expires_at LIMIT ?)`
)

// Effects implements store.Store.
func (s *Store) Effects() store.Effects { return effects{s} }

// effectRow is an effect with the place of its last claim among the run's attempts.
type effectRow struct {
	store.Effect
	n int64
}

func findEffect(c *conn, tenant, id string) (e effectRow, found bool, err error) {
	e.Tenant, e.ID, e.Run.Tenant = tenant, id, tenant
	found, err = c.prep(selectEffect).text(tenant).text(id).one(func(r *row) {
		e.State = r.text()
		e.Instance = r.text()
		e.Claims = r.int()
		e.At = r.time()
		e.ExpiresAt = r.time()
		e.Run.Opaque = r.text()
		e.NodeID = r.text()
		e.Attempt = int(r.int())
		e.n = r.int()
		e.Outcome = r.blob()
	})
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
	var done bool
	err = x.s.readers.read(ctx, func(c *conn) error {
		e, found, err := findEffect(c, k.Tenant, k.ID)
		done, out = found && e.again(&k), e.Effect
		return err
	})
	if err == nil {
		err = ownership(x).alive(k.Instance)
	}
	if err == nil && !done {
		err = x.s.writer.submit(ctx, 0, func(c *conn) error {
			if err := ownership(x).alive(k.Instance); err != nil {
				return err
			}
			e, ok, err := claimEffect(c, &k)
			out, mine = e.Effect, ok
			return err
		})
	}
	if err != nil {
		return store.Effect{}, false, wrap("claim an effect", err)
	}
	return out, mine, nil
}

// claimEffect decides a claim of the live instance: whoever holds the effect is
// gone, or that instance itself.
func claimEffect(c *conn, k *store.EffectClaim) (effectRow, bool, error) {
	e, found, err := findEffect(c, k.Tenant, k.ID)
	switch {
	case err != nil:
		return e, false, err
	case !found || e.State == store.EffectReleased:
		return takeEffect(c, e, k, store.EffectClaimed)
	case e.State == store.EffectCompleted:
		if e.again(k) {
			return e, false, nil
		}
		e, _, err = takeEffect(c, e, k, store.EffectCompleted)
		return e, false, err
	}
	if e.State == store.EffectClaimed {
		e.State, e.At = store.EffectEscaped, k.At
		if err := endEffect(c, &e.Effect, e.n); err != nil {
			return e, false, err
		}
		e.Instance = ""
	}
	if !k.Again {
		return e, false, nil
	}
	return takeEffect(c, e, k, store.EffectClaimed)
}

// takeEffect writes a claim and lists the attempt. Of a completed effect it notes
// who has asked for it last, which keeps the record for them.
func takeEffect(c *conn, e effectRow, k *store.EffectClaim, state string) (effectRow, bool, error) {
	if state == store.EffectClaimed {
		e.Instance, e.At = k.Instance, k.At
		e.Claims++
	}
	e.State, e.Run, e.NodeID, e.Attempt = state, k.Run, k.NodeID, k.Attempt
	if k.ExpiresAt.After(e.ExpiresAt) {
		e.ExpiresAt = k.ExpiresAt
	}
	e.n = 0
	_, err := c.prep(lastAttempt).text(k.Tenant).text(k.Run.Opaque).one(func(r *row) { e.n = r.int() })
	if err != nil {
		return e, false, err
	}
	e.n++
	err = c.prep(insertAttempt).text(k.Tenant).text(k.Run.Opaque).int(e.n).text(k.ID).text(k.NodeID).int(int64(k.Attempt)).
		text(k.Keying).text(k.ProviderKey).text(k.InvocationID).text(state).time(k.At).time(k.ExpiresAt).run()
	if err != nil {
		return e, false, err
	}
	err = c.prep(putEffect).text(k.Tenant).text(k.ID).text(state).optional(e.Instance).int(e.Claims).time(e.At).
		time(e.ExpiresAt).text(k.Run.Opaque).text(k.NodeID).int(int64(k.Attempt)).int(e.n).run()
	return e, err == nil, err
}

// endEffect writes what became of a claim, if it is held as e says.
func endEffect(c *conn, e *store.Effect, n int64) error {
	var outcome []byte
	if e.State == store.EffectCompleted {
		outcome = full(e.Outcome)
	}
	changed, err := c.prep(finishEffect).text(e.State).time(e.At).time(e.ExpiresAt).blob(outcome).
		text(e.Tenant).text(e.ID).text(e.Instance).int(e.Claims).change()
	if err == nil && changed == 0 {
		return store.ErrStale
	}
	if err != nil {
		return err
	}
	return c.prep(finishAttempt).text(e.State).time(e.At).time(e.ExpiresAt).text(e.Tenant).text(e.Run.Opaque).int(n).run()
}

// Finish implements store.Effects.
func (x effects) Finish(ctx context.Context, e store.Effect) error {
	if err := e.Check(); err != nil {
		return wrap("finish an effect", err)
	}
	return wrap("finish an effect", x.s.writer.submit(ctx, len(e.Outcome), func(c *conn) error {
		is, _, err := findEffect(c, e.Tenant, e.ID)
		if err != nil {
			return err
		}
		done := e
		done.Run = is.Run
		return endEffect(c, &done, is.n)
	}))
}

// Attempts implements store.Effects.
func (x effects) Attempts(ctx context.Context, run ids.Run, after int64, limit int) (out []store.EffectAttempt, err error) {
	err = x.s.readers.read(ctx, func(c *conn) error {
		out = nil
		return c.prep(listAttempts).text(run.Tenant).text(run.Opaque).int(after).bound(limit).each(func(r *row) (bool, error) {
			a := store.EffectAttempt{N: r.int(), EffectID: r.text(), NodeID: r.text(), Attempt: int(r.int())}
			a.Keying, a.ProviderKey, a.InvocationID = r.text(), r.text(), r.text()
			a.State, a.At = r.text(), r.time()
			out = append(out, a)
			return true, nil
		})
	})
	if err != nil {
		out = nil
	}
	return out, wrap("list effects", err)
}

// Purge implements store.Effects.
func (x effects) Purge(ctx context.Context, now time.Time, limit int) (n int, err error) {
	err = x.s.writer.submit(ctx, 0, func(c *conn) error {
		records, err1 := c.prep(purgeEffects).int(now.UnixMilli()).bound(limit).change()
		attempts, err2 := c.prep(purgeAttempts).int(now.UnixMilli()).bound(limit).change()
		n = int(records + attempts)
		return errors.Join(err1, err2)
	})
	if err != nil {
		return 0, wrap("purge effects", err)
	}
	return n, nil
}
