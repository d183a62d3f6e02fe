package flow_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fermata-run/fermata/internal/builtin"
	"github.com/fermata-run/fermata/internal/flow"
)

// builtins is the catalog of the built-in types, whose ports are known, and of the
// test's own, whose ports are not.
func builtins() types {
	all := catalog()
	for _, n := range builtin.All(builtin.Deps{}) {
		all[n.ID] = &n
	}
	return all
}

// from makes a workflow of a node a of a type and a task b behind it, with the edge
// e between them on line 10.
func from(typeID, config string, more ...string) string {
	return workflow("nodes", list(nodeOf("a", typeID, config, "{}"), task("b")), "edges", list(edge("e", "a", "b", more...)))
}

// reads makes a workflow in which b, on line 7, reads by an expression.
func reads(typeID, config, source string) string {
	text, _ := json.Marshal(source)
	return workflow("nodes", list(nodeOf("a", typeID, config, "{}"),
		nodeOf("b", "test.task", "{}", `{"in":{"type":"expression","expression":`+string(text)+`}}`)),
		"edges", list(edge("e", "a", "b")))
}

func when(source string) string {
	text, _ := json.Marshal(source)
	return `"condition":{"type":"expression","expression":` + string(text) + `}`
}

const (
	choice  = `{"cases":[{"port":"red","equals":1},{"port":"blue","equals":2}],"default":"grey"}`
	expr    = "nodes[1].inputs.in.expression"
	cond    = "edges[0].condition.expression"
	ruleFor = `"triggerRule":"any_failed"`
)

// What can never come true is refused when somebody hands it in, and kept where it
// is stored already.
func TestDoor(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want finding
	}{
		"branch of if":     {from("core.flow.if", `{"condition":"true"}`, `"sourceOutput":"yes"`), finding{"edges[0].sourceOutput", 10, `never takes the port "yes": it takes "true", "false"`}},
		"output of if":     {from("core.flow.if", `{"condition":"true"}`, `"sourceOutput":"result"`), finding{"edges[0].sourceOutput", 10, `it takes "true", "false"`}},
		"branch of switch": {from("core.flow.switch", choice, `"sourceOutput":"green"`), finding{"edges[0].sourceOutput", 10, `it takes "red", "blue", "grey"`}},
		"default unnamed": {from("core.flow.switch", `{"cases":[{"port":"red","equals":1}]}`, `"sourceOutput":"other"`),
			finding{"edges[0].sourceOutput", 10, `it takes "red", "default"`}},
		"action of a gate": {from("core.approvalGate", `{}`, `"sourceOutput":"reject"`), finding{"edges[0].sourceOutput", 10, `no output "reject": it puts out "action", "approved"`}},
		"kind of interrupt": {from("core.interrupt", `{"kind":"custom","data":{"customKind":"x"}}`, `"sourceOutput":"event"`),
			finding{"edges[0].sourceOutput", 10, `it puts out "resumeValue"`}},
		"output of set": {from("core.flow.set", `{"variables":{"v":"1"}}`, `"sourceOutput":"w"`), finding{"edges[0].sourceOutput", 10, `it puts out "v"`}},

		"output in a condition":   {from("core.flow.if", `{"condition":"true"}`, when("outputs.results == true")), finding{cond, 10, `no output "results"`}},
		"node in a condition":     {from("test.task", `{}`, when("size(nodes) > 1 && nodes.c.visit == 1")), finding{cond, 10, `nodes.c: no node "c"`}},
		"node in brackets":        {reads("test.task", `{}`, `nodes["c"].outputs.x`), finding{expr, 7, `no node "c"`}},
		"node in a call":          {reads("test.task", `{}`, `[1, 2].map(i, i + int(nodes["c"].outputs.x))`), finding{expr, 7, `no node "c"`}},
		"node that may be absent": {reads("test.task", `{}`, `has(nodes.c.outputs)`), finding{expr, 7, `no node "c"`}},
		"member of a node":        {reads("test.task", `{}`, `nodes.a.output.x`), finding{expr, 7, `nodes.a.output: of a node there is "status"`}},
		"output in an expression": {reads("core.flow.transform", `{"fields":{"x":"1","y":"2"}}`, `nodes.a.outputs.z`), finding{expr, 7, `it puts out "x", "y"`}},
		"output of a connection": {workflow("nodes", list(nodeOf("a", "core.flow.filter", `{"items":[],"where":"true"}`, "{}"),
			nodeOf("b", "test.task", "{}", `{"in":{"type":"connection","nodeId":"a","outputKey":"results"}}`))), finding{"nodes[1].inputs.in.outputKey", 7, `it puts out "items", "count"`}},
		"node in a config": {workflow("nodes", list(nodeOf("a", "core.flow.if", `{"condition":"nodes.c.status == 'completed'"}`, "{}"))),
			finding{"nodes[0].config", 6, `no node "c"`}},

		"two rules": {workflow("nodes", list(task("a"), task("b")), "edges", list(edge("e", "a", "b", ruleFor), edge("f", "a", "b", `"triggerRule":"all_complete"`))),
			finding{"edges[1].triggerRule", 11, `edge "e" has given it any_failed`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := flow.Check([]byte(c.text), builtins())
			is := issuesOf(t, err)
			if len(is) != 1 || is[0].Field != c.want.field || is[0].Line != c.want.line || !strings.Contains(is[0].Message, c.want.says) {
				t.Errorf("got  %v\nwant line %d: %s: …%s…\n%s", is, c.want.line, c.want.field, c.want.says, numbered(c.text))
			}
			if _, err := flow.Load([]byte(c.text), builtins()); err != nil {
				t.Errorf("a stored definition is refused: %v", err)
			}
		})
	}
}

// What may come true, or cannot be known, is let in.
func TestDoorLetsIn(t *testing.T) {
	for name, text := range map[string]string{
		"branches":             from("core.flow.switch", choice, `"sourceOutput":"grey"`),
		"output as data":       from("core.approvalGate", `{}`, `"sourceOutput":"action"`),
		"output nobody knows":  from("test.task", `{}`, `"sourceOutput":"reject"`),
		"undeclared variable":  reads("core.flow.set", `{"variables":{"new":"1"}}`, "variables.new + variables.given"),
		"a name of its own":    reads("test.task", `{}`, `[{"c": 1}].all(nodes, nodes.c == 1)`),
		"computed":             reads("test.task", `{}`, `nodes[variables.which].status`),
		"outputs known to be":  reads("core.flow.if", `{"condition":"true"}`, `nodes.a.outputs.result`),
		"outputs of outputs":   from("core.subWorkflow", `{"workflowId":"w"}`, when("outputs.outputs.x == 1")),
		"identity puts out it": reads("core.identity", `{}`, "nodes.a.outputs.anything"),
		"one rule twice":       workflow("nodes", list(task("a"), task("b")), "edges", list(edge("e", "a", "b", ruleFor), edge("f", "a", "b", ruleFor), edge("g", "a", "b"))),
		"rule of a way back": workflow("nodes", list(task("z"), task("a"), task("b")), "settings", `{"maxLoopbackIterations":2}`, "edges",
			list(edge("d", "z", "a", `"triggerRule":"all_complete"`), edge("e", "a", "b"), edge("f", "b", "a", ruleFor))),
	} {
		if _, err := flow.Check([]byte(text), builtins()); err != nil {
			t.Errorf("%s: %v\n%s", name, err, numbered(text))
		}
	}
}
