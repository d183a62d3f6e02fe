package expr

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/checker"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
)

// Compile parses and checks a source. It may use the standard names (see Names)
// and the extra ones given, which must be identifiers. A source that is a path
// is not given to CEL at all.
//
// The error is an *Error whose Message is one line and whose Column says where.
func Compile(source string, extra ...string) (p *Program, err error) {
	defer rescue(source, &err)
	if err := checkSource(source, extra); err != nil {
		return nil, err
	}
	p = &Program{source: source, extra: slices.Clone(extra)}
	if route, ok := shortWay(source, extra); ok {
		p.route = route
		if !slices.Contains(extra, route[0].name) {
			p.refs = [][]string{route.names()}
		}
		return p, nil
	}
	if p.program, p.refs, err = plan(source, extra); err != nil {
		return nil, err
	}
	return p, nil
}

func checkSource(source string, extra []string) error {
	switch {
	case len(source) > MaxSource:
		return failf("", "the expression is longer than %d bytes", MaxSource)
	case !utf8.ValidString(source):
		return failf("", "the expression is not valid UTF-8")
	case strings.TrimSpace(source) == "":
		return failf(source, "the expression is empty")
	}
	for _, name := range extra {
		if !identifier(name) || celWords[name] {
			return failf(source, "%q cannot be the name of a value", short(name))
		}
	}
	return nil
}

// celWords cannot be names in CEL. "loop" can, by way of respell.
var celWords = map[string]bool{
	"as": true, "break": true, "const": true, "continue": true, "else": true, "false": true,
	"for": true, "function": true, "if": true, "import": true, "in": true, "let": true,
	"package": true, "namespace": true, "null": true, "return": true, "true": true,
	"var": true, "void": true, "while": true, loopAlias: true,
}

func identifier(s string) bool {
	return s != "" && wordLength(s) == len(s) && (s[0] < '0' || s[0] > '9')
}

// shortWay parses a source that is only a path from a known name, as CEL would
// spell it.
func shortWay(source string, extra []string) (route, bool) {
	p, ok := parsePath(strings.TrimSpace(source))
	if !ok || len(p) == 0 || !p[0].dot || !known(p[0].name, extra) {
		return nil, false
	}
	for _, s := range p {
		if s.dot && !identifier(s.name) {
			return nil, false
		}
	}
	return p, true
}

func plan(source string, extra []string) (cel.Program, [][]string, error) {
	e, err := theEngine()
	if err != nil {
		return nil, nil, failf(source, "internal error: %v", err)
	}
	tree, info, err := e.parse(source)
	if err != nil {
		return nil, nil, err
	}
	check, err := e.checkerFor(extra)
	if err != nil {
		return nil, nil, failf(source, "internal error: %v", err)
	}
	checked, errs := checker.Check(tree, info, check)
	if err := firstError(source, errs); err != nil {
		return nil, nil, err
	}
	shape := survey(checked.Expr())
	if shape.message != 0 {
		return nil, nil, errorAt(source, checked.SourceInfo(), shape.message, "messages cannot be built here; use a map")
	}
	t := tariff{loops: shape.loops}
	program, err := e.env.PlanProgram(checked,
		cel.CustomDecoratorV2(e.guard(t)), cel.CostTracking(t), cel.CostLimit(MaxCost))
	if err != nil {
		var at *planError
		if errors.As(err, &at) {
			return nil, nil, errorAt(source, checked.SourceInfo(), at.node, at.message)
		}
		return nil, nil, failf(source, "%v", err)
	}
	return program, references(checked.Expr(), extra), nil
}

// parse gives the syntax tree of a source, with macros expanded and literals
// loosened.
func (e *engine) parse(source string) (*ast.AST, common.Source, error) {
	spelled, alias := respell(source)
	if alias >= 0 {
		err := failf(source, "undeclared reference to '%s'", loopAlias)
		err.Line = 1 + strings.Count(source[:alias], "\n")
		err.Column = 1 + utf8.RuneCountInString(source[strings.LastIndexByte(source[:alias], '\n')+1:alias])
		return nil, nil, err
	}
	text := common.NewTextSource(spelled)
	tree, errs := e.parser.Parse(text)
	if err := firstError(source, errs); err != nil {
		return nil, nil, err
	}
	loosen(tree)
	return tree, text, nil
}

func firstError(source string, errs *common.Errors) error {
	list := errs.GetErrors()
	if len(list) == 0 {
		return nil
	}
	err := failf(source, "%s", tidy(list[0].Message))
	err.place(list[0].Location)
	return err
}

// tidy takes CEL's vocabulary out of a message of CEL's.
func tidy(message string) string {
	message = strings.ReplaceAll(message, loopAlias, loopName)
	message = strings.TrimPrefix(message, "Syntax error: ")
	return strings.TrimSuffix(message, " (in container '')")
}

func errorAt(source string, info *ast.SourceInfo, node int64, message string) *Error {
	err := failf(source, "%s", message)
	err.place(info.GetStartLocation(node))
	return err
}

func (e *Error) place(at common.Location) {
	if at != nil && at.Line() > 0 {
		e.Line, e.Column = at.Line(), at.Column()+1
	}
}

// shape is what planning needs to know of a tree.
type shape struct {
	loops   bool  // it has a comprehension
	message int64 // the first node that builds a protocol buffer, or 0
}

func survey(root ast.Expr) shape {
	var s shape
	ast.PostOrderVisit(root, ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.ComprehensionKind:
			s.loops = true
		case ast.StructKind:
			if s.message == 0 {
				s.message = e.ID()
			}
		}
	}))
	return s
}
