package expr

import (
	"slices"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
)

// References lists the paths of names by which the expression reads values, as
// far as its text alone says: nodes.a.outputs["x"] is {nodes, a, outputs, x}.
// Beginnings of a path may be listed as well. What is computed, and every path of
// an expression that gives one of the names another meaning, is left out.
func (p *Program) References() [][]string { return p.refs }

// References is that of a condition's expression; nil for any other condition.
func (t *Test) References() [][]string {
	if t.program == nil {
		return nil
	}
	return t.program.refs
}

// names is the part of a path that consists of names.
func (p route) names() []string {
	var out []string
	for _, s := range p {
		if s.name == "" || s.index >= 0 && !s.dot {
			break
		}
		out = append(out, s.name)
	}
	return out
}

// references collects the paths in a tree.
func references(root ast.Expr, extra []string) [][]string {
	var out [][]string
	own := slices.Clone(extra) // names that are not the run's
	ast.PostOrderVisit(root, ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.ComprehensionKind:
			c := e.AsComprehension()
			own = append(own, c.IterVar(), c.IterVar2(), c.AccuVar())
		case ast.SelectKind, ast.CallKind:
			if path := namesOf(e); len(path) > 1 {
				out = append(out, path)
			}
		}
	}))
	return slices.DeleteFunc(out, func(path []string) bool { return slices.Contains(own, path[0]) })
}

// namesOf spells a chain of selections from a name; nil for anything else.
func namesOf(e ast.Expr) []string {
	switch e.Kind() {
	case ast.IdentKind:
		return []string{unspell(e.AsIdent())}
	case ast.SelectKind:
		if path := namesOf(e.AsSelect().Operand()); path != nil {
			return append(path, e.AsSelect().FieldName())
		}
	case ast.CallKind:
		c := e.AsCall()
		switch c.FunctionName() {
		case operators.Index, operators.OptIndex, operators.OptSelect:
		default:
			return nil
		}
		if len(c.Args()) != 2 || c.Args()[1].Kind() != ast.LiteralKind {
			return nil
		}
		name, ok := c.Args()[1].AsLiteral().Value().(string)
		if path := namesOf(c.Args()[0]); ok && path != nil {
			return append(path, name)
		}
	}
	return nil
}
