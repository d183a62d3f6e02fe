package expr

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
)

// pattern is a compiled regular expression (RE2: linear in the subject) and the
// number of instructions it may take for each byte of it.
type pattern struct {
	re   *regexp.Regexp
	size int
}

// compilePattern measures a pattern before it compiles it: (x{1000}){1000} is
// short, and its program is not.
func compilePattern(src string) (*pattern, error) {
	if len(src) > MaxSource {
		return nil, fmt.Errorf("the pattern is longer than %d bytes", MaxSource)
	}
	tree, err := syntax.Parse(src, syntax.Perl)
	if err != nil {
		var bad *syntax.Error
		if errors.As(err, &bad) {
			return nil, fmt.Errorf("the pattern is invalid: %s: %s", bad.Code, short(bad.Expr))
		}
		return nil, errors.New("the pattern is invalid")
	}
	size := programSize(tree)
	if size > maxPatternProgram {
		return nil, errors.New("the pattern is too complex")
	}
	re, err := regexp.Compile(src)
	if err != nil {
		return nil, errors.New("the pattern is invalid")
	}
	return &pattern{re, size}, nil
}

// programSize bounds the instructions of a parsed pattern without expanding it.
func programSize(tree *syntax.Regexp) int {
	n := 1
	for _, sub := range tree.Sub {
		n += programSize(sub) + 1
	}
	switch tree.Op {
	case syntax.OpLiteral:
		n += len(tree.Rune)
	case syntax.OpRepeat:
		n *= max(tree.Min, tree.Max, 1)
	}
	return min(n, maxPatternProgram+1)
}

// work bounds the steps of matching a subject of n bytes.
func (p *pattern) work(n int) int { return min(n, most) * p.size }

// matches is CEL's function for patterns.
const matches = "matches"

// match is a call of matches whose pattern, when it is a literal, was compiled
// with the program.
type match struct {
	interpreter.InterpretableCall
	args     []interpreter.InterpretableV2
	constant *pattern
}

func newMatch(node interpreter.InterpretableCall) (interpreter.InterpretableV2, error) {
	args := node.Args()
	if len(args) != 2 {
		return node, nil
	}
	m := &match{InterpretableCall: node, args: args}
	if lit, ok := args[1].(interpreter.InterpretableConst); ok {
		if src, ok := lit.Value().(types.String); ok {
			var err error
			if m.constant, err = compilePattern(string(src)); err != nil {
				return nil, &planError{node.ID(), err.Error()}
			}
		}
	}
	return m, nil
}

// Exec implements interpreter.InterpretableV2.
func (m *match) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	subject := m.args[0].Exec(frame)
	if types.IsUnknownOrError(subject) {
		return subject
	}
	s, ok := subject.(types.String)
	if !ok {
		return types.NewErrWithNodeID(m.ID(), "no such overload: %s.matches()", subject.Type().TypeName())
	}
	p := m.constant
	if p == nil {
		src := m.args[1].Exec(frame)
		if types.IsUnknownOrError(src) {
			return src
		}
		str, ok := src.(types.String)
		if !ok {
			return types.NewErrWithNodeID(m.ID(), "no such overload: string.matches(%s)", src.Type().TypeName())
		}
		charge(frame, m.ID(), 100*len(str)) // compiling
		var err error
		if p, err = compilePattern(string(str)); err != nil {
			return types.NewErrWithNodeID(m.ID(), "%v", err)
		}
	}
	charge(frame, m.ID(), p.work(len(s))/(maxPatternWork/maxCallWork))
	return types.Bool(p.re.MatchString(string(s)))
}

// Eval implements interpreter.Interpretable.
func (m *match) Eval(vars interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(vars, m.Exec)
}

// planError is a failure to plan the node with this id.
type planError struct {
	node    int64
	message string
}

func (e *planError) Error() string { return e.message }
