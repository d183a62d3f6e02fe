package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/internal/store/segment"
)

const (
	insertSegment = `INSERT INTO events (tenant, run_id, seq, n, body, sealed) VALUES (?,?,?,?,?,?)`
	putCheckpoint = `INSERT INTO checkpoints (tenant, run_id, seq, state) VALUES (?,?,?,?)
		ON CONFLICT DO UPDATE SET seq = excluded.seq, state = excluded.state`
	settleChild = `UPDATE runs SET notify = 0 WHERE tenant = ? AND run_id = ? AND seq = ? AND notify = 1`
)

// step is an append that has been checked and encoded, in its caller's
// goroutine: the writer only binds.
type step struct {
	*store.Append
	segments []segment.Segment
}

// Append implements store.Runs.
func (r runs) Append(ctx context.Context, a *store.Append) error {
	steps, size, err := encode(nil, a)
	if err == nil {
		err = r.s.writer.submit(ctx, size, func(c *conn) error { return writeSteps(c, r.s.hooks, steps) })
	}
	return wrap("append to run "+a.Row.ID.String(), err)
}

// encode adds a and the steps that go along with it to steps.
func encode(steps []step, a *store.Append) (_ []step, size int, err error) {
	if err := a.Check(); err != nil {
		return nil, 0, fmt.Errorf("malformed step: %w", err)
	}
	s := step{Append: a, segments: segment.Cut(a.Events)}
	for i := range s.segments {
		size += len(s.segments[i].Body) + len(s.segments[i].Sealed)
	}
	if a.Checkpoint != nil {
		size += len(a.Checkpoint.State)
	}
	steps = append(steps, s)
	for _, also := range a.Also {
		n := 0
		if steps, n, err = encode(steps, also); err != nil {
			return nil, 0, err
		}
		size += n
	}
	return steps, size, nil
}

// writeSteps writes the rows of all steps before anything else, since a row is
// what can refuse a step.
func writeSteps(c *conn, h *hooks, steps []step) error {
	for i := range steps {
		err := putRun(c, steps[i].Append)
		if err != nil && i > 0 {
			err = fmt.Errorf("along with it, run %s: %w", steps[i].Row.ID, err)
		}
		if err != nil {
			return err
		}
	}
	for i := range steps {
		if err := steps[i].write(c, h); err != nil {
			return err
		}
	}
	return nil
}

// write writes everything of a step but the row.
func (s *step) write(c *conn, h *hooks) error {
	id := s.Row.ID
	if err := putSegments(c, id, s.segments); err != nil {
		return err
	}
	if err := putInterrupts(c, s.Append); err != nil {
		return err
	}
	if err := putQueued(c, h, s.Append); err != nil {
		return err
	}
	if p := s.Checkpoint; p != nil {
		err := c.prep(putCheckpoint).text(id.Tenant).text(id.Opaque).int(p.Seq).blob(full(p.State)).run()
		if err != nil {
			return fmt.Errorf("checkpoint at %d: %w", p.Seq, err)
		}
	}
	return settle(c, s.Settled)
}

func putSegments(c *conn, id ids.Run, segments []segment.Segment) error {
	for i := range segments {
		g := &segments[i]
		err := c.prep(insertSegment).text(id.Tenant).text(id.Opaque).
			int(g.Seq).int(int64(g.N)).blob(g.Body).blob(g.Sealed).run()
		if err != nil {
			return fmt.Errorf("events from %d: %w", g.Seq, err)
		}
	}
	return nil
}

// full turns no bytes into an empty value, for columns that must have one.
func full(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// Settle implements store.Runs.
func (r runs) Settle(ctx context.Context, settled []store.Settled) error {
	if len(settled) == 0 {
		return nil
	}
	return wrap("settle", r.s.writer.submit(ctx, 0, func(c *conn) error { return settle(c, settled) }))
}

func settle(c *conn, settled []store.Settled) error {
	var errs []error
	for _, n := range settled {
		errs = append(errs, c.prep(settleChild).text(n.Child.Tenant).text(n.Child.Opaque).int(n.Seq).run())
	}
	return errors.Join(errs...)
}
