package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/internal/store/segment"
)

const (
	stagedCount = `SELECT n FROM staged WHERE tenant = ? AND run_id = ?`
	putStaged   = `INSERT INTO staged (tenant, run_id, n, created_at) VALUES (?,?,?,?)
		ON CONFLICT DO UPDATE SET n = excluded.n, created_at = excluded.created_at`
	voidStaged   = `UPDATE staged SET n = 0 WHERE tenant = ? AND run_id = ?`
	dropStaged   = `DELETE FROM staged WHERE tenant = ? AND run_id = ?`
	oldestStaged = `SELECT tenant, run_id FROM staged WHERE created_at < ? ORDER BY created_at LIMIT 1`
	dropSegments = `DELETE FROM events WHERE tenant = ? AND run_id = ?`
	dropSome     = `DELETE FROM events WHERE rowid IN (SELECT rowid FROM events WHERE tenant = ? AND run_id = ? LIMIT ?)`
)

// Stage implements store.Runs.
func (r runs) Stage(ctx context.Context, id ids.Run, at time.Time, events []event.Event) error {
	if len(events) == 0 {
		return nil
	}
	err := store.CheckStaged(id, events)
	if err == nil {
		segments, size := segment.Cut(events), 0
		for i := range segments {
			size += len(segments[i].Body) + len(segments[i].Sealed)
		}
		err = r.s.writer.submit(ctx, size, func(c *conn) error { return stage(c, id, at, segments, len(events)) })
	}
	return wrapRun("stage the log of run", id, err)
}

func stage(c *conn, id ids.Run, at time.Time, segments []segment.Segment, n int) error {
	there, err := c.prep(runIsThere).text(id.Tenant).text(id.Opaque).one(func(*row) {})
	if err != nil {
		return err
	}
	if !there {
		// What has expired is being cleared away, and its id is not given again.
		there, err = c.prep(selectExpired).id(id).one(func(*row) {})
	}
	if err != nil {
		return err
	}
	if there {
		return store.ErrExists
	}
	first := segments[0].Seq
	have, err := staged(c, id)
	if err != nil {
		return err
	}
	if first > 0 && have != first {
		return store.ErrStale
	}
	if first == 0 {
		if err := c.prep(dropSegments).text(id.Tenant).text(id.Opaque).run(); err != nil {
			return err
		}
	}
	if err := c.prep(putStaged).text(id.Tenant).text(id.Opaque).int(first + int64(n)).int(at.UnixMilli()).run(); err != nil {
		return err
	}
	return putSegments(c, id, segments)
}

// staged counts the events staged for a run.
func staged(c *conn, id ids.Run) (n int64, err error) {
	_, err = c.prep(stagedCount).text(id.Tenant).text(id.Opaque).one(func(r *row) { n = r.int() })
	return n, err
}

// unstageFor makes what is staged the beginning of the log of a run that comes
// into being, if the step continues it.
func unstageFor(c *conn, a *store.Append) error {
	id := a.Row.ID
	have, err := staged(c, id)
	if err != nil {
		return err
	}
	if have == 0 || have != a.Row.Seq+1-int64(len(a.Events)) {
		return fmt.Errorf("%d events are staged: %w", have, store.ErrStale)
	}
	return c.prep(dropStaged).text(id.Tenant).text(id.Opaque).run()
}

// Unstage implements store.Runs: one log at a time, in bounded parts.
func (r runs) Unstage(ctx context.Context, before time.Time, limit int) (n int, err error) {
	err = r.s.writer.submit(ctx, 0, func(c *conn) error {
		n = 0
		var id ids.Run
		found, err := c.prep(oldestStaged).int(before.UnixMilli()).one(func(r *row) {
			id.Tenant, id.Opaque = r.text(), r.text()
		})
		if err != nil || !found {
			return err
		}
		n = 1
		// From here on nobody can make a run of it.
		if err := c.prep(voidStaged).text(id.Tenant).text(id.Opaque).run(); err != nil {
			return err
		}
		gone, err := c.prep(dropSome).text(id.Tenant).text(id.Opaque).bound(limit).change()
		if err != nil || limit > 0 && gone == int64(limit) {
			return err // there may be more of it
		}
		return c.prep(dropStaged).text(id.Tenant).text(id.Opaque).run()
	})
	return n, wrap("drop staged logs", err)
}
