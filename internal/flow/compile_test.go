package flow_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-run/fermata/internal/flow"
	"github.com/go-json-experiment/json/jsontext"
)

// shape writes a compiled graph in words: each link by id, with what it is.
func shape(w *flow.Workflow) string {
	var b strings.Builder
	for _, l := range w.Links {
		fmt.Fprintf(&b, "%s %s>%s", l.ID, w.Steps[l.From].Node.ID, w.Steps[l.To].Node.ID)
		if l.Back {
			fmt.Fprintf(&b, " back of %s", w.Steps[w.Loops[l.Loop].Header].Node.ID)
		}
		for _, n := range l.Exits {
			fmt.Fprintf(&b, " leaves %s", w.Steps[w.Loops[n].Header].Node.ID)
		}
		b.WriteString("\n")
	}
	for _, loop := range w.Loops {
		fmt.Fprintf(&b, "loop %s:", w.Steps[loop.Header].Node.ID)
		for _, s := range loop.Body {
			b.WriteString(" " + w.Steps[s].Node.ID)
		}
		b.WriteString("\n")
	}
	b.WriteString("order:")
	for _, i := range w.Order {
		b.WriteString(" " + w.Steps[i].Node.ID)
	}
	b.WriteString("\nsinks:")
	for _, i := range w.Sinks {
		b.WriteString(" " + w.Steps[i].Node.ID)
	}
	return b.String()
}

