package flow

import (
	"sort"
	"strconv"

	"github.com/fermata-run/fermata/internal/expr"
)

// links compiles edges and input bindings, checking every reference.
func (c *compiler) links() {
	w := c.w
	seen := map[string]bool{}
	for i := range w.Def.Edges {
		e := &w.Def.Edges[i]
		field := "edges[" + strconv.Itoa(i) + "]"
		if e.ID == "" || seen[e.ID] {
			c.fail(field+".id", "must be present and unique")
		}
		seen[e.ID] = true
		from, okFrom := w.byID[e.SourceNodeID]
		if !okFrom {
			c.fail(field+".sourceNodeId", "no node %q", e.SourceNodeID)
		}
		to, okTo := w.byID[e.TargetNodeID]
		if !okTo {
			c.fail(field+".targetNodeId", "no node %q", e.TargetNodeID)
		}
		if e.TriggerRule != "" && !oneOf(e.TriggerRule, AllSuccess, AnySuccess, AllComplete, NoneFailed, AnyFailed) {
			c.fail(field+".triggerRule", "unknown rule %q", e.TriggerRule)
		}
		link := Link{ID: e.ID, From: from, To: to, Edge: e, Loop: -1}
		if e.Condition != nil {
			link.Cond = c.condition(field+".condition", e.Condition)
		}
		if okFrom && okTo {
			w.Links = append(w.Links, link)
		}
	}
	total := 0
	for i := range w.Steps {
		c.bindings("nodes["+strconv.Itoa(i)+"].inputs", &w.Steps[i])
		total += len(w.Steps[i].Bindings)
	}
	if total > MaxBindings {
		c.fail("nodes", "at most %d input bindings are allowed in one workflow", MaxBindings)
	}
}

func (c *compiler) condition(field string, cond *Condition) *expr.Test {
	t, err := expr.Condition{
		Type: cond.Type, Left: cond.Left, Right: cond.Right, Expression: cond.Expression,
	}.Compile()
	if err != nil {
		c.fail(field, "%v", err)
		return nil
	}
	return t
}

func (c *compiler) bindings(field string, s *Step) {
	ports := make([]string, 0, len(s.Node.Inputs))
	for port := range s.Node.Inputs {
		ports = append(ports, port)
	}
	sort.Strings(ports)
	for _, port := range ports {
		v, at := s.Node.Inputs[port], field+"."+port
		b := Binding{Port: port, Value: v, Step: -1}
		switch v.Type {
		case "static":
			if len(v.Value) == 0 {
				c.fail(at, "a static input needs a value")
			}
		case "expression":
			p, err := expr.Compile(v.Expression)
			if err != nil {
				c.fail(at+".expression", "%v", err)
			}
			b.Program = p
		case "connection":
			i, ok := c.w.byID[v.NodeID]
			switch {
			case !ok:
				c.fail(at+".nodeId", "no node %q", v.NodeID)
			case i == s.Index:
				c.fail(at+".nodeId", "a node cannot take its own output as input")
			case v.OutputKey == "":
				c.fail(at+".outputKey", "must not be empty")
			}
			b.Step = i
		case "variable":
			if v.VariableName == "" {
				c.fail(at+".variableName", "must not be empty")
			}
		default:
			c.fail(at+".type", "%q is not static, expression, connection or variable", v.Type)
		}
		c.strays(at, v)
		s.Bindings = append(s.Bindings, b)
	}
}

// strays refuses members that belong to another type of input: they would be
// ignored, which is not what their author had in mind.
func (c *compiler) strays(at string, v PortValue) {
	for _, m := range []struct {
		name  string
		set   bool
		types []string
	}{
		{"value", len(v.Value) > 0, []string{"static"}},
		{"expression", v.Expression != "", []string{"expression"}},
		{"nodeId", v.NodeID != "", []string{"connection"}},
		{"outputKey", v.OutputKey != "", []string{"connection"}},
		{"variableName", v.VariableName != "", []string{"variable"}},
		{"optional", v.Optional, []string{"connection", "variable"}},
	} {
		if known := oneOf(v.Type, "static", "expression", "connection", "variable"); known && m.set && !oneOf(v.Type, m.types...) {
			c.fail(at+"."+m.name, "does not belong to an input of type %s", v.Type)
		}
	}
}

// imply adds a dependency for each connection input whose source the edges do
// not already put before the node: a value must exist before it is read. Where
// the source can only come later, it never would.
func (c *compiler) imply() {
	w := c.w
	prev := make([][]int, len(w.Steps))
	for _, l := range w.Links {
		prev[l.To] = append(prev[l.To], l.From)
	}
	for i := range w.Steps {
		var before []bool
		for _, b := range w.Steps[i].Bindings {
			if b.Step < 0 {
				continue
			}
			if before == nil {
				before = make([]bool, len(w.Steps))
				reachInto(before, prev, i)
			}
			if before[b.Step] {
				continue
			}
			after := make([]bool, len(w.Steps))
			if reachInto(after, prev, b.Step); after[i] {
				if !b.Value.Optional {
					c.fail("nodes["+strconv.Itoa(i)+"].inputs."+b.Port+".nodeId",
						"node %q runs only after this one, so that it has nothing to give", b.Value.NodeID)
				}
				continue
			}
			w.Links = append(w.Links, Link{
				ID:   "implied:" + w.Steps[b.Step].Node.ID + ":" + w.Steps[i].Node.ID,
				From: b.Step, To: i, Loop: -1,
			})
			prev[i] = append(prev[i], b.Step)
			before[b.Step] = true
			reachInto(before, prev, b.Step)
		}
	}
}

// reachInto marks the steps from which a step can be reached. What is marked
// already is not followed again.
func reachInto(before []bool, prev [][]int, step int) {
	stack := []int{step}
	for len(stack) > 0 {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, n := range prev[at] {
			if !before[n] {
				before[n] = true
				stack = append(stack, n)
			}
		}
	}
}
