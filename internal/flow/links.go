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
		s.Bindings = append(s.Bindings, b)
	}
}

// imply adds a dependency for each connection input whose source the edges do
// not already put before the node: a value must exist before it is read. Where
// the source can only come later, it never would.
func (c *compiler) imply() {
	w := c.w
	next := make([][]int, len(w.Steps))
	for _, l := range w.Links {
		next[l.From] = append(next[l.From], l.To)
	}
	for i := range w.Steps {
		for _, b := range w.Steps[i].Bindings {
			if b.Step < 0 || reaches(next, b.Step, i) {
				continue
			}
			if reaches(next, i, b.Step) {
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
			next[b.Step] = append(next[b.Step], i)
		}
	}
}

func reaches(next [][]int, from, to int) bool {
	seen := make([]bool, len(next))
	stack := []int{from}
	for len(stack) > 0 {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, n := range next[at] {
			if n == to {
				return true
			}
			if !seen[n] {
				seen[n] = true
				stack = append(stack, n)
			}
		}
	}
	return false
}
