package sqlite

import (
	"context"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/internal/store/segment"
)

const (
	selectRun        = `SELECT ` + runColumns + ` FROM runs WHERE tenant = ? AND run_id = ?`
	selectCheckpoint = `SELECT seq, state FROM checkpoints WHERE tenant = ? AND run_id = ?`
	// Segments follow each other without a gap, so the last one that starts at
	// or before a sequence is the one that holds it.
	selectSegments = `SELECT seq, n, body, sealed FROM events
		WHERE tenant = ?1 AND run_id = ?2 AND seq >= coalesce(
			(SELECT max(seq) FROM events WHERE tenant = ?1 AND run_id = ?2 AND seq <= ?3), ?3)
		ORDER BY seq`
)

// Get implements store.Runs.
func (r runs) Get(ctx context.Context, id ids.Run) (run store.Run, err error) {
	err = r.s.readers.read(ctx, func(c *conn) error {
		run, err = getRun(c, id)
		return err
	})
	return run, wrapRun("get run", id, err)
}

// Load implements store.Runs.
func (r runs) Load(ctx context.Context, id ids.Run) (l store.Loaded, err error) {
	err = r.s.readers.snapshot(ctx, func(c *conn) error {
		if l.Run, err = getRun(c, id); err != nil {
			return err
		}
		p := segment.Page{Run: id, After: -1}
		found, err := c.prep(selectCheckpoint).text(id.Tenant).text(id.Opaque).one(func(r *row) {
			l.Checkpoint = &store.Checkpoint{Seq: r.int(), State: r.blob()}
		})
		if err != nil {
			return err
		}
		if found {
			p.After = l.Checkpoint.Seq
		}
		err = fill(c, &p, l.Run.Seq)
		l.Tail = p.Events
		return err
	})
	if err != nil {
		l = store.Loaded{}
	}
	return l, wrapRun("load run", id, err)
}

// Events implements store.Runs.
func (r runs) Events(ctx context.Context, id ids.Run, after int64, limit, maxBytes int) (run store.Run, events []event.Event, err error) {
	err = r.s.readers.snapshot(ctx, func(c *conn) error {
		if run, err = getRun(c, id); err != nil {
			return err
		}
		p := segment.Page{Run: id, After: after, Limit: limit, MaxBytes: maxBytes}
		err = fill(c, &p, run.Seq)
		events = p.Events
		return err
	})
	if err != nil {
		run, events = store.Run{}, nil
	}
	return run, events, wrapRun("read events of run", id, err)
}

// fill reads events until the page is full. last is the end of the log: a
// reader that waits there costs no look at the events.
func fill(c *conn, p *segment.Page, last int64) error {
	if p.After >= last {
		return nil
	}
	q := c.prep(selectSegments).text(p.Run.Tenant).text(p.Run.Opaque).int(p.After + 1)
	return q.each(func(r *row) (bool, error) {
		err := p.Add(r.int(), int(r.int()), r.raw(), r.raw())
		return !p.Full(), err
	})
}

func getRun(c *conn, id ids.Run) (run store.Run, err error) {
	found, err := c.prep(selectRun).text(id.Tenant).text(id.Opaque).one(func(r *row) { run = scanRun(r) })
	if err == nil && !found {
		err = missing(c, id)
	}
	return run, err
}

// wrapRun is wrap for a method about one run.
func wrapRun(what string, id ids.Run, err error) error {
	if err == nil {
		return nil
	}
	return wrap(what+" "+id.String(), err)
}
