package postgres

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/fermata-run/fermata/internal/store"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// idempotency implements store.Idempotency.
type idempotency struct{ s *Store }

const (
	oneRecord  = ` WHERE tenant = $1 AND endpoint = $2 AND key = $3`
	heldRecord = oneRecord + ` AND instance = $4 AND attempt = $5 AND status IS NULL`

	selectRecord = `SELECT digest, run_id, instance, attempt, created_at, expires_at, coalesce(status, 0), header, body
		FROM idempotency` + oneRecord
	lockRecord = selectRecord + ` FOR UPDATE`
	// Most requests are new: one statement, if the instance lives.
	insertRecord = `INSERT INTO idempotency (tenant, endpoint, key, digest, run_id, instance, attempt, created_at, expires_at)
		SELECT $1, $2, $3, $4, $5, $6, 1, $7, $8 WHERE EXISTS (SELECT 1 FROM instances WHERE id = $6) ON CONFLICT DO NOTHING`
	takeRecord   = `UPDATE idempotency SET instance = $4, attempt = attempt + 1, expires_at = $5` + oneRecord
	finishRecord = `UPDATE idempotency SET instance = NULL, status = $6, header = $7, body = $8, expires_at = $9` + heldRecord

	releaseRecord = `UPDATE idempotency SET instance = NULL` + heldRecord
	forgetRecord  = `DELETE FROM idempotency` + heldRecord
	// What is to be purged is listed first and then deleted by its key, if it is still so.
	oldRecords  = `SELECT tenant, endpoint, key FROM idempotency WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2`
	purgeRecord = `DELETE FROM idempotency WHERE expires_at <= $1 AND tenant = $2 AND endpoint = $3 AND key = $4`
)

func nameOf(r *store.Record) []any { return []any{r.Tenant, []byte(r.Endpoint), r.Key} }

// findRecord reads the record that r names.
func findRecord(ctx context.Context, q querier, sql string, r *store.Record) (store.Record, bool, error) {
	out := store.Record{Tenant: r.Tenant, Endpoint: r.Endpoint, Key: r.Key}
	var o store.Outcome
	found, err := one(ctx, q, sql, nameOf(r), &out.Digest, &out.Run, (*opt)(&out.Instance), &out.Attempt,
		(*stamp)(&out.CreatedAt), (*stamp)(&out.ExpiresAt), &o.Status, &o.Header, &o.Body)
	if o.Status != 0 {
		out.Outcome = &o
	}
	return out, found, err
}

// Claim implements store.Idempotency.
func (i idempotency) Claim(ctx context.Context, r store.Record) (out store.Record, mine bool, err error) {
	if err := r.Check(); err != nil {
		return out, false, wrap("claim a request", err)
	}
	err = i.s.tx(ctx, func(q querier) error {
		n, err := change(ctx, q, insertRecord, append(nameOf(&r), r.Digest, r.Run, r.Instance, millis(r.CreatedAt), millis(r.ExpiresAt))...)
		if err != nil {
			return err
		}
		if n == 1 {
			out, mine = r, true
			out.Attempt, out.Outcome = 1, nil
			return nil
		}
		out, mine, err = claimRecord(ctx, q, &r)
		return err
	})
	if err != nil {
		return store.Record{}, false, wrap("claim a request", err)
	}
	return out, mine, nil
}

// claimRecord decides a claim of what is there already.
func claimRecord(ctx context.Context, q querier, r *store.Record) (store.Record, bool, error) {
	if err := alive(ctx, q, r.Instance); err != nil {
		return store.Record{}, false, err
	}
	is, found, err := findRecord(ctx, q, lockRecord, r)
	if err == nil && !found { // removed since
		err = errAgain
	}
	if err != nil || is.Outcome != nil || !bytes.Equal(is.Digest, r.Digest) {
		return is, false, err
	}
	if is.Instance != "" && is.Instance != r.Instance {
		if held, err := lives(ctx, q, is.Instance, r.Instance); err != nil || held {
			return is, false, err
		}
	}
	is.Instance, is.ExpiresAt = r.Instance, r.ExpiresAt
	is.Attempt++
	_, err = q.Exec(ctx, takeRecord, append(nameOf(r), r.Instance, millis(r.ExpiresAt))...)
	return is, true, err
}

// Finish implements store.Idempotency.
func (i idempotency) Finish(ctx context.Context, r store.Record) error {
	err := r.Check()
	if err == nil && (r.Outcome == nil || r.Outcome.Status == 0) {
		err = errors.New("a record is finished with an outcome")
	}
	if err != nil {
		return wrap("finish a request", err)
	}
	o := r.Outcome
	return wrap("finish a request", i.held(ctx, &r, func(is *store.Record, found bool) bool {
		return found && is.Attempt == r.Attempt && is.Outcome != nil && is.Outcome.Status == o.Status && bytes.Equal(is.Outcome.Body, o.Body)
	}, finishRecord, o.Status, o.Header, o.Body, millis(r.ExpiresAt)))
}

// Release implements store.Idempotency.
func (i idempotency) Release(ctx context.Context, r store.Record) error {
	return wrap("release a request", i.held(ctx, &r, func(is *store.Record, found bool) bool {
		return found && is.Attempt == r.Attempt && is.Instance == "" && is.Outcome == nil
	}, releaseRecord))
}

// Forget implements store.Idempotency.
func (i idempotency) Forget(ctx context.Context, r store.Record) error {
	return wrap("forget a request", i.held(ctx, &r, func(_ *store.Record, found bool) bool { return !found }, forgetRecord))
}

// held executes a statement that changes a record only while it is held. is says
// whether a record is as the statement leaves it.
func (i idempotency) held(ctx context.Context, r *store.Record, is func(r *store.Record, found bool) bool, sql string, args ...any) error {
	args = append(append(nameOf(r), r.Instance, r.Attempt), args...)
	return i.s.sure(ctx, func(q querier) error {
		n, err := change(ctx, q, sql, args...)
		if err == nil && n == 0 {
			err = store.ErrStale
		}
		return err
	}, func(q querier) (bool, error) {
		now, found, err := findRecord(ctx, q, selectRecord, r)
		return is(&now, found), err
	})
}

// Purge implements store.Idempotency.
func (i idempotency) Purge(ctx context.Context, now time.Time, limit int) (int, error) {
	n, err := i.s.purge(ctx, now, limit, purging{oldRecords, purgeRecord})
	return n, wrap("purge requests", err)
}

// purging is what lists keys of rows whose time is over, and what deletes one of them.
type purging struct{ list, drop string }

// purge deletes up to limit rows of each kind whose time is over. Planned for any limit,
// one statement for both would read whole tables.
func (s *Store) purge(ctx context.Context, now time.Time, limit int, kinds ...purging) (n int, err error) {
	err = s.tx(ctx, func(q querier) error {
		n = 0
		for _, p := range kinds {
			old, err := list(ctx, q, func(row pgx.CollectableRow) ([]any, error) { return row.Values() }, p.list, now.UnixMilli(), bound(limit))
			if err != nil {
				return err
			}
			b := &pgx.Batch{}
			for _, key := range old {
				b.Queue(p.drop, append([]any{now.UnixMilli()}, key...)...).Exec(func(tag pgconn.CommandTag) error {
					n += int(tag.RowsAffected())
					return nil
				})
			}
			if err := q.SendBatch(ctx, b).Close(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}
