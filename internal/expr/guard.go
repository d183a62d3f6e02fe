package expr

import (
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// tariff charges every call of a running program that guard does not charge
// before it runs. It implements cost.ActualCostEstimator.
type tariff struct{ loops bool }

var free = uint64(1) // never written to: it stands for the commonest answer

// CallCost implements cost.ActualCostEstimator.
func (t tariff) CallCost(function, _ string, args []ref.Val, result ref.Val) *uint64 {
	n := work(function, args)
	if s, ok := result.(types.String); ok {
		n += len(s)
	}
	if n < 10 {
		return &free
	}
	cost := uint64(1 + n/10)
	return &cost
}

func (t tariff) early(function string) bool {
	return early[function] || t.loops && earlyInLoops[function]
}

// guard rewrites the plan of a program: arithmetic mixes its operands, maps keep
// an order, patterns are compiled once, and the calls that are dangerous pay in
// advance.
func (e *engine) guard(t tariff) interpreter.InterpretableDecoratorV2 {
	return func(node interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
		switch node := node.(type) {
		case interpreter.InterpretableConstructor:
			if node.Type() == types.MapType {
				return orderedMap{node}, nil
			}
		case interpreter.InterpretableCall:
			return e.guardCall(t, node)
		}
		return node, nil
	}
}

func (e *engine) guardCall(t tariff, node interpreter.InterpretableCall) (interpreter.InterpretableV2, error) {
	name := node.Function()
	switch {
	case name == matches:
		return newMatch(node)
	case name == indexOf || name == lastIndexOf:
		return interpreter.NewCall(node.ID(), name, node.OverloadID(), node.Args(), searches[name]), nil
	case sorts[name] != nil:
		return &prepaid{node, node.Args(), sorts[name], sorted}, nil
	case binary[name] && len(node.Args()) == 2:
		return newOperator(node, e.impls[name]), nil
	case t.early(name):
		impl := e.impls[name]
		if own, ok := comparisons[name]; ok {
			impl = own
		}
		return &prepaid{node, node.Args(), impl, prices[name]}, nil
	}
	return node, nil
}

// comparisons are computed by CEL's planner itself and have no binding to take.
var comparisons = map[string]call{
	operators.Equals: func(a ...ref.Val) ref.Val { return types.Equal(a[0], a[1]) },
	operators.NotEquals: func(a ...ref.Val) ref.Val {
		return types.Bool(types.Equal(a[0], a[1]) != types.True)
	},
}

// prepaid is a call that is charged for before it is made.
type prepaid struct {
	interpreter.InterpretableCall
	args  []interpreter.InterpretableV2
	impl  call
	price price
}

// Exec implements interpreter.InterpretableV2.
func (p *prepaid) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	args := make([]ref.Val, len(p.args))
	for i, node := range p.args {
		args[i] = node.Exec(frame)
		if types.IsUnknownOrError(args[i]) {
			return args[i]
		}
	}
	charge(frame, p.ID(), p.price(args))
	return label(p.ID(), p.impl(args...))
}

// Eval implements interpreter.Interpretable.
func (p *prepaid) Eval(vars interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(vars, p.Exec)
}

// charge adds work to the cost of the evaluation, and ends the evaluation when
// that is beyond the limit.
func charge(frame *interpreter.ExecutionFrame, id int64, work int) {
	if work > maxCallWork {
		panic(tooExpensive())
	}
	if t := frame.CostTracker(); t != nil {
		t.EvalUnary(frame, id, toll{}, types.Int(work), types.NullValue)
	}
}

// toll is how charge puts work to CEL's cost tracker: as a call, whose argument
// is the work.
type toll struct{}

const tollName = "@toll"

// Function implements cost.Call.
func (toll) Function() string { return tollName }

// OverloadID implements cost.Call.
func (toll) OverloadID() string { return "" }

// orderedMap is a map literal whose keys are iterated in order.
type orderedMap struct {
	interpreter.InterpretableConstructor
}

// Exec implements interpreter.InterpretableV2.
func (m orderedMap) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v := m.InterpretableConstructor.Exec(frame)
	if mapper, ok := v.(traits.Mapper); ok {
		return &ordered{Mapper: mapper}
	}
	return v
}

// Eval implements interpreter.Interpretable.
func (m orderedMap) Eval(vars interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(vars, m.Exec)
}
