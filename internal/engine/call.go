package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/fermata-run/fermata/internal/expr"
	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/node"
	"github.com/go-json-experiment/json/jsontext"
)

func parseRun(s string) (ids.Run, error) { return ids.ParseRun(s) }

// callServices is what differs between a call within a turn and one beside it.
type callServices struct {
	turn  *turn      // of a pure call
	scope expr.Scope // the turn's own state for a pure call, a frozen one for an impure one
	chunk func(text string, last bool) error
}

// call makes one call of a pure node and turns whatever comes of it into a
// command. An error means that the store did not say what the call needs.
func (e *Engine) call(ctx context.Context, s *run.State, x run.Execute, sv callServices) (run.NodeResult, error) {
	step, typ, bad := e.target(s, x)
	if bad != nil {
		return *bad, nil
	}
	scope := &locked{scope: s.Scope(nil)} // one for the call: values are put together once
	sv.scope = scope
	in := e.input(s, step, typ, x, sv)
	if err := outcomes(in.Wake); err != nil {
		if isDefect(err) {
			return unreadable(in, err), nil
		}
		return run.NodeResult{}, err
	}
	var r run.NodeResult
	if e.quick(typ) {
		if x.Inverse == nil {
			in.Scratch = &s.Memo(x.NodeID).Scratch
		}
		r = e.invoke(ctx, typ, in)
	} else {
		var err error
		if r, err = e.guarded(ctx, step, typ, in, scope); err != nil {
			return r, err
		}
	}
	r.Inverse = keyOf(x).inverse
	return r, nil
}

// target finds whose code a call runs: that of the node's own type, or that of the
// type that undoes its effect, as the plan names it. The latter may be gone since
// the plan was made; then there is a result already.
func (e *Engine) target(s *run.State, x run.Execute) (*flow.Step, *node.Type, *run.NodeResult) {
	step, _ := s.Workflow().Step(x.NodeID)
	if x.Inverse == nil {
		return step, step.Type, nil
	}
	typ, ok := e.cfg.Catalog.Type(x.Inverse.TypeID)
	if !ok {
		return nil, nil, &run.NodeResult{
			NodeID: x.NodeID, Visit: x.Visit, Attempt: x.Attempt, Inverse: x.Inverse.Order,
			Err: node.Fail(node.CodeConfig, "node type %s is not there", x.Inverse.TypeID),
		}
	}
	return step, typ, nil
}

// unreadable is what becomes of a call whose children cannot be read at all.
func unreadable(in *node.Input, err error) run.NodeResult {
	return run.NodeResult{
		NodeID: in.NodeID, Visit: in.Visit, Attempt: in.Attempt,
		Err: node.Fail(node.CodeInternal, "the outcome of a child run cannot be read: %v", err),
	}
}

func (e *Engine) input(s *run.State, step *flow.Step, typ *node.Type, x run.Execute, sv callServices) *node.Input {
	in := &node.Input{
		RunID: s.ID.String(), TenantID: s.ID.Tenant, WorkflowID: s.WorkflowID,
		NodeID: x.NodeID, TypeID: typ.ID, Name: step.Node.Name,
		Visit: x.Visit, Attempt: x.Attempt, EffectKey: run.EffectID(s.ID, x.NodeID, x.Visit, 0),
		Now: e.clock.Now(), Config: json.RawMessage(step.Node.Config),
		Inputs: run.Raws(x.Inputs), Variables: run.Raws(s.Variables),
	}
	if x.Inverse != nil {
		in.EffectKey, in.Config = x.Inverse.EffectKey, json.RawMessage(`{}`)
	}
	in.Services.Eval = func(source string, extra map[string]json.RawMessage) (json.RawMessage, error) {
		p, err := e.programs.compile(source, extra)
		if err != nil {
			return nil, node.Fail(node.CodeConfig, "%v", err)
		}
		v, err := p.Eval(overlay{base: sv.scope, extra: extra})
		if err != nil {
			return nil, node.Fail(node.CodeConfig, "%v", err)
		}
		return json.RawMessage(v), nil
	}
	in.Services.Chunk = sv.chunk
	in.Wake = e.wake(s, x, sv.turn)
	if at := s.CalledAt(x.NodeID); sv.turn != nil && !at.IsZero() { // zero in an old checkpoint
		in.Now = at
	}
	if sv.turn != nil && sv.turn.replay != nil {
		if at := sv.turn.replay.rec.Now(s, x.NodeID); !at.IsZero() {
			in.Now = at
		}
	}
	return in
}

// overlay lays a node's own names over a run's scope.
type overlay struct {
	base  expr.Scope
	extra map[string]json.RawMessage
}

// Lookup implements expr.Scope.
func (o overlay) Lookup(name string) (jsontext.Value, bool) {
	if v, ok := o.extra[name]; ok {
		return jsontext.Value(v), true
	}
	return o.base.Lookup(name)
}

