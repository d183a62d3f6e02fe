package expr

import (
	"errors"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/interpreter"
)

// missing says where a path stopped, and why.
func (p *Program) missing(s Scope, r route) *Error {
	err := failf(p.source, "%s", whyMissing(s, r))
	err.Missing = r.String()
	return err
}

func whyMissing(s Scope, r route) string {
	v, ok := lookup(s, r[0].name)
	if !ok {
		return r[0].name + " is absent, so " + r.String() + " is too"
	}
	for i := 1; i < len(r); i++ {
		next, ok := r[i : i+1].in(v)
		if ok {
			v = next
			continue
		}
		parent := r[:i].String()
		switch k := kind(v); {
		case k == '{' && r[i].name != "":
			return parent + " has no member " + `"` + r[i].name + `"`
		case k == '[' && r[i].index >= 0:
			return parent + " has no element " + r[i:i+1].String()
		}
		return parent + " is " + describe(v) + ", so " + r[:i+1].String() + " is absent"
	}
	return r.String() + " is not valid JSON"
}

// noun names the child that a path of one step leads to.
func (p route) noun() string {
	if p[0].name == "" {
		return "element " + p.String()
	}
	return "member " + strconv.Quote(p[0].name)
}

// describe names the type of a JSON value for a message.
func describe(v []byte) string {
	switch kind(v) {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	case 0:
		return "nothing"
	}
	return "a number"
}

// explain turns an error of CEL's evaluation into one that says where and what.
// Programs keep no syntax tree; the source is parsed again, because a failure is
// rare and a program is not.
func (p *Program) explain(s Scope, err error) (out *Error) {
	var cancelled interpreter.EvalCancelledError
	if errors.As(err, &cancelled) {
		return failf(p.source, "the evaluation is too expensive (its limit is a cost of %d)", MaxCost)
	}
	out = failf(p.source, "%s", tidy(err.Error()))
	plain := out.Message
	defer func() {
		if out.Message == plain {
			out.Message = discreet(plain)
		}
	}()
	var at *types.Err
	if !errors.As(err, &at) {
		return out
	}
	e, engineErr := theEngine()
	if engineErr != nil {
		return out
	}
	tree, _, parseErr := e.parse(p.source)
	if parseErr != nil {
		return out
	}
	node := find(tree.Expr(), at.NodeID())
	if node == nil {
		return out
	}
	switch {
	case absence(out.Message):
		out = p.absent(s, node, out)
	case out.Message == "no such overload" && node.Kind() == ast.CallKind:
		out.Message += ": " + strings.Trim(node.AsCall().FunctionName(), "@_")
	}
	out.place(tree.SourceInfo().GetStartLocation(node.ID()))
	return out
}

// discreet leaves out of a message of CEL's what it quotes of the data: the data
// may be secret, and the message is shown to everybody.
func discreet(message string) string {
	cut := "\"'`"
	if absence(message) || strings.Contains(message, "pattern") || strings.Contains(message, "regexp") {
		cut += ":"
	}
	if at := strings.IndexAny(message, cut); at > 0 {
		message = strings.TrimRight(message[:at], " ")
	}
	return message
}

func absence(message string) bool {
	return strings.HasPrefix(message, "no such key") || strings.HasPrefix(message, "index out of bounds")
}

// absent says which part of the path that ends at node was missing. Of a path
// from a top-level name it can also say what stands there instead.
func (p *Program) absent(s Scope, node ast.Expr, plain *Error) *Error {
	r, ok := chain(node)
	if !ok {
		return plain
	}
	if known(r[0].name, p.extra) && len(r) > 1 {
		if _, found := p.lookupRoute(s, r); !found {
			return p.missing(s, r)
		}
	}
	plain.Missing = r.String()
	_, key, _ := strings.Cut(plain.Message, ": ")
	for i := len(r) - 1; i > 0; i-- {
		if r[i].name == key || r[i].name == "" && strconv.Itoa(r[i].index) == key {
			plain.Message = r[:i].String() + " has no " + r[i:i+1].noun()
			break
		}
	}
	return plain
}

func (p *Program) lookupRoute(s Scope, r route) ([]byte, bool) {
	root, ok := lookup(s, r[0].name)
	if !ok {
		return nil, false
	}
	return r[1:].in(root)
}

// chain reads a node as a path of members whose names are literal.
func chain(node ast.Expr) (route, bool) {
	switch node.Kind() {
	case ast.IdentKind:
		return route{{name: unspell(node.AsIdent()), index: -1, dot: true}}, true
	case ast.SelectKind:
		sel := node.AsSelect()
		r, ok := chain(sel.Operand())
		return append(r, step{name: sel.FieldName(), index: -1, dot: true}), ok
	case ast.CallKind:
		call := node.AsCall()
		if call.FunctionName() != operators.Index || len(call.Args()) != 2 ||
			call.Args()[1].Kind() != ast.LiteralKind {
			return nil, false
		}
		r, ok := chain(call.Args()[0])
		switch key := call.Args()[1].AsLiteral().(type) {
		case types.String:
			return append(r, step{name: string(key), index: -1}), ok
		case types.Int:
			return append(r, step{index: clamp(key)}), ok
		}
	}
	return nil, false
}

func find(root ast.Expr, id int64) (node ast.Expr) {
	ast.PostOrderVisit(root, ast.NewExprVisitor(func(e ast.Expr) {
		if e.ID() == id {
			node = e
		}
	}))
	return node
}
