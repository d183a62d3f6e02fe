package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
)

// NewID mints the opaque segment of a run.
func (e *Engine) NewID(tenant string) ids.Run {
	return ids.Run{Tenant: tenant, Opaque: e.minter.Next(e.clock.Now())}
}

// Create starts a run of a workflow. When it returns without error the run is
// durable, together with everything it did right away.
func (e *Engine) Create(ctx context.Context, id ids.Run, wf *flow.Workflow, c run.Start) (Outcome, error) {
	if e.draining.Load() {
		return Outcome{}, errDraining()
	}
	t := newTurn(e, run.New(id, wf), store.Run{})
	if err := t.begin(c); err != nil {
		return Outcome{}, err
	}
	ap := t.append()
	ap.Create = true
	t.reserve()
	if err := e.store.Runs().Append(ctx, ap); err != nil {
		t.giveUp()
		if errors.Is(err, store.ErrExists) {
			p := problem.New(problem.VersionConflict, "a run with this id exists already")
			p.Cause = err
			return Outcome{}, p
		}
		return Outcome{}, refusal(err)
	}
	out := Outcome{Status: t.s.Status(), Seq: t.s.Seq, At: t.s.Last}
	e.takeOver(t)
	return out, nil
}

// begin decides a new run's first step.
func (t *turn) begin(c run.Start) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = problem.Internal(fmt.Errorf("panic: %v", p))
		}
	}()
	if err := t.decide(c); err != nil {
		return err
	}
	if t.inline(); t.broken != nil {
		return refusal(t.broken)
	}
	return nil
}

// Do lets a command happen to a run and waits until the outcome is durable. If
// ctx ends first, the command may still happen.
func (e *Engine) Do(ctx context.Context, id ids.Run, c run.Command) Outcome {
	reply := make(chan Outcome, 1)
	e.actors.deliver(e, id, message{cmd: c, reply: reply})
	select {
	case o := <-reply:
		return o
	case <-ctx.Done():
		return Outcome{Err: ctx.Err()}
	}
}

// cancelChild passes a parent's end on to a child run.
func (e *Engine) cancelChild(parent ids.Run, x run.CancelChild) {
	e.actors.deliver(e, x.RunID, message{cmd: run.Cancel{Reason: "parent-cancelled", ParentRunID: parent.String()}})
}

// tellParent passes a child's news on. If it is lost, the reconciler finds the
// child's Notify mark.
func (e *Engine) tellParent(child store.Run) {
	e.actors.deliver(e, child.Parent, message{
		cmd:     run.ChildNews{RunID: child.ID, Status: child.Status},
		settles: &store.Settled{Child: child.ID, Seq: child.Seq},
	})
}

// Read folds a run from the store, for readers.
func (e *Engine) Read(ctx context.Context, id ids.Run) (*run.State, error) {
	l, err := e.store.Runs().Load(ctx, id)
	if err != nil {
		return nil, err
	}
	s, _, err := e.fold(ctx, l)
	return s, err
}
