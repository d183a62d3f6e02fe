package expr

import (
	"math/big"

	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// JSON does not tell 10 from 10.0, so whether a member arrives as an int or as
// a double is an accident of the data. CEL compares across the two but refuses to
// add them; operator lets both operands of + - * / % meet as one type first.

// arithmetic are the operators that mix numbers, with what they do on integers
// of any size.
var arithmetic = map[string]func(z, x, y *big.Int) *big.Int{
	operators.Add:      (*big.Int).Add,
	operators.Subtract: (*big.Int).Sub,
	operators.Multiply: (*big.Int).Mul,
	operators.Divide:   (*big.Int).Quo,
	operators.Modulo:   (*big.Int).Rem,
}

// binary are the operators that operator takes over: arithmetic, and ordering
// for the sake of its messages.
var binary = map[string]bool{
	operators.Add: true, operators.Subtract: true, operators.Multiply: true,
	operators.Divide: true, operators.Modulo: true,
	operators.Less: true, operators.LessEquals: true,
	operators.Greater: true, operators.GreaterEquals: true,
}

// operator is a binary operator of which both operands are evaluated.
type operator struct {
	interpreter.InterpretableCall
	lhs, rhs interpreter.InterpretableV2
	impl     call
}

func newOperator(node interpreter.InterpretableCall, impl call) *operator {
	args := node.Args()
	return &operator{node, args[0], args[1], impl}
}

// Exec implements interpreter.InterpretableV2.
func (o *operator) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	x := o.lhs.Exec(frame)
	if types.IsUnknownOrError(x) {
		return x
	}
	y := o.rhs.Exec(frame)
	if types.IsUnknownOrError(y) {
		return y
	}
	if list, ok := o.concat(frame, x, y); ok {
		return list
	}
	result := label(o.ID(), o.apply(x, y))
	if t := frame.CostTracker(); t != nil {
		t.EvalBinary(frame, o.ID(), o, x, y, result)
	}
	return result
}

// Eval implements interpreter.Interpretable.
func (o *operator) Eval(vars interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(vars, o.Exec)
}

// apply computes the operator. Operands of one type, and those that are not
// numbers, go to CEL as they are. With a double in play the other operand
// becomes a double, as in every language with one number type; an int and a uint
// are computed exactly and give an int when it fits, or else a uint.
func (o *operator) apply(x, y ref.Val) ref.Val {
	exact := arithmetic[o.Function()]
	if exact != nil && x.Type() != y.Type() {
		switch xInt, yInt := integral(x), integral(y); {
		case xInt && yInt:
			return o.exactly(exact, x, y)
		case xInt && y.Type() == types.DoubleType:
			x = x.ConvertToType(types.DoubleType)
		case yInt && x.Type() == types.DoubleType:
			y = y.ConvertToType(types.DoubleType)
		}
	}
	result := o.impl(x, y)
	if e, ok := result.(*types.Err); ok && e.Error() == noOverloadMessage {
		sign, _ := operators.FindReverse(o.Function())
		return types.NewErr("%s %s %s cannot be computed", x.Type().TypeName(), sign, y.Type().TypeName())
	}
	return result
}

// concat adds two lists by copying them, at a price. CEL's own sum only refers to
// both, for free; repeated on itself it makes a list longer than memory out of
// nothing. The list that a macro is filling is left to CEL, which extends it in
// place.
func (o *operator) concat(frame *interpreter.ExecutionFrame, x, y ref.Val) (ref.Val, bool) {
	a, ok1 := x.(traits.Lister)
	b, ok2 := y.(traits.Lister)
	if _, filling := x.(traits.MutableLister); filling || !ok1 || !ok2 || o.Function() != operators.Add {
		return nil, false
	}
	n := lengthOf(a) + lengthOf(b)
	charge(frame, o.ID(), n)
	elems := make([]ref.Val, 0, n)
	for _, l := range []traits.Lister{a, b} {
		for it := l.Iterator(); it.HasNext() == types.True; {
			elems = append(elems, it.Next())
		}
	}
	return types.NewRefValList(types.DefaultTypeAdapter, elems), true
}

func (o *operator) exactly(exact func(z, x, y *big.Int) *big.Int, x, y ref.Val) ref.Val {
	b := bigInt(y)
	if f := o.Function(); b.Sign() == 0 && (f == operators.Divide || f == operators.Modulo) {
		return types.NewErr("division by zero")
	}
	n := exact(new(big.Int), bigInt(x), b)
	switch {
	case n.IsInt64():
		return types.Int(n.Int64())
	case n.IsUint64():
		return types.Uint(n.Uint64())
	}
	return types.NewErr("integer overflow")
}

func integral(v ref.Val) bool {
	switch v.(type) {
	case types.Int, types.Uint:
		return true
	}
	return false
}

func bigInt(v ref.Val) *big.Int {
	if u, ok := v.(types.Uint); ok {
		return new(big.Int).SetUint64(uint64(u))
	}
	n, _ := v.(types.Int)
	return big.NewInt(int64(n))
}
