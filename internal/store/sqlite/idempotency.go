package sqlite

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/fermata-run/fermata/internal/store"
)

// idempotency implements store.Idempotency. The database belongs to one process:
// every holder but the live instance is lost.
type idempotency struct{ s *Store }

const (
	oneRecord  = ` WHERE tenant = ? AND endpoint = ? AND key = ?`
	heldRecord = oneRecord + ` AND instance = ? AND attempt = ? AND status IS NULL`

	selectRecord = `SELECT digest, run_id, instance, attempt, created_at, expires_at, coalesce(status, 0), header, body
		FROM idempotency` + oneRecord
	insertRecord = `INSERT INTO idempotency (tenant, endpoint, key, digest, run_id, instance, attempt, created_at, expires_at)
		VALUES (?,?,?,?,?,?,1,?,?)`
	takeRecord   = `UPDATE idempotency SET instance = ?, attempt = attempt + 1, expires_at = ?` + oneRecord
	finishRecord = `UPDATE idempotency SET instance = NULL, status = ?, header = ?, body = ?, expires_at = ?` + heldRecord

	releaseRecord = `UPDATE idempotency SET instance = NULL` + heldRecord
	forgetRecord  = `DELETE FROM idempotency` + heldRecord
	purgeRecords  = `DELETE FROM idempotency WHERE (tenant, endpoint, key) IN (
		SELECT tenant, endpoint, key FROM idempotency INDEXED BY idempotency_expires
		WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)`
)

// record names a record in a statement that ends with oneRecord.
func (q *query) record(r *store.Record) *query { return q.text(r.Tenant).text(r.Endpoint).blob(r.Key) }

// held does the same with heldRecord.
func (q *query) held(r *store.Record) *query { return q.record(r).text(r.Instance).int(r.Attempt) }

// findRecord reads the record that r names.
func findRecord(c *conn, r store.Record) (store.Record, bool, error) {
	out := store.Record{Tenant: r.Tenant, Endpoint: r.Endpoint, Key: r.Key}
	found, err := c.prep(selectRecord).record(&r).one(func(r *row) {
		out.Digest = r.blob()
		out.Run = r.text()
		out.Instance = r.text()
		out.Attempt = r.int()
		out.CreatedAt = r.time()
		out.ExpiresAt = r.time()
		o := store.Outcome{Status: int(r.int())}
		o.Header, o.Body = r.blob(), r.blob()
		if o.Status != 0 {
			out.Outcome = &o
		}
	})
	return out, found, err
}

// Claim implements store.Idempotency. What has an outcome is only read.
func (i idempotency) Claim(ctx context.Context, r store.Record) (out store.Record, mine bool, err error) {
	if err := r.Check(); err != nil {
		return out, false, wrap("claim a request", err)
	}
	var done bool
	err = i.s.readers.read(ctx, func(c *conn) error {
		var found bool
		out, found, err = findRecord(c, r)
		done = found && out.Outcome != nil
		return err
	})
	if err == nil {
		err = ownership(i).alive(r.Instance)
	}
	if err == nil && !done {
		err = i.s.writer.submit(ctx, 0, func(c *conn) error {
			if err := ownership(i).alive(r.Instance); err != nil {
				return err
			}
			out, mine, err = claimRecord(c, r)
			return err
		})
	}
	if err != nil {
		return store.Record{}, false, wrap("claim a request", err)
	}
	return out, mine, nil
}

// claimRecord decides a claim of the live instance.
func claimRecord(c *conn, r store.Record) (store.Record, bool, error) {
	is, found, err := findRecord(c, r)
	switch {
	case err != nil:
		return is, false, err
	case !found:
		r.Attempt, r.Outcome = 1, nil
		err := c.prep(insertRecord).record(&r).blob(r.Digest).text(r.Run).text(r.Instance).
			time(r.CreatedAt).time(r.ExpiresAt).run()
		return r, true, err
	case is.Outcome != nil || !bytes.Equal(is.Digest, r.Digest):
		return is, false, nil
	}
	is.Instance, is.ExpiresAt = r.Instance, r.ExpiresAt
	is.Attempt++
	n, err := c.prep(takeRecord).text(r.Instance).time(r.ExpiresAt).record(&r).change()
	if err == nil && n != 1 {
		err = errors.New("a record changed inside the writer's transaction")
	}
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
	return wrap("finish a request", i.held(ctx, len(o.Header)+len(o.Body), func(c *conn) *query {
		return c.prep(finishRecord).int(int64(o.Status)).blob(o.Header).blob(o.Body).time(r.ExpiresAt).held(&r)
	}))
}

// Release implements store.Idempotency.
func (i idempotency) Release(ctx context.Context, r store.Record) error {
	return wrap("release a request", i.held(ctx, 0, func(c *conn) *query { return c.prep(releaseRecord).held(&r) }))
}

// Forget implements store.Idempotency.
func (i idempotency) Forget(ctx context.Context, r store.Record) error {
	return wrap("forget a request", i.held(ctx, 0, func(c *conn) *query { return c.prep(forgetRecord).held(&r) }))
}

// held executes a statement that changes a record only while it is held.
func (i idempotency) held(ctx context.Context, size int, q func(c *conn) *query) error {
	return i.s.writer.submit(ctx, size, func(c *conn) error {
		n, err := q(c).change()
		if err == nil && n == 0 {
			err = store.ErrStale
		}
		return err
	})
}

// Purge implements store.Idempotency.
func (i idempotency) Purge(ctx context.Context, now time.Time, limit int) (n int, err error) {
	err = i.s.writer.submit(ctx, 0, func(c *conn) error {
		gone, err := c.prep(purgeRecords).int(now.UnixMilli()).bound(limit).change()
		n = int(gone)
		return err
	})
	if err != nil {
		return 0, wrap("purge requests", err)
	}
	return n, nil
}
