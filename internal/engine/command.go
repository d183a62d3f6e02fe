package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

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

// busyScope is when a caller may try again whose scope is taken. Nobody knows how
// long the other run takes.
const busyScope = 5 * time.Second

// Create starts a run of a workflow. When it returns without error the run is
// durable, together with everything it did right away.
func (e *Engine) Create(ctx context.Context, id ids.Run, wf *flow.Workflow, c run.Start) (Outcome, error) {
	return e.create(ctx, id, wf, c, false)
}

// CreateAlone is Create for a caller who wants no second active run of c.ScopeID.
// It refuses with run_already_active (spec v2 runs.md §Create).
func (e *Engine) CreateAlone(ctx context.Context, id ids.Run, wf *flow.Workflow, c run.Start) (Outcome, error) {
	return e.create(ctx, id, wf, c, true)
}

func (e *Engine) create(ctx context.Context, id ids.Run, wf *flow.Workflow, c run.Start, alone bool) (Outcome, error) {
	if e.draining.Load() {
		return Outcome{}, errDraining()
	}
	t := newTurn(e, run.New(id, wf).MaskWith(e.cfg.MaskSecret), store.Run{})
	if err := t.begin(c); err != nil {
		return Outcome{}, err
	}
	ap := t.append()
	ap.Create, ap.Scope, ap.Alone = true, c.ScopeID, alone
	t.reserve()
	if err := e.store.Runs().Append(ctx, ap); err != nil {
		t.giveUp()
		if active := (store.Active{}); errors.As(err, &active) {
			p := problem.New(problem.RunAlreadyActive, "another run of scope %q is active", c.ScopeID).With("runId", active.Run.String())
			p.RetryAfter = busyScope
			return Outcome{}, p
		}
		if errors.Is(err, store.ErrExists) {
			p := problem.New(problem.VersionConflict, "a run with this id exists already")
			p.Cause = err
			return Outcome{}, p
		}
		return Outcome{}, refusal(err)
	}
	e.sent(ap)
	out := Outcome{Status: t.s.Status(), Seq: t.s.Seq, At: t.s.Last}
	e.takeOver(t)
	return out, nil
}

// begin decides a new run's first step.
func (t *turn) begin(c run.Command) (err error) {
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
// ctx ends first, the command may still happen. What ctx has to be audited
// (store.Audited) becomes durable together with what the command does; a command
// that is refused or changes nothing leaves it to the caller.
func (e *Engine) Do(ctx context.Context, id ids.Run, c run.Command) Outcome {
	reply := make(chan Outcome, 1)
	e.actors.deliver(e, id, message{cmd: c, reply: reply, drafts: store.Drafts(ctx)})
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