// invoke runs a node's code. Whatever it does, something comes back.
func (e *Engine) invoke(ctx context.Context, typ *node.Type, in *node.Input) (out run.NodeResult) {
	out = run.NodeResult{NodeID: in.NodeID, Visit: in.Visit, Attempt: in.Attempt}
	defer func() {
		if p := recover(); p != nil {
			e.log.Error("a node panicked", "run", in.RunID, "node", in.NodeID, "type", in.TypeID,
				"panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			out.Err = node.Fail(node.CodeInternal, "node type %s panicked", in.TypeID)
		}
	}()
	r, err := typ.Run(ctx, in)
	out.Writes, out.Logs = in.Recorded()
	out.Logs = cleanLogs(out.Logs)
	if err == nil {
		err = e.vetCall(r, out.Writes, in.Wake)
	}
	if err != nil {
		out.Err = nodeError(err)
		out.Writes = nil // a failed attempt changes nothing
		return out
	}
	out.Result = r
	return out
}

// nodeError gives an error without a code the code of a fault that may pass.
func nodeError(err error) *node.Error {
	var out node.Error
	var ne *node.Error
	var pe *problem.Error
	switch {
	case errors.As(err, &ne) && ne != nil:
		out = *ne
	case errors.As(err, &pe) && pe != nil:
		row, _ := problem.Lookup(pe.Code)
		out = node.Error{Code: string(pe.Code), Message: pe.Message, Details: pe.Details, Retryable: row.Retriable}
	default:
		out = *node.Retry(node.CodeInternal, "%v", err)
	}
	out.Code, out.Message = shortText(out.Code), shortText(out.Message)
	out.Details = cleanFields(out.Details)
	return &out
}

// fewChildren is up to how many children a wake-up carries outcomes outright.
const fewChildren = 16

// wake is what a waiting node is told when it is called again.
func (e *Engine) wake(s *run.State, x run.Execute, t *turn) *node.Wake {
	if x.Wake == nil {
		return nil
	}
	w := &node.Wake{State: json.RawMessage(x.Saved), Timer: x.Wake.Timer}
	if a := x.Wake.Answer; a != nil {
		w.Answer = &node.Answer{
			InterruptID: a.InterruptID, Kind: a.Kind, Value: json.RawMessage(a.Value),
			Action: a.Action, TimedOut: a.TimedOut, By: a.By, Exchange: a.Said(),
		}
	}
	if !x.Wake.Children {
		return w
	}
	w.Children, w.Fresh = e.results(s, x.NodeID), slices.Clone(x.Wake.Fresh)
	w.Load = func(i int) (node.ChildResult, error) {
		c := w.Children[i]
		if !c.Ended {
			return c, nil
		}
		return e.childOutcome(c, t)
	}
	return w
}

// results is a node's children as it is shown them. What it was shown the last time
// is at hand for a type that is known to change nothing in it: each of thousands of
// children that end must not cost as much as all of them.
func (e *Engine) results(s *run.State, nodeID string) []node.ChildResult {
	children, memo := s.Children(nodeID), s.Memo(nodeID)
	var known []node.ChildResult
	step, _ := s.Workflow().Step(nodeID)
	keep := len(children) > fewChildren && step.Type.Pure && e.quick(step.Type)
	if keep {
		known = memo.Results
	}
	for _, c := range children[len(known):] {
		known = append(known, node.ChildResult{
			RunID: c.RunID, WorkflowID: c.WorkflowID, Key: c.Key, Status: c.Status, Ended: run.Terminal(c.Status),
		})
	}
	if keep {
		memo.Results = known
	}
	return known[:len(known):len(known)]
}

// quick reports whether a type is known to return from its calls.
func (e *Engine) quick(t *node.Type) bool { return e.cfg.Quick != nil && e.cfg.Quick(t) }

// outcomes adds what came of each child to a wake-up, unless they are many.
func outcomes(w *node.Wake) error {
	if w == nil || len(w.Children) > fewChildren {
		return nil
	}
	for i := range w.Children {
		c, err := w.Load(i)
		if err != nil {
			return err
		}
		w.Children[i] = c
	}
	return nil
}

// childOutcome reads what came of a child run.
func (e *Engine) childOutcome(c node.ChildResult, t *turn) (node.ChildResult, error) {
	id, err := parseRun(c.RunID)
	if err != nil {
		return c, err
	}
	var s *run.State
	for at := t; at != nil && s == nil; at = at.parent {
		s = at.childState(id)
	}
	if s == nil {
		if r, ok := e.Ended(id); ok {
			s = r.State
		}
	}
	if s == nil {
		l, err := e.store.Runs().Load(context.Background(), id)
		if err != nil {
			return c, err
		}
		if s, _, err = e.fold(context.Background(), l); err != nil {
			return c, err
		}
	}
	c.Variables = run.Raws(s.Variables)
	c.Outputs = json.RawMessage(s.Outputs)
	if s.Error != nil {
		c.Error = &node.Error{Code: s.Error.Code, Message: s.Error.Message, Details: s.Error.Details}
	}
	return c, nil
}
