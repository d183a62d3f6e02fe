package flow_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-run/fermata/internal/flow"
)

// finding is an issue as a test expects it: a part of its message is enough.
type finding struct {
	field string
	line  int
	says  string
}

// inputs makes a workflow whose node b has the given inputs, on line 8.
func inputs(in string) string {
	return workflow("nodes", list(task("a"), "\n"+nodeOf("b", "test.task", "{}", in)))
}

// node makes a workflow of one node, on line 6, with more members.
func oneNode(more ...string) string { return workflow("nodes", list(task("a", more...))) }

func TestIssues(t *testing.T) {
	two := list(task("a"), task("b"))
	for name, c := range map[string]struct {
		text string
		want []finding
	}{
		// The definition itself.
		"id":           {workflow("id", `"Über"`), []finding{{"id", 2, "not a workflow id"}}},
		"id too long":  {workflow("id", `"`+strings.Repeat("a", 129)+`"`), []finding{{"id", 2, "not a workflow id"}}},
		"no name":      {workflow("name", `""`), []finding{{"name", 3, "1 to 256"}}},
		"no version":   {workflow("version", `""`), []finding{{"version", 4, "1 to 128"}}},
		"status":       {workflow("status", `"live"`), []finding{{"status", 11, `"live" is not one of`}}},
		"no nodes":     {workflow("nodes", `[]`), []finding{{"nodes", 5, "at least one node"}}},
		"configurable": {workflow("configurableSchema", `{"type":7}`), []finding{{"configurableSchema", 11, ""}}},
		"tenant":       {workflow("tenantId", `"a b"`), []finding{{"tenantId", 11, ""}}}, // by the protocol's schema
		"slug":         {workflow("slug", `"A"`), []finding{{"slug", 11, ""}}},
		"group":        {workflow("groups", `[{"id":"","name":"g","nodeIds":[],"position":{"x":0,"y":0},"size":{"width":1,"height":1}}]`), []finding{{"groups[0].id", 11, ""}}},

		// Settings.
		"timeout":    {workflow("settings", `{"timeout":-1}`), []finding{{"settings.timeout", 10, "negative"}}},
		"retries":    {workflow("settings", `{"maxRetries":101}`), []finding{{"settings.maxRetries", 10, "0 to 100"}}},
		"loop bound": {workflow("settings", `{"maxLoopbackIterations":-1}`), []finding{{"settings.maxLoopbackIterations", 10, "at least 1"}}},
		"log level":  {workflow("settings", `{"logLevel":"loud"}`), []finding{{"settings.logLevel", 10, `"loud"`}}},
		"masking":    {workflow("metadata", `{"complianceConfig":{"maskingMode":"blur"}}`), []finding{{"metadata.complianceConfig.maskingMode", 9, `"blur"`}}},

		// Variables.
		"nameless variable": {workflow("variables", list(`{"name":"","type":"string"}`)), []finding{{"variables[0].name", 9, "empty"}}},
		"variable twice": {workflow("variables", list(`{"name":"v","type":"string"}`, `{"name":"v","type":"number"}`)),
			[]finding{{"variables[1].name", 10, "declared twice"}}},
		"variable type": {workflow("variables", list(`{"name":"v","type":"date"}`)), []finding{{"variables[0].type", 9, `"date"`}}},
		"variable default": {workflow("variables", list(`{"name":"v","type":"number","defaultValue":"1"}`)),
			[]finding{{"variables[0].defaultValue", 9, "not of type number"}}},

		// Channels.
		"reducer":        {workflow("channels", "{\n"+`"c":{"reducer":"sum"}}`), []finding{{"channels.c.reducer", 12, `"sum" is not replace`}}},
		"vendor reducer": {workflow("channels", `{"c":{"reducer":"vendor.acme"}}`), []finding{{"channels.c.reducer", 11, "vendor.<org>.<name>"}}},
		"no reducer":     {workflow("channels", `{"c":{}}`), []finding{{"channels.c.reducer", 11, "is not replace"}}},
		"ttl":            {workflow("channels", `{"c":{"reducer":"append","ttlMs":31536000001}}`), []finding{{"channels.c", 11, "ttlMs"}}},
		"max size":       {workflow("channels", `{"c":{"reducer":"append","maxSize":-1}}`), []finding{{"channels.c", 11, "maxSize"}}},
		"max size 0":     {workflow("channels", `{"c":{"reducer":"append","maxSize":0}}`), []finding{{"channels.c.maxSize", 11, ""}}},
		"channel schema": {workflow("channels", `{"c":{"reducer":"replace","schema":{"type":7}}}`), []finding{{"channels.c.schema", 11, ""}}},
		"channel access": {workflow("channels", `{"c":{"reducer":"replace","access":"secret"}}`), []finding{{"channels.c.access", 11, "public"}}},
		"dotted channel": {workflow("channels", "{\n\"a\":{\"reducer\":\"append\"},\n\"a.b\":{\n\"reducer\":\"sum\"}}"),
			[]finding{{"channels.a.b.reducer", 14, `"sum"`}}},
		"channel and variable": {workflow("channels", `{"c":{"reducer":"append"}}`, "variables", `[{"name":"c","type":"array"}]`),
			[]finding{{"channels.c", 11, "variable has the same name"}}},

		// Triggers.
		"trigger id":    {workflow("triggers", list(`{"id":"t","type":"manual"}`, `{"id":"t","type":"manual"}`)), []finding{{"triggers[1].id", 9, "unique"}}},
		"trigger type":  {workflow("triggers", list(`{"id":"t","type":"moon"}`)), []finding{{"triggers[0].type", 8, `"moon"`}}},
		"trigger empty": {workflow("triggers", list(`{"id":"","type":"manual"}`)), []finding{{"triggers[0].id", 8, "present"}}},

		// Nodes.
		"node id":        {workflow("nodes", list(task("a b"))), []finding{{"nodes[0].id", 6, "not a node id"}}},
		"node twice":     {workflow("nodes", list(task("a"), task("b"), task("a"))), []finding{{"nodes[2].id", 8, "defined twice"}}},
		"type id":        {workflow("nodes", list(nodeOf("a", "task", "{}", "{}"))), []finding{{"nodes[0].typeId", 6, "not a type id"}}},
		"unknown type":   {workflow("nodes", list(task("a"), nodeOf("b", "acme.fly", "{}", "{}"))), []finding{{"nodes[1].typeId", 7, `unknown node type "acme.fly"`}}},
		"reserved type":  {workflow("nodes", list(nodeOf("a", "core.a2a.invoke", "{}", "{}"))), []finding{{"nodes[0].typeId", 6, "needs the capability a2a"}}},
		"config list":    {workflow("nodes", list(nodeOf("a", "test.task", "[]", "{}"))), []finding{{"nodes[0].config", 6, "must be an object"}}},
		"config member":  {workflow("nodes", list(nodeOf("a", "test.sum", "{\n\"of\":\n[1,\n\"2\"]}", "{}"))), []finding{{"nodes[0].config.of[1]", 9, "number"}}},
		"config missing": {workflow("nodes", list(nodeOf("a", "test.sum", "{}", "{}"))), []finding{{"nodes[0].config", 6, "of"}}},
		"config checked": {workflow("nodes", list(nodeOf("a", "test.when", "{}", "{}"))), []finding{{"nodes[0].config", 6, "when is missing"}}},
		"config expression": {workflow("nodes", list(nodeOf("a", "test.when", `{"when":"value > limit"}`, "{}"))),
			[]finding{{"nodes[0].config", 6, "limit"}}},
		"type's own schema": {workflow("nodes", list(nodeOf("a", "test.odd", "{}", "{}"))), []finding{{"nodes[0].config", 6, "own schema"}}},
		"compensated": {oneNode(`"irreversibleEffect":true`, `"compensation":{"nodeTypeId":"test.task"}`),
			[]finding{{"nodes[0]", 6, "exclude each other"}}},
		"output role":   {oneNode(`"outputRole":"main"`), []finding{{"nodes[0].outputRole", 6, `"main"`}}},
		"node retries":  {oneNode(`"settings":{"maxRetries":-1}`), []finding{{"nodes[0].settings.maxRetries", 6, "0 to 100"}}},
		"retry delay":   {oneNode(`"settings":{"retryDelayMs":-1}`), []finding{{"nodes[0].settings", 6, "retryDelayMs"}}},
		"retry backoff": {oneNode(`"settings":{"retryBackoff":101}`), []finding{{"nodes[0].settings", 6, "retryBackoff"}}},
		"node timeout":  {oneNode(`"settings":{"timeoutMs":-5}`), []finding{{"nodes[0].settings", 6, "timeoutMs"}}},
		"settings type": {oneNode("\n" + `"settings":{"timeoutMs":"soon"}`), []finding{{"nodes[0].settings", 7, "timeoutMs"}}},
		"settings list": {oneNode(`"settings":[]`), []finding{{"nodes[0].settings", 6, ""}}},
		"position":      {workflow("nodes", list(strings.Replace(task("a"), `"x":0`, `"x":"left"`, 1))), []finding{{"nodes[0].position.x", 6, "number"}}},

		// Inputs.
		"binding type":      {inputs(`{"p":{"type":"magic"}}`), []finding{{"nodes[1].inputs.p.type", 8, `"magic"`}}},
		"binding typeless":  {inputs(`{"p":{"value":1}}`), []finding{{"nodes[1].inputs.p.type", 8, "is not static"}}},
		"static":            {inputs(`{"p":{"type":"static"}}`), []finding{{"nodes[1].inputs.p", 8, "needs a value"}}},
		"static and more":   {inputs(`{"p":{"type":"static","value":1,"nodeId":"a"}}`), []finding{{"nodes[1].inputs.p.nodeId", 8, "does not belong"}}},
		"optional static":   {inputs(`{"p":{"type":"static","value":1,"optional":true}}`), []finding{{"nodes[1].inputs.p.optional", 8, "does not belong"}}},
		"expression":        {inputs(`{"p":{"type":"expression","expression":"1 +"}}`), []finding{{"nodes[1].inputs.p.expression", 8, "column"}}},
		"expression's name": {inputs(`{"p":{"type":"expression","expression":"price * 2"}}`), []finding{{"nodes[1].inputs.p.expression", 8, "price"}}},
		"connection":        {inputs(`{"p":{"type":"connection","nodeId":"z","outputKey":"x"}}`), []finding{{"nodes[1].inputs.p.nodeId", 8, `no node "z"`}}},
		"own output":        {inputs(`{"p":{"type":"connection","nodeId":"b","outputKey":"x"}}`), []finding{{"nodes[1].inputs.p.nodeId", 8, "its own output"}}},
		"no output key":     {inputs(`{"p":{"type":"connection","nodeId":"a"}}`), []finding{{"nodes[1].inputs.p.outputKey", 8, "empty"}}},
		"variable nameless": {inputs(`{"p":{"type":"variable"}}`), []finding{{"nodes[1].inputs.p.variableName", 8, "empty"}}},
		"dotted port":       {inputs("{\n\"p[0].q\":{\n\"type\":\"magic\"}}"), []finding{{"nodes[1].inputs.p[0].q.type", 10, `"magic"`}}},
		"output of later": {workflow("nodes", list(nodeOf("a", "test.task", "{}", `{"p":{"type":"connection","nodeId":"b","outputKey":"x"}}`), task("b")),
			"edges", list(edge("e", "a", "b"))), []finding{{"nodes[0].inputs.p.nodeId", 6, "only after this one"}}},
		"outputs of each other": {workflow("nodes", list(nodeOf("a", "test.task", "{}", `{"p":{"type":"connection","nodeId":"b","outputKey":"x"}}`),
			nodeOf("b", "test.task", "{}", `{"p":{"type":"connection","nodeId":"a","outputKey":"x"}}`))),
			[]finding{{"nodes[1].inputs.p.nodeId", 7, "only after this one"}}},

		// Edges.
		"edge twice":   {workflow("nodes", two, "edges", list(edge("e", "a", "b"), edge("e", "a", "b"))), []finding{{"edges[1].id", 11, "unique"}}},
		"edge id":      {workflow("nodes", two, "edges", list(edge("", "a", "b"))), []finding{{"edges[0].id", 10, "present"}}},
		"from nowhere": {workflow("nodes", two, "edges", list(edge("e", "x", "b"))), []finding{{"edges[0].sourceNodeId", 10, `no node "x"`}}},
		"to nowhere":   {workflow("nodes", two, "edges", list(edge("d", "a", "b"), edge("e", "a", "x"))), []finding{{"edges[1].targetNodeId", 11, `no node "x"`}}},
		"trigger rule": {workflow("nodes", two, "edges", list(edge("e", "a", "b", `"triggerRule":"some"`))), []finding{{"edges[0].triggerRule", 10, `"some"`}}},
		"condition": {workflow("nodes", two, "edges", list(edge("e", "a", "b", `"condition":{"type":"expression","expression":"outputs.x >"}`))),
			[]finding{{"edges[0].condition", 10, "column"}}},
		"condition type": {workflow("nodes", two, "edges", list(edge("e", "a", "b", `"condition":{"type":"greater","left":"x","right":1}`))),
			[]finding{{"edges[0].condition", 10, `"greater"`}}},
		"condition left": {workflow("nodes", two, "edges", list(edge("e", "a", "b", `"condition":{"type":"equals","right":1}`))),
			[]finding{{"edges[0].condition", 10, `"left"`}}},
		"condition right": {workflow("nodes", two, "edges", list(edge("e", "a", "b", `"condition":{"type":"equals","left":"x"}`))),
			[]finding{{"edges[0].condition", 10, `"right"`}}},
		"condition regex": {workflow("nodes", two, "edges", list(edge("e", "a", "b", `"condition":{"type":"regex","left":"x","right":"("}`))),
			[]finding{{"edges[0].condition", 10, ""}}},

		// Loops.
		"cycle without a bound": {workflow("nodes", two, "edges", list(edge("e", "a", "b"), edge("f", "b", "a"))),
			[]finding{{"settings.maxLoopbackIterations", 16, `nodes "a" and "b" form a cycle`}}},
		"own cycle": {workflow("edges", list(edge("e", "a", "a"))), []finding{{"settings.maxLoopbackIterations", 12, "form a cycle"}}},

		// All that is wrong is listed, in the order of the text.
		"many": {workflow("id", `"W"`, "nodes", list(task("a"), nodeOf("a", "acme.fly", "{}", `{"p":{"type":"magic"}}`)), "edges", list(edge("e", "x", "y"))),
			[]finding{{"id", 2, ""}, {"nodes[1].id", 7, ""}, {"nodes[1].typeId", 7, ""}, {"nodes[1].inputs.p.type", 7, ""},
				{"edges[0].sourceNodeId", 10, ""}, {"edges[0].targetNodeId", 10, ""}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := flow.Check([]byte(c.text), catalog())
			is := issuesOf(t, err)
			if len(is) != len(c.want) {
				t.Fatalf("got\n%v\nwant %d issues", is, len(c.want))
			}
			for i, want := range c.want {
				if got := is[i]; got.Field != want.field || got.Line != want.line || got.Message == "" || !strings.Contains(got.Message, want.says) {
					t.Errorf("got  %v\nwant line %d: %s: …%s…\n%s", got, want.line, want.field, want.says, numbered(c.text))
				}
			}
		})
	}
}

