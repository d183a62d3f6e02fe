package expr

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Condition is the structured condition of an edge, in the shape the wire gives
// it.
//
//	expression           Expression
//	equals, notEquals    Left, Right: any JSON value, compared by structure
//	contains             Left, Right: text in a string, an element of an array,
//	                     or the name of a member of an object
//	regex                Left, Right: a pattern (RE2), as a JSON string
//	truthy, falsy        Left, by JavaScript's rule (see Truthy); no Right
//
// Left is a path (see Path). Its first name is looked for among the outputs of
// the node the edge leaves, then "output" and "outputs" stand for those outputs
// themselves, then among the variables, then among the top-level names.
type Condition struct {
	Type       string
	Left       string
	Right      jsontext.Value // nil when there is none; JSON's null is a value
	Expression string
}

// Test is a compiled Condition. It is immutable and safe for concurrent use.
type Test struct {
	source  string // for errors: the expression, or the path
	program *Program
	left    route
	right   jsontext.Value
	pattern *pattern
	check   func(t *Test, left []byte, found bool) (bool, error)
}

// kinds are the types of a condition that look at a value.
var kinds = map[string]struct {
	right bool // whether Right is required; it is refused otherwise
	check func(t *Test, left []byte, found bool) (bool, error)
}{
	"equals":    {true, (*Test).equals},
	"notEquals": {true, (*Test).notEquals},
	"contains":  {true, (*Test).contains},
	"regex":     {true, (*Test).matches},
	"truthy":    {false, (*Test).truthy},
	"falsy":     {false, (*Test).falsy},
}

// Compile checks a condition when its workflow is registered, so that running it
// can only fail on data. An expression may use the extra names. The error is an
// *Error that names the member at fault.
func (c Condition) Compile(extra ...string) (t *Test, err error) {
	defer rescue(c.Expression+c.Left, &err)
	if c.Type == "expression" {
		if strings.TrimSpace(c.Expression) == "" {
			return nil, failf("", `a condition of type "expression" needs an "expression"`)
		}
		p, err := Compile(c.Expression, extra...)
		if err != nil {
			return nil, err
		}
		return &Test{source: c.Expression, program: p}, nil
	}
	k, ok := kinds[c.Type]
	if !ok {
		return nil, failf("", `%q is not a type of condition`, short(c.Type))
	}
	if c.Left == "" {
		return nil, failf("", `a condition of type %q needs a "left"`, c.Type)
	}
	if k.right && len(trim(c.Right)) == 0 {
		return nil, failf(c.Left, `a condition of type %q needs a "right"`, c.Type)
	}
	if !k.right && len(trim(c.Right)) > 0 && !isNull(c.Right) {
		return nil, failf(c.Left, `a condition of type %q takes no "right"`, c.Type)
	}
	t = &Test{source: c.Left, right: slices.Clone(trim(c.Right)), check: k.check}
	if t.left, ok = parsePath(c.Left); !ok {
		return nil, failf(c.Left, `the "left" of a condition must be a path, and %q is not`, short(c.Left))
	}
	if c.Type == "regex" {
		if err := t.compileRight(); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (t *Test) compileRight() error {
	src, ok := unquote(t.right)
	if !ok {
		return failf(t.source, `the "right" of a condition of type "regex" must be a string`)
	}
	p, err := compilePattern(src)
	if err != nil {
		return failf(t.source, `the "right" of the condition: %v`, err)
	}
	t.pattern = p
	return nil
}

// Eval decides the condition over s, the scope of the run, and the outputs of the
// node that the edge leaves, an object (nil when there are none). In an
// expression "outputs" and "output" are those outputs where s does not say
// otherwise.
//
// A value that is not there is an answer and not an error: it equals only null,
// is falsy, and neither contains nor matches anything. The error is an *Error: an
// expression that failed, or values too large or too deep to compare.
func (t *Test) Eval(s Scope, outputs jsontext.Value) (result bool, err error) {
	defer rescue(t.source, &err)
	if t.program != nil {
		return t.program.Test(withOutputs{s, outputs})
	}
	left, found := t.resolve(s, outputs)
	result, err = t.check(t, left, found)
	if err != nil {
		return false, failf(t.source, "%s: %v", t.left, err)
	}
	return result, nil
}

// resolve looks for the left value in the four places, in order.
func (t *Test) resolve(s Scope, outputs []byte) ([]byte, bool) {
	if v, ok := t.left.in(outputs); ok {
		return v, true
	}
	first, rest := t.left[0], t.left[1:]
	if first.dot && (first.name == "output" || first.name == "outputs") && len(trim(outputs)) > 0 {
		if v, ok := rest.in(outputs); ok {
			return v, true
		}
	}
	if vars, ok := lookup(s, "variables"); ok {
		if v, ok := t.left.in(vars); ok {
			return v, true
		}
	}
	if first.dot {
		if root, ok := lookup(s, first.name); ok {
			return rest.in(root)
		}
	}
	return nil, false
}

// withOutputs is a scope that also knows a finished node's outputs.
type withOutputs struct {
	Scope
	outputs jsontext.Value
}

// Lookup implements Scope.
func (w withOutputs) Lookup(name string) (jsontext.Value, bool) {
	if v, ok := lookup(w.Scope, name); ok {
		return v, true
	}
	switch name {
	case "output": // the port of that name, which is also the default one
		if v, ok := Path(w.outputs, "output"); ok {
			return v, true
		}
		return w.outputs, len(w.outputs) > 0
	case "outputs":
		return w.outputs, len(w.outputs) > 0
	}
	return nil, false
}
