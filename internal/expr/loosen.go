package expr

import (
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
)

// loosen hides from the checker what the elements of list and map literals are,
// by putting each that is more than a name or a constant into dyn(…).
//
// JSON is heterogeneous, so such types promise authors little; and CEL's checker
// spells a type out every time it compares it, which makes a source of nested
// lists, within all other limits, take seconds to compile.
func loosen(tree *ast.AST) {
	l := loosener{tree: tree, factory: ast.NewExprFactory(), next: ast.MaxID(tree)}
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.ListKind:
			for _, element := range e.AsList().Elements() {
				l.add(element)
			}
		case ast.MapKind:
			for _, entry := range e.AsMap().Entries() {
				l.add(entry.AsMapEntry().Value())
			}
		case ast.CallKind:
			if f := e.AsCall().FunctionName(); f == "of" || f == "ofNonZeroValue" { // optional.of
				for _, arg := range e.AsCall().Args() {
					l.add(arg)
				}
			}
		}
	}))
	for _, e := range l.found {
		l.wrap(e)
	}
}

type loosener struct {
	tree    *ast.AST
	factory ast.ExprFactory
	next    int64
	found   []ast.Expr
}

// plainCalls give a scalar, whose type cannot grow.
var plainCalls = map[string]bool{
	operators.Equals: true, operators.NotEquals: true, operators.LogicalAnd: true,
	operators.LogicalOr: true, operators.LogicalNot: true, operators.Less: true,
	operators.LessEquals: true, operators.Greater: true, operators.GreaterEquals: true,
	operators.Subtract: true, operators.Multiply: true, operators.Divide: true,
	operators.Modulo: true, operators.Negate: true, operators.In: true,
	"string": true, "int": true, "double": true, "size": true,
}

func (l *loosener) add(e ast.Expr) {
	switch e.Kind() {
	case ast.ListKind, ast.MapKind, ast.ComprehensionKind:
		l.found = append(l.found, e)
	case ast.CallKind:
		if !plainCalls[e.AsCall().FunctionName()] {
			l.found = append(l.found, e)
		}
	}
}

// wrap turns e, in place, into dyn(e). The ids that it gives are the same every
// time a source is parsed, which explain relies on.
func (l *loosener) wrap(e ast.Expr) {
	l.next++
	inner := l.factory.NewUnspecifiedExpr(l.next)
	inner.SetKindCase(e)
	if at, ok := l.tree.SourceInfo().GetOffsetRange(e.ID()); ok {
		l.tree.SourceInfo().SetOffsetRange(l.next, at)
	}
	e.SetKindCase(l.factory.NewCall(e.ID(), "dyn", inner))
}
