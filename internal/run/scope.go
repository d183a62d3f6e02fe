package run

import (
	"maps"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/expr"
	"github.com/fermata-run/fermata/internal/flow"
	"github.com/go-json-experiment/json/jsontext"
)

// scope is what an expression of a run sees. Values are put together when they
// are first asked for: most expressions look at one thing only.
type scope struct {
	s     *State
	step  *flow.Step // whose outputs are "outputs"; nil for an input binding
	cause *event.Error
	extra map[string]jsontext.Value
	made  map[string]jsontext.Value
}

func (s *State) scope(step *flow.Step) *scope { return &scope{s: s, step: step} }

// Scope is the scope of an executing node's own expressions, with extra names.
func (s *State) Scope(extra map[string]jsontext.Value) expr.Scope {
	return &scope{s: s, extra: extra}
}

// Frozen is the scope of a node that runs beside the turn and must not look at a
// state that moves on. What it holds is put together when it is asked for: most
// nodes never ask, and a large state costs them nothing. One goroutine at a time may
// ask.
func (s *State) Frozen() expr.Scope {
	c := *s
	c.Variables = maps.Clone(s.Variables)
	c.Channels = make(map[string]*Channel, len(s.Channels))
	for name, ch := range s.Channels {
		was := *ch
		c.Channels[name] = &was
	}
	c.Nodes = make([]*Node, len(s.Nodes))
	for i, n := range s.Nodes {
		c.Nodes[i] = &Node{Phase: n.Phase, Visit: n.Visit, Outputs: n.Outputs, Error: n.Error}
	}
	return &scope{s: &c}
}

// Lookup implements expr.Scope.
func (c *scope) Lookup(name string) (jsontext.Value, bool) {
	if v, ok := c.extra[name]; ok {
		return v, true
	}
	if v, ok := c.made[name]; ok {
		return v, len(v) > 0
	}
	v := c.build(name)
	if c.made == nil {
		c.made = map[string]jsontext.Value{}
	}
	c.made[name] = v
	return v, len(v) > 0
}

func (c *scope) build(name string) jsontext.Value {
	switch name {
	case "inputs":
		return c.s.Inputs
	case "variables":
		return encodeObject(c.s.Variables)
	case "channels":
		return c.s.channelValues(false)
	case "nodes":
		return c.s.nodeValues()
	case "outputs", "output":
		if c.step != nil {
			return encodeObject(c.s.Nodes[c.step.Index].Outputs)
		}
	case "error":
		if c.cause != nil {
			return event.Encode(c.cause)
		}
	case "loop":
		return c.loop()
	case "run":
		return event.Encode(map[string]any{
			"id": c.s.ID.String(), "tenant": c.s.ID.Tenant, "workflowId": c.s.WorkflowID,
			"startedAt": c.s.StartedAt.UTC().Format(event.TimeLayout),
		})
	}
	return nil
}

// loop tells which round of its innermost loop a step is in, from 1.
func (c *scope) loop() jsontext.Value {
	if c.step == nil || len(c.step.Loops) == 0 {
		return nil
	}
	inner := c.step.Loops[0]
	for _, n := range c.step.Loops[1:] {
		if len(c.s.wf.Loops[n].Body) < len(c.s.wf.Loops[inner].Body) {
			inner = n
		}
	}
	return jsontext.Value(`{"iteration":` + itoa(c.s.Loops[inner]+1) + `}`)
}

// nodeValues is {id: {status, visit, outputs?, error?}} of every node the run
// has come to.
func (s *State) nodeValues() jsontext.Value {
	out := map[string]jsontext.Value{}
	for i, n := range s.Nodes {
		if n.Visit == 0 && n.Phase == Idle {
			continue
		}
		m := map[string]jsontext.Value{
			"status": event.Encode(string(n.Phase)), "visit": jsontext.Value(itoa(n.Visit)),
		}
		if n.Outputs != nil {
			m["outputs"] = encodeObject(n.Outputs)
		}
		if n.Error != nil {
			m["error"] = event.Encode(n.Error)
		}
		out[s.wf.Steps[i].Node.ID] = encodeObject(m)
	}
	return encodeObject(out)
}