func TestCompileGraph(t *testing.T) {
	bounded := `{"maxLoopbackIterations":9}`
	for name, c := range map[string]struct {
		nodes []string
		edges []string
		want  string
	}{
		"no edges keep the order written": {
			[]string{task("b"), task("a")}, nil,
			"order: b a\nsinks: b a",
		},
		"diamond": {
			[]string{task("d"), task("c"), task("b"), task("a")},
			[]string{edge("4", "c", "d"), edge("3", "b", "d"), edge("2", "a", "c"), edge("1", "a", "b")},
			"1 a>b\n2 a>c\n3 b>d\n4 c>d\norder: a b c d\nsinks: d",
		},
		"loop with a way out of its middle": {
			[]string{task("in"), task("x"), task("y"), task("out")},
			[]string{edge("1", "in", "x"), edge("2", "x", "y"), edge("3", "y", "x"), edge("4", "x", "out")},
			"1 in>x\n2 x>y\n3 y>x back of x\n4 x>out leaves x\nloop x: x y\norder: in out x y\nsinks: y out",
		},
		"loop in a loop": {
			[]string{task("a"), task("b"), task("c"), task("d")},
			[]string{edge("1", "a", "b"), edge("2", "b", "b"), edge("3", "b", "c"), edge("4", "c", "a"), edge("5", "c", "d")},
			"1 a>b\n2 b>b back of b\n3 b>c leaves b\n4 c>a back of a\n5 c>d leaves a\nloop b: b\nloop a: a b c\norder: a b c d\nsinks: d",
		},
		"connection as a dependency": {
			[]string{nodeOf("b", "test.task", "{}", `{"p":{"type":"connection","nodeId":"a","outputKey":"x"},"q":{"type":"connection","nodeId":"a","outputKey":"y"}}`), task("a")}, nil,
			"implied:a:b a>b\norder: a b\nsinks: b",
		},
		"connection that an edge covers": {
			[]string{task("a"), task("b"), nodeOf("c", "test.task", "{}", `{"p":{"type":"connection","nodeId":"a","outputKey":"x"}}`)},
			[]string{edge("1", "a", "b"), edge("2", "b", "c")},
			"1 a>b\n2 b>c\norder: a b c\nsinks: c",
		},
		"connection round a loop": {
			[]string{nodeOf("a", "test.task", "{}", `{"p":{"type":"connection","nodeId":"b","outputKey":"x","optional":true}}`), task("b")},
			[]string{edge("1", "a", "b"), edge("2", "b", "a")},
			"1 a>b\n2 b>a back of a\nloop a: a b\norder: a b\nsinks: b",
		},
		"optional connection to what comes later": {
			[]string{nodeOf("a", "test.task", "{}", `{"p":{"type":"connection","nodeId":"b","outputKey":"x","optional":true}}`), task("b")},
			[]string{edge("1", "a", "b")},
			"1 a>b\norder: a b\nsinks: b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := load(t, workflow("nodes", list(c.nodes...), "edges", list(c.edges...), "settings", bounded))
			if got := shape(w); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestCompileStep(t *testing.T) {
	w := load(t, workflow(
		"nodes", list(
			task("a", `"settings":{"maxRetries":0,"retryDelayMs":5,"retryBackoff":1.5,"timeoutMs":7,"colour":"red"}`),
			nodeOf("b", "test.sum", `{"of":[]}`, "{}", `"outputSensitivity":{"parts":true}`),
			nodeOf("c", "test.sum", `{"of":[]}`, "{}", `"outputSensitivity":{"total":false}`)),
		"edges", list(edge("1", "a", "b"), edge("3", "a", "c"), edge("2", "b", "c", `"triggerRule":"all_complete"`)),
		"variables", `[{"name":"v","type":"string"}]`,
		"settings", `{"maxRetries":4}`))
	a, _ := w.Step("a")
	b, _ := w.Step("b")
	c, _ := w.Step("c")
	if _, ok := w.Step("z"); ok {
		t.Error("a step nobody defined")
	}
	if w.Retries(a) != 0 || w.Retries(b) != 4 || a.Settings.RetryDelayMs != 5 || a.Settings.RetryBackoff != 1.5 || a.Settings.TimeoutMs != 7 {
		t.Errorf("settings %+v; retries %d and %d", a.Settings, w.Retries(a), w.Retries(b))
	}
	if a.Rule != flow.AllSuccess || c.Rule != flow.AllComplete { // the edge that states one
		t.Errorf("rules %s and %s", a.Rule, c.Rule)
	}
	if !b.Sensitive("total") || !b.Sensitive("parts") || c.Sensitive("total") || c.HasSensitive() || a.HasSensitive() {
		t.Error("the wrong outputs are sensitive")
	}
	if v, ok := w.Variable("v"); !ok || v.Type != "string" {
		t.Errorf("variable %+v", v)
	}
}

func TestVariableAccepts(t *testing.T) {
	for kind, value := range map[string]string{"string": `"x"`, "number": `1e400`, "boolean": `false`, "object": `{}`, "array": `[]`} {
		for other := range map[string]bool{"string": true, "number": true, "boolean": true, "object": true, "array": true} {
			v := flow.Variable{Name: "v", Type: other}
			if got := v.Accepts(jsontext.Value(value)); got != (kind == other) {
				t.Errorf("%s accepts %s: %v", other, value, got)
			}
			if !v.Accepts(jsontext.Value("null")) {
				t.Errorf("%s must accept null", other)
			}
		}
	}
}

func TestAccess(t *testing.T) {
	for text, want := range map[string]struct{ read, write bool }{
		"":                                   {true, true},
		`"public"`:                           {true, true},
		`"private"`:                          {false, false},
		`{}`:                                 {true, true},
		`{"readers":[]}`:                     {false, true},
		`{"writers":["n1"]}`:                 {true, true},
		`{"writers":["acme.mail.*"]}`:        {true, true},
		`{"readers":["acme.mail.send"]}`:     {true, true},
		`{"readers":["*"],"writers":["n2"]}`: {true, false},
	} {
		a, err := flow.ParseAccess(jsontext.Value(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		read, write := flow.Admits(a.Readers, "n1", "acme.mail.send"), flow.Admits(a.Writers, "n1", "acme.mail.send")
		if read != want.read || write != want.write {
			t.Errorf("%s: read %v, write %v", text, read, write)
		}
	}
	for _, text := range []string{`"secret"`, `1`, `{"owners":[]}`, `{"readers":"all"}`} {
		if a, err := flow.ParseAccess(jsontext.Value(text)); err == nil {
			t.Errorf("%s is taken as %+v", text, a)
		}
	}
}

func TestAbsorbs(t *testing.T) {
	var rules []string
	for _, r := range []string{flow.AllSuccess, flow.AnySuccess, flow.AllComplete, flow.NoneFailed, flow.AnyFailed} {
		if flow.Absorbs(r) {
			rules = append(rules, r)
		}
	}
	if !slices.Equal(rules, []string{flow.AnySuccess, flow.AllComplete, flow.AnyFailed}) {
		t.Errorf("%v", rules)
	}
}
