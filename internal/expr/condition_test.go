package expr

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

const outputs = `{"status":"done","score":4.50,"output":{"approved":true,"tags":["a",{"k":1}]},"empty":"","zero":0,"nul":null,
	"list":[1,2.0,"3",[4],{"a":1,"b":2}],"long":9007199254740993,"name":"Jos\u00e9"}`

func check(t *testing.T, c Condition) (bool, error) {
	t.Helper()
	test, err := c.Compile("mine")
	if err != nil {
		t.Fatalf("Compile(%+v): %v", c, err)
	}
	return test.Eval(scope, jsontext.Value(outputs))
}

func TestCondition(t *testing.T) {
	for _, c := range []struct {
		kind, left, right string
		want              bool
	}{
		{"equals", "status", `"done"`, true},
		{"equals", "status", `"d\u006fne"`, true},
		{"equals", "status", `"Done"`, false},
		{"equals", "score", `4.5`, true},
		{"equals", "score", `45e-1`, true},
		{"equals", "long", `9007199254740992`, false},
		{"equals", "list.1", `2`, true},
		{"equals", "list[4]", `{"b":2.0,"a":1}`, true},
		{"equals", "list[4]", `{"b":2}`, false},
		{"equals", "nul", `null`, true},
		{"equals", "missing", `null`, true},
		{"equals", "missing", `false`, false},
		{"equals", "missing.x[3]", `""`, false},
		{"notEquals", "status", `"done"`, false},
		{"notEquals", "status", `"x"`, true},
		{"notEquals", "missing", `null`, false},
		{"notEquals", "missing", `1`, true},
		{"contains", "status", `"on"`, true},
		{"contains", "status", `""`, true},
		{"contains", "status", `1`, false},
		{"contains", "name", `"\u00e9"`, true},
		{"contains", "list", `2`, true},
		{"contains", "list", `3`, false},
		{"contains", "list", `[4.0]`, true},
		{"contains", "list", `{"b":2,"a":1}`, true},
		{"contains", "output", `"approved"`, true},
		{"contains", "output", `"nope"`, false},
		{"contains", "output", `1`, false},
		{"contains", "score", `4`, false},
		{"contains", "missing", `null`, false},
		{"regex", "status", `"^d.*e$"`, true},
		{"regex", "status", `"^x"`, false},
		{"regex", "name", `"^\\p{L}+$"`, true},
		{"regex", "score", `".*"`, false},
		{"regex", "missing", `".*"`, false},
		{"truthy", "status", ``, true},
		{"truthy", "empty", ``, false},
		{"truthy", "zero", ``, false},
		{"truthy", "missing", ``, false},
		{"truthy", "list", `null`, true},
		{"falsy", "status", ``, false},
		{"falsy", "nul", ``, true},
		{"falsy", "missing", ``, true},
		// where left is looked for
		{"equals", "output.approved", `true`, true},  // among the outputs
		{"equals", "output.status", `"done"`, true},  // output stands for them
		{"equals", "outputs.status", `"done"`, true}, // and so does outputs
		{"equals", "outputs.output.approved", `true`, true},
		{"equals", `["status"]`, `"done"`, true},
		{"equals", "order.n", `10`, true},           // among the variables
		{"equals", "variables.order.n", `10`, true}, // by a top-level name
		{"equals", "loop.index", `3`, true},         // also one the variables hold,
		{"equals", "loop", `"mine"`, true},          // if it leads further there
		{"equals", "mine", `7`, true},
		{"equals", "inputs.a[2]", `3`, true},
	} {
		cond := Condition{Type: c.kind, Left: c.left}
		if c.right != "" {
			cond.Right = jsontext.Value(c.right)
		}
		if got, err := check(t, cond); err != nil || got != c.want {
			t.Errorf("%s %s %s: %v, %v; want %v", c.left, c.kind, c.right, got, err, c.want)
		}
	}
}

func TestExpressionCondition(t *testing.T) {
	for source, want := range map[string]bool{
		`outputs.score > 3`:        true, // scope has outputs of its own
		`outputs.score == 4`:       true,
		`output.approved`:          true, // and no output: the node's
		`mine == 7 && variables.f`: true,
		`"a" in output.tags`:       true,
	} {
		if got, err := check(t, Condition{Type: "expression", Expression: source}); err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", source, got, err, want)
		}
	}
	test, err := Condition{Type: "expression", Expression: `output.status == outputs.status`}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := test.Eval(nil, jsontext.Value(`{"status":1}`)); !ok || err != nil {
		t.Errorf("without a scope: %v, %v", ok, err)
	}
	if _, err := test.Eval(nil, nil); err == nil {
		t.Error("without outputs, output.status was found")
	}
}