func numbered(text string) string {
	var b strings.Builder
	for i, l := range strings.Split(text, "\n") {
		fmt.Fprintf(&b, "%3d %s\n", i+1, l)
	}
	return b.String()
}

// What the host lacks is told apart from what is wrong.
func TestIssuesNameTheCapability(t *testing.T) {
	for text, want := range map[string]string{
		undoing(`{"triggers":["node-failure"]}`, `{"nodeTypeId":"core.dispatch"}`): "agents.dispatch",
		undoing(`{"triggers":["node-failure"]}`, `{"nodeTypeId":"test.needs"}`):    "aiProviders",
		workflow("nodes", list(nodeOf("a", "core.dispatch", "{}", "{}"))):          "agents.dispatch",
		workflow("nodes", list(nodeOf("a", "core.ai.callPrompt", "{}", "{}"))):     "aiProviders",
		workflow("nodes", list(nodeOf("a", "acme.fly", "{}", "{}"))):               "",
	} {
		_, err := flow.Check([]byte(text), catalog())
		if is := issuesOf(t, err); is[0].Capability != want {
			t.Errorf("%+v, want capability %q", is[0], want)
		}
	}
}

func TestIssuesRead(t *testing.T) {
	is := flow.Issues{{Field: "id", Line: 2, Message: "is odd"}, {Message: "all of it"}}
	if got := is.Error(); got != "line 2: id: is odd\nall of it" {
		t.Errorf("%q", got)
	}
}

