package stream

import (
	"context"

	"github.com/fermata-run/fermata/internal/api/sse"
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/problem"
)

// folder makes the function that turns events into snapshots for the values
// mode: one after each change that the wire shows so, and one first for a
// subscriber who resumes.
func (b *begun) folder(ctx context.Context, out *sse.Writer) (func(*event.Event) error, error) {
	s, err := b.h.FoldUpTo(ctx, b.id, b.after)
	if err != nil {
		return nil, err
	}
	show := func(seq int64) error {
		doc, err := b.wire.Snapshot(s)
		if err != nil {
			return problem.Internal(err)
		}
		out.Snapshot(seq, doc)
		return nil
	}
	if b.resumed && s.Seq >= 0 {
		if err := show(-1); err != nil {
			return nil, err
		}
	}
	return func(e *event.Event) error {
		if e.Seq <= s.Seq {
			return nil
		}
		if e.Seq > s.Seq+1 { // the cursor lay ahead of the log
			if s, err = b.h.FoldUpTo(ctx, b.id, e.Seq-1); err != nil {
				return err
			}
		}
		if err := s.Fold(e); err != nil {
			return problem.Internal(err)
		}
		if b.wire.Follows(e.Type) {
			return show(e.Seq)
		}
		return nil
	}, nil
}
