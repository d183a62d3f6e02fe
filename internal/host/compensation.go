package host

import (
	"context"
	"slices"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
)

// Compensation reads what of a run's effects is to be undone, and what has come of
// it (spec v2 security-defaults.md §Compensation).
func (h *Host) Compensation(ctx context.Context, c identity.Caller, id ids.Run) (run.Projection, error) {
	if err := h.admit(c, identity.RunsRead, id); err != nil {
		return run.Projection{}, err
	}
	return h.projection(ctx, id)
}

func (h *Host) projection(ctx context.Context, id ids.Run) (run.Projection, error) {
	s, err := h.state(ctx, id)
	if err != nil {
		return run.Projection{}, notFound(err)
	}
	return s.Compensation(), nil
}

// Operate is what an operator asks of a run's compensation.
type Operate struct {
	Action     string // a run.UndoX
	Order      int    // the action of the plan; 0 for the one that the plan waits at
	NodeTypeID string // of a substitute
	Reason     string // of a skip; kept from those who read the run
}

// OperateCompensation lets an operator act on a run's compensation. Who started the
// run, or wrote its workflow, may not for that reason: it takes a scope of its own.
// It returns the compensation afterwards.
func (h *Host) OperateCompensation(ctx context.Context, c identity.Caller, id ids.Run, r Operate) (run.Projection, error) {
	if err := h.admit(c, identity.CompensationOperate, id); err != nil {
		if problem.Is(err, problem.Forbidden) && h.own(c, id) == nil {
			h.cfg.Log.Warn("an operation on a compensation was denied", "run", id.String(), "action", r.Action, "subject", c.Subject.SubjectID)
		}
		return run.Projection{}, err
	}
	if err := h.checkOperation(&r); err != nil {
		return run.Projection{}, err
	}
	d := onRun("compensation."+r.Action, id).with("nodeTypeId", r.NodeTypeID)
	if r.Order > 0 {
		d = d.with("order", sequenceText(int64(r.Order)))
	}
	return audited(ctx, h, c, d, func(ctx context.Context, _ *store.Draft) (run.Projection, error) {
		return h.operate(ctx, c, id, r)
	})
}

func (h *Host) operate(ctx context.Context, c identity.Caller, id ids.Run, r Operate) (run.Projection, error) {
	try := attemptIn(ctx)
	_, done, err := h.recorded(ctx, try, id, func(*event.Event) bool { return true })
	if err != nil {
		return run.Projection{}, err
	}
	if !done {
		out := h.engine.Do(ctx, id, run.Operate{
			Action: r.Action, Order: r.Order, TypeID: r.NodeTypeID, Reason: r.Reason,
			By: c.Subject.Issuer + " " + c.Subject.SubjectID, Request: try.mark,
		})
		if out.Err != nil {
			return run.Projection{}, out.Err
		}
	}
	return h.projection(ctx, id)
}

func (h *Host) checkOperation(r *Operate) error {
	all := []string{run.UndoStart, run.UndoRetry, run.UndoSkip, run.UndoSubstitute, run.UndoTerminate}
	if !slices.Contains(all, r.Action) {
		return problem.Invalid("action", "%q is not start, retry, skip, substitute or terminate", r.Action).With("actions", all)
	}
	if r.Order < 0 || r.Order > 0 && r.Action == run.UndoStart {
		return problem.Invalid("order", "names an action of the plan, from 1; the action start has none")
	}
	if r.Action == run.UndoSkip && r.Reason == "" {
		return problem.Invalid("reason", "to give an action up takes a reason")
	}
	if err := checkReason(r.Reason); err != nil {
		return err
	}
	if r.Action != run.UndoSubstitute {
		if r.NodeTypeID != "" {
			return problem.Invalid("nodeTypeId", "only the action substitute names a node type")
		}
		return nil
	}
	if !ids.ValidTypeID(r.NodeTypeID) {
		return problem.Invalid("nodeTypeId", "%q is not a type id", r.NodeTypeID)
	}
	if issue := flow.Undoes(h.cfg.Catalog, r.NodeTypeID); issue != nil {
		return problem.Invalid("nodeTypeId", "%s", issue.Message)
	}
	return nil
}

// rest reports whether nothing more is to be expected of a run whose row this is:
// it has ended, and nothing of it is being undone at the moment.
func rest(r *store.Run) bool {
	return run.Terminal(r.Status) && r.Compensation != run.UndoPending && r.Compensation != run.UndoRunning
}