// A definition can be wrong in very many places. Finding them and their lines
// must stay linear; with a walk through the text for each this takes minutes.
func TestVeryManyIssues(t *testing.T) {
	var nodes, edges []string
	for i := range flow.MaxNodes {
		nodes = append(nodes, task(fmt.Sprint("n", i)))
	}
	for i := range flow.MaxEdges {
		edges = append(edges, edge(fmt.Sprint("e", i), "x", "y"))
	}
	_, err := flow.Check([]byte(workflow("nodes", list(nodes...), "edges", list(edges...))), catalog())
	is := issuesOf(t, err)
	if last := is[len(is)-1]; len(is) != 2*flow.MaxEdges || last.Line != 5+flow.MaxNodes+2+flow.MaxEdges {
		t.Errorf("%d issues, the last %v", len(is), last)
	}
}

func TestTooManyOfEverything(t *testing.T) {
	var nodes, edges, back []string
	for i := range 2*flow.MaxLoops + 2 {
		nodes = append(nodes, task(fmt.Sprintf("n%04d", i)))
		if i > 0 {
			edges = append(edges, edge(fmt.Sprintf("e%04d", i), fmt.Sprintf("n%04d", i-1), fmt.Sprintf("n%04d", i)))
		}
	}
	last := len(nodes) - 1
	for i := range flow.MaxLoops + 1 {
		back = append(back, edge(fmt.Sprintf("f%04d", i), fmt.Sprintf("n%04d", last-i), fmt.Sprintf("n%04d", i)))
	}
	bounded := `{"maxLoopbackIterations":1}`
	w := load(t, workflow("nodes", list(nodes...), "edges", list(slices.Concat(edges, back[:flow.MaxLoops])...), "settings", bounded))
	if len(w.Loops) != flow.MaxLoops {
		t.Errorf("%d loops", len(w.Loops))
	}
	_, err := flow.Check([]byte(workflow("nodes", list(nodes...), "edges", list(slices.Concat(edges, back)...), "settings", bounded)), catalog())
	if is := issuesOf(t, err); len(is) != 1 || is[0].Field != "edges" || !strings.Contains(is[0].Message, "loops") {
		t.Errorf("got %v", is)
	}
	var ports []string
	for i := range flow.MaxBindings + 1 {
		ports = append(ports, fmt.Sprintf(`"p%d":{"type":"static","value":1}`, i))
	}
	_, err = flow.Check([]byte(inputs("{"+strings.Join(ports, ",")+"}")), catalog())
	if is := issuesOf(t, err); len(is) != 1 || !strings.Contains(is[0].Message, "input bindings") {
		t.Errorf("got %v", is)
	}
}
