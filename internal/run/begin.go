package run

import (
	"fmt"
	"strconv"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/node"
	"github.com/go-json-experiment/json/jsontext"
)

// begin starts a step's next visit.
func (t *turn) begin(step *flow.Step) {
	if !t.admit(step) {
		return
	}
	if missing := step.Type.Requires; len(missing) > 0 {
		// Such a step never gets a node.started (spec v2 capabilities.md §3.1).
		err := fault(problem.CapabilityNotProvided, "node type %s needs the capability %s, which this host does not provide", step.Type.ID, missing[0])
		err.Details = map[string]any{"requiredCapability": missing[0], "nodeId": step.Node.ID}
		t.broken(step, err)
		return
	}
	t.attempt(step, 0)
}

// admit counts a step's execution against the run's ceiling. The step that
// would exceed it gets no node.started.
func (t *turn) admit(step *flow.Step) bool {
	limit := t.s.maxExecutions(t.lim)
	if limit <= 0 || t.s.Executions < limit {
		return true
	}
	t.say(event.CapBreached, step.Node.ID, event.Breach{
		Kind: "node-executions", Limit: int64(limit), Observed: int64(t.s.Executions + 1), NodeID: step.Node.ID,
	})
	t.breach(*fault(problem.RecursionLimitExceeded, "the run reached its limit of %d node executions", limit), step.Node.ID)
	return false
}

// attempt starts one try at a step's current visit.
func (t *turn) attempt(step *flow.Step, n int) {
	wake, saved := t.s.Nodes[step.Index].Wake, t.s.Nodes[step.Index].Saved
	t.say(event.NodeStarted, step.Node.ID, event.NodeStart{NodeID: step.Node.ID, TypeID: step.Node.TypeID, Attempt: n})
	if t.err != nil {
		return
	}
	if n == 0 {
		wake, saved = nil, nil
	}
	t.execute(step, wake, saved)
}

func (t *turn) execute(step *flow.Step, wake *Wake, saved jsontext.Value) {
	if t.s.Replaying() && (!step.Type.Pure || t.s.Nodes[step.Index].recorded()) {
		return // its outcome is taken from the source
	}
	n := t.s.Nodes[step.Index]
	inputs, err := t.s.inputs(step)
	if err != nil {
		f := fault(problem.NodeConfigInvalid, "%v", err)
		f.Details = map[string]any{"nodeId": step.Node.ID}
		t.broken(step, f)
		return
	}
	t.effect(Execute{
		NodeID: step.Node.ID, Visit: n.Visit, Attempt: n.Attempt, Inputs: inputs, Wake: wake, Saved: saved,
	})
}

// inputs resolves a step's input ports: what its definition binds, then what
// its incoming edges carry to ports that are not bound.
func (s *State) inputs(step *flow.Step) (map[string]jsontext.Value, error) {
	out := make(map[string]jsontext.Value, len(step.Bindings))
	for i := range step.Bindings {
		b := &step.Bindings[i]
		v, found, err := s.bind(b)
		if err != nil {
			return nil, fmt.Errorf("input %q: %w", b.Port, err)
		}
		if found {
			out[b.Port] = v
		} else if !b.Value.Optional {
			return nil, fmt.Errorf("input %q: %s has no value", b.Port, b.Source())
		}
	}
	for _, i := range step.In {
		l := &s.wf.Links[i]
		if l.Edge == nil || s.Links[i] != Success && !l.Back {
			continue
		}
		port := or(l.Edge.TargetInput, "input")
		v, ok := s.Nodes[l.From].Outputs[or(l.Edge.SourceOutput, "output")]
		if _, bound := out[port]; ok && !bound {
			out[port] = v
		}
	}
	return out, nil
}

func (s *State) bind(b *flow.Binding) (jsontext.Value, bool, error) {
	switch b.Value.Type {
	case "static":
		return b.Value.Value, true, nil
	case "variable":
		v, ok := s.Variables[b.Value.VariableName]
		return v, ok, nil
	case "connection":
		v, ok := s.Nodes[b.Step].Outputs[b.Value.OutputKey]
		return v, ok, nil
	}
	v, err := b.Program.Eval(s.scope(nil))
	return v, err == nil, err
}

func or(v, fallback string) string {
	if v == "" {
		return fallback
	}
	return v
}

// fault makes an error object of a registered code, not retryable.
func fault(code problem.Code, format string, args ...any) *event.Error {
	no := false
	return &event.Error{Code: string(code), Message: fmt.Sprintf(format, args...), Retryable: &no}
}

// faultOf turns a node's own error into an error object. A code that is not
// registered must not reach the wire (spec v2 errors.md §The registry): it is
// kept as the reason of an internal_error.
func faultOf(e *node.Error) *event.Error {
	retry := e.Retryable
	out := &event.Error{Code: e.Code, Message: e.Message, Details: e.Details, Retryable: &retry}
	if out.Message == "" {
		out.Message = "the node failed"
	}
	if _, registered := problem.Lookup(problem.Code(e.Code)); !registered {
		out.Code = string(problem.InternalError)
		details := map[string]any{"reason": e.Code}
		for k, v := range e.Details {
			details[k] = v
		}
		out.Details = details
	}
	return out
}

func itoa(n int) string { return strconv.Itoa(n) }
