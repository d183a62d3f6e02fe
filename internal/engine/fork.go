package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/go-json-experiment/json"
)

// forkStretch is up to how much of an inherited log is written in one step. A
// longer one is staged.
const forkStretch = 1 << 20

// Blank is the state that a run's log begins to fold from.
func (e *Engine) Blank(row *store.Run, wf *flow.Workflow) (*run.State, error) {
	if row.ForkMode == "" {
		return run.New(row.ID, wf).MaskWith(e.cfg.MaskSecret), nil
	}
	f := run.Fork{Mode: row.ForkMode, Source: row.ForkSource, Seq: row.ForkSeq, At: row.CreatedAt}
	if len(row.ForkOptions) > 0 {
		f.Options = &event.ForkOptions{}
		if err := json.Unmarshal(row.ForkOptions, f.Options); err != nil {
			return nil, fmt.Errorf("options of fork %s: %w", row.ID, err)
		}
	}
	return run.NewFork(row.ID, wf, f).MaskWith(e.cfg.MaskSecret), nil
}

// Fork makes a run that begins with the log of another below a sequence. When it
// returns without error the fork is durable, whole, in a log of its own. It
// refuses with fork_point_invalid where the fork would inherit the source's end.
func (e *Engine) Fork(ctx context.Context, id ids.Run, source *store.Run, f run.Fork) (Outcome, error) {
	if e.draining.Load() {
		return Outcome{}, errDraining()
	}
	wf, err := e.defs.Get(ctx, source.ID.Tenant, source.WorkflowID, source.WorkflowVersion)
	if err != nil {
		return Outcome{}, refusal(err)
	}
	f.Source, f.At = source.ID, e.clock.Now().UTC()
	t := newTurn(e, run.NewFork(id, wf, f).MaskWith(e.cfg.MaskSecret), store.Run{})
	// A log that is staged is only on the way to the fork: its entry comes with it.
	begin, err := t.inherit(store.Unaudited(ctx), &f)
	if err != nil {
		return Outcome{}, forkRefusal(err)
	}
	if f.Mode == run.ModeReplay {
		if t.replay, err = e.openReplay(ctx, source.ID); err != nil {
			return Outcome{}, refusal(err)
		}
	}
	if t.replay != nil {
		ends, _ := t.replay.rec.End(f.Seq)
		for _, seq := range ends {
			ev, err := t.replay.event(seq)
			if err != nil {
				return Outcome{}, refusal(err)
			}
			begin.End = append(begin.End, ev)
		}
	}
	if err := t.begin(begin); err != nil {
		return Outcome{}, err
	}
	return e.bear(ctx, t)
}

func forkRefusal(err error) error {
	var p *problem.Error
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(err, store.ErrExists):
		return err
	}
	return refusal(err)
}

// bear makes a fork durable and begins to work on it.
func (e *Engine) bear(ctx context.Context, t *turn) (Outcome, error) {
	ap := t.append()
	ap.Create = true
	if t.inherited > checkpointFloor {
		if b, err := t.s.Encode(); err == nil && len(b) <= store.MaxValue {
			ap.Checkpoint = &store.Checkpoint{Seq: t.s.Seq, State: b}
		}
	}
	t.reserve()
	if err := e.store.Runs().Append(ctx, ap); err != nil {
		t.giveUp()
		if errors.Is(err, store.ErrExists) {
			return Outcome{}, err
		}
		return Outcome{}, refusal(err)
	}
	e.sent(ap)
	out := Outcome{Status: t.s.Status(), Seq: t.s.Seq, At: t.s.Last}
	e.takeOver(t)
	return out, nil
}

// inherit folds the part of the source's log that a fork begins with, and keeps
// the end of it for the step that makes the run; what does not fit into one step
// is staged.
func (t *turn) inherit(ctx context.Context, f *run.Fork) (run.Begin, error) {
	var begin run.Begin
	size := 0
	err := t.e.each(ctx, f.Source, func(ev *event.Event) (bool, error) {
		if f.Seq == 0 {
			begin = run.Begin{Payload: ev.Payload, Sealed: ev.Sealed, At: ev.Time}
			return false, nil
		}
		if ev.Type.Terminal() {
			return false, problem.New(problem.ForkPointInvalid, "the run ends at sequence %d: a fork from %d would inherit its end", ev.Seq, f.Seq).
				With("field", "fromSeq").With("fromSeq", f.Seq).With("terminalSeq", ev.Seq)
		}
		own := ev.Inherited(t.s.ID)
		if err := t.s.Fold(&own); err != nil {
			return false, defect{err}
		}
		t.events = append(t.events, own)
		size += len(own.Doc()) + len(own.Sealed)
		t.inherited += len(own.Doc())
		if size >= forkStretch {
			size = 0
			if err := t.stage(ctx, f); err != nil {
				return false, err
			}
		}
		return ev.Seq+1 < f.Seq, nil
	})
	if err == nil && t.s.Seq != f.Seq-1 || err == nil && f.Seq == 0 && begin.Payload == nil {
		err = store.ErrNotFound // it is being deleted
	}
	return begin, err
}

// stage writes what a fork has inherited so far, for its own log.
func (t *turn) stage(ctx context.Context, f *run.Fork) error {
	err := t.e.store.Runs().Stage(ctx, t.s.ID, f.At, t.events)
	t.events, t.staged = nil, true
	return err
}
