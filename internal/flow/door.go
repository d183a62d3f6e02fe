package flow

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fermata-run/fermata/internal/expr"
	"github.com/fermata-run/fermata/node"
)

// door looks for what a definition says that can never come true: branches nobody
// takes, outputs nobody puts out, nodes that are not there. A definition that is
// stored already is not held to it: its runs go on as they began.
//
// A variable that is not declared is not among it. A run's inputs become variables
// whatever their names, and nodes may set any.
type door struct {
	w      *Workflow
	ports  []node.Ports     // by step
	links  map[string]*Link // by edge id
	issues Issues
}

func (w *Workflow) atTheDoor() Issues {
	d := &door{w: w, ports: make([]node.Ports, len(w.Steps)), links: map[string]*Link{}}
	for i := range w.Links {
		d.links[w.Links[i].ID] = &w.Links[i]
	}
	for i := range w.Steps {
		if s := &w.Steps[i]; s.Type.Ports != nil {
			d.ports[i] = s.Type.Ports([]byte(s.Node.Config))
		}
	}
	d.edges()
	d.rules()
	for i := range w.Steps {
		d.inputs("nodes["+strconv.Itoa(i)+"].inputs", &w.Steps[i])
		d.config("nodes["+strconv.Itoa(i)+"].config", &w.Steps[i])
	}
	return d.issues
}

// choosesNot reminds whoever took an output for a branch of how such nodes go on.
const choosesNot = ", and follows every edge whose condition holds"

func (d *door) fail(field, format string, args ...any) {
	d.issues = append(d.issues, Issue{Field: field, Message: fmt.Sprintf(format, args...)})
}

// edges checks the ports that edges leave by, and what their conditions read.
func (d *door) edges() {
	for i := range d.w.Def.Edges {
		e, field := &d.w.Def.Edges[i], "edges["+strconv.Itoa(i)+"]"
		l := d.links[e.ID]
		p := d.ports[l.From]
		switch {
		case e.SourceOutput == "":
		case p.Branches != nil:
			if !slices.Contains(p.Branches, e.SourceOutput) {
				d.fail(field+".sourceOutput", "node %q never takes the port %q: it takes %s", e.SourceNodeID, e.SourceOutput, anyOf(p.Branches))
			}
		case p.Outputs != nil && !slices.Contains(p.Outputs, e.SourceOutput):
			d.fail(field+".sourceOutput", "node %q has no output %q: it puts out %s%s", e.SourceNodeID, e.SourceOutput, anyOf(p.Outputs),
				choosesNot)
		}
		if l.Cond == nil {
			continue
		}
		d.condition(field+".condition.expression", l)
	}
}

// condition checks what an edge's expression reads, up to the first mistake.
func (d *door) condition(field string, l *Link) {
	for _, path := range l.Cond.References() {
		reason := d.misses(path)
		if len(path) > 1 && (path[0] == "outputs" || path[0] == "output") {
			reason = d.lacks(l.From, path[1])
		}
		if reason != "" {
			d.fail(field, "%s", reason)
			return
		}
	}
}

// rules refuses a node whose edges state several rules: it has only one.
func (d *door) rules() {
	first := map[int]*Edge{} // by target
	for i := range d.w.Def.Edges {
		e := &d.w.Def.Edges[i]
		l := d.links[e.ID]
		if e.TriggerRule == "" || l.Back {
			continue
		}
		if was := first[l.To]; was == nil {
			first[l.To] = e
		} else if was.TriggerRule != e.TriggerRule {
			d.fail("edges["+strconv.Itoa(i)+"].triggerRule", "node %q starts by one rule, and edge %q has given it %s",
				e.TargetNodeID, was.ID, was.TriggerRule)
		}
	}
}

func (d *door) inputs(field string, s *Step) {
	for i := range s.Bindings {
		b := &s.Bindings[i]
		switch {
		case b.Step >= 0:
			if reason := d.lacks(b.Step, b.Value.OutputKey); reason != "" {
				d.fail(field+"."+b.Port+".outputKey", "%s", reason)
			}
		case b.Program != nil:
			d.references(field+"."+b.Port+".expression", b.Program.References())
		}
	}
}

// config has the type look at the config once more, for what its expressions read.
func (d *door) config(field string, s *Step) {
	if s.Type.Check == nil {
		return
	}
	err := s.Type.Check(node.CheckContext{Config: []byte(s.Node.Config), Expression: func(source string, extra ...string) error {
		p, err := expr.Compile(source, extra...)
		if err != nil {
			return err
		}
		for _, path := range p.References() {
			if reason := d.misses(path); reason != "" {
				return node.Fail(node.CodeConfig, "%s", reason)
			}
		}
		return nil
	}})
	if err != nil {
		d.fail(field, "%s", configMessage(err))
	}
}

func (d *door) references(field string, paths [][]string) {
	for _, path := range paths {
		if reason := d.misses(path); reason != "" {
			d.fail(field, "%s", reason)
			return
		}
	}
}

// shown are the members of what an expression sees of a node.
var shown = []string{"status", "visit", "outputs", "error"}

// misses says why a path leads nowhere, whatever the run does; empty if it may lead
// somewhere.
func (d *door) misses(path []string) string {
	if path[0] != "nodes" || len(path) < 2 {
		return ""
	}
	i, ok := d.w.byID[path[1]]
	switch {
	case !ok:
		return fmt.Sprintf("%s: no node %q", strings.Join(path[:2], "."), path[1])
	case len(path) > 2 && !slices.Contains(shown, path[2]):
		return fmt.Sprintf("%s: of a node there is %s", strings.Join(path[:3], "."), anyOf(shown))
	case len(path) > 3 && path[2] == "outputs":
		return d.lacks(i, path[3])
	}
	return ""
}

// lacks says that a step has no output of a name, where its outputs are known.
func (d *door) lacks(step int, name string) string {
	p := d.ports[step]
	if p.Outputs == nil || slices.Contains(p.Outputs, name) {
		return ""
	}
	return fmt.Sprintf("node %q has no output %q: it puts out %s", d.w.Steps[step].Node.ID, name, anyOf(p.Outputs))
}

// maxListed bounds how many names a reason lists.
const maxListed = 20

func anyOf(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	var out []string
	for _, n := range names[:min(len(names), maxListed)] {
		out = append(out, strconv.Quote(n))
	}
	if more := len(names) - len(out); more > 0 {
		out = append(out, "and "+strconv.Itoa(more)+" more")
	}
	return strings.Join(out, ", ")
}