func TestConditionOverNothing(t *testing.T) {
	for _, c := range []struct {
		kind, right string
		want        bool
	}{
		{"equals", "null", true}, {"equals", "0", false}, {"notEquals", "0", true}, {"contains", `""`, false},
		{"regex", `""`, false}, {"truthy", "", false}, {"falsy", "", true},
	} {
		for _, left := range []string{"x", "output", "outputs.x", "variables.x"} {
			test, err := Condition{Type: c.kind, Left: left, Right: jsontext.Value(c.right)}.Compile()
			if err != nil {
				t.Fatal(err)
			}
			if got, err := test.Eval(nil, nil); err != nil || got != c.want {
				t.Errorf("%s %s %s over nothing: %v, %v", left, c.kind, c.right, got, err)
			}
		}
	}
}

func TestConditionErrors(t *testing.T) {
	right := jsontext.Value(`"x"`)
	for _, c := range []struct {
		cond Condition
		want string
	}{
		{Condition{}, `"" is not a type of condition`},
		{Condition{Type: "Equals", Left: "a", Right: right}, `"Equals" is not a type of condition`},
		{Condition{Type: "equals", Right: right}, `a condition of type "equals" needs a "left"`},
		{Condition{Type: "equals", Left: "a"}, `a condition of type "equals" needs a "right"`},
		{Condition{Type: "regex", Left: "a"}, `a condition of type "regex" needs a "right"`},
		{Condition{Type: "regex", Left: "a", Right: jsontext.Value(`1`)}, `the "right" of a condition of type "regex" must be a string`},
		{Condition{Type: "regex", Left: "a", Right: jsontext.Value(`"("`)}, `the "right" of the condition: the pattern is invalid: missing closing ): (`},
		{Condition{Type: "regex", Left: "a", Right: jsontext.Value(`"(?:abc){900}"`)}, `the "right" of the condition: the pattern is too complex`},
		{Condition{Type: "regex", Left: "a", Right: jsontext.Value(`"(?=a)"`)}, `the "right" of the condition: the pattern is invalid: invalid or unsupported Perl syntax: (?=`},
		{Condition{Type: "truthy", Left: "a", Right: right}, `a condition of type "truthy" takes no "right"`},
		{Condition{Type: "falsy"}, `a condition of type "falsy" needs a "left"`},
		{Condition{Type: "equals", Left: "a..b", Right: right}, `the "left" of a condition must be a path, and "a..b" is not`},
		{Condition{Type: "expression", Left: "a"}, `a condition of type "expression" needs an "expression"`},
		{Condition{Type: "expression", Expression: "1 +"}, `column 4: mismatched input '<EOF>' expecting expression`},
	} {
		_, err := c.cond.Compile()
		var e *Error
		if !errors.As(err, &e) || err.Error() != c.want {
			t.Errorf("Compile(%+v) = %v\n want %s", c.cond, err, c.want)
		}
	}
}

func TestConditionIsBounded(t *testing.T) {
	long := `{"s":"` + strings.Repeat("a", 1<<20) + `","n":[` + strings.Repeat("[1],", 200_000) + `1]}`
	deep := `{"s":` + strings.Repeat("[", 5000) + strings.Repeat(" ]", 5000) + `}`
	for _, c := range []struct {
		cond    Condition
		outputs string
		want    string
	}{
		{Condition{Type: "regex", Left: "s", Right: jsontext.Value(`"(a{1,300}b)*c"`)}, long, "s: the value is too long for this pattern"},
		{Condition{Type: "equals", Left: "s", Right: jsontext.Value(deep[5:len(deep)-1] + " ")}, strings.ReplaceAll(deep, " ", ""),
			"s: the values are nested too deeply to compare"},
		{Condition{Type: "contains", Left: "n", Right: jsontext.Value("[" + strings.Repeat("2,", 500) + "3]")}, long, "the evaluation is too expensive"},
	} {
		test, err := c.cond.Compile()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := test.Eval(nil, jsontext.Value(c.outputs)); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.cond.Type, err, c.want)
		}
	}
}
