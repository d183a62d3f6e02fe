package expr

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"github.com/go-json-experiment/json/jsontext"
)

// Program is a compiled expression. It is immutable and safe for concurrent use.
type Program struct {
	source  string
	extra   []string
	route   route       // the short way, when the source is a path
	program cel.Program // otherwise
	refs    [][]string
}

// Source is the text that was compiled.
func (p *Program) Source() string { return p.source }

// Eval computes the expression over s, which may be nil. The result is compact
// JSON, except that values taken whole from s keep the exact bytes they have
// there (and may alias them). Numbers come out exactly as ints and uints, and
// as the shortest double otherwise; bytes as base64, timestamps in RFC 3339,
// durations as CEL spells them ("90s"), an empty optional as null.
//
// The error is an *Error: a member that is absent (Missing names it), operands
// that do not fit, a result JSON cannot express, or an evaluation beyond its
// limits.
func (p *Program) Eval(s Scope) (v jsontext.Value, err error) {
	defer rescue(p.source, &err)
	if p.route != nil {
		return p.follow(s)
	}
	result, err := p.run(s)
	if err != nil {
		return nil, err
	}
	switch v := result.(type) {
	case raw:
		return v.json(), nil
	case types.Bool:
		return word[bool(v)], nil
	}
	out, err := encode(nil, result, 0)
	if err != nil {
		return nil, failf(p.source, "%v", err)
	}
	return out, nil
}

// word saves the commonest results from being written.
var word = map[bool]jsontext.Value{true: jsontext.Value("true"), false: jsontext.Value("false")}

// Test computes an expression whose result must be true or false; any other
// result is an error that names its type. It is not a test of truthiness: a
// condition that forgot its comparison should be noticed.
func (p *Program) Test(s Scope) (result bool, err error) {
	defer rescue(p.source, &err)
	if p.route != nil {
		v, err := p.follow(s)
		if err != nil {
			return false, err
		}
		switch kind(v) {
		case 't', 'f':
			return kind(v) == 't', nil
		}
		return false, failf(p.source, "a condition must be true or false, and %s is %s", p.route, describe(v))
	}
	val, err := p.run(s)
	if err != nil {
		return false, err
	}
	if b, ok := val.(types.Bool); ok {
		return bool(b), nil
	}
	return false, failf(p.source, "a condition must be true or false, and this is a value of type %s",
		val.Type().TypeName())
}

// follow takes the short way.
func (p *Program) follow(s Scope) (jsontext.Value, error) {
	root, ok := lookup(s, p.route[0].name)
	if ok {
		if v, ok := p.route[1:].in(root); ok {
			return v, nil
		}
	} else if len(p.route) == 1 {
		return jsontext.Value("null"), nil
	}
	return nil, p.missing(s, p.route)
}

func (p *Program) run(s Scope) (ref.Val, error) {
	vars := &activation{scope: s, extra: p.extra, meter: newMeter()}
	v, _, err := p.program.Eval(vars)
	if err != nil {
		return nil, p.explain(s, err)
	}
	return v, nil
}
