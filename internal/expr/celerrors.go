package expr

import (
	"math"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// CEL marks an error with the node it came from by writing to it, and a few of
// its errors are shared by every evaluation: a data race, and columns of other
// sources. settle marks those once, before any evaluation, as coming from
// nowhere, after which CEL leaves them alone.
func (e *engine) settle() {
	shared := []ref.Val{
		types.NoSuchOverloadErr(),
		types.Int(math.MaxInt64).ConvertToType(types.TimestampType),
		e.impls["math.abs"](types.Int(math.MinInt64)),
	}
	for _, err := range shared {
		types.LabelErrNode(nowhere, err)
	}
}

// nowhere is an id that no node of a syntax tree has.
const nowhere = -1

// label gives an error the node it comes from, without writing to it.
func label(node int64, v ref.Val) ref.Val {
	if e, ok := v.(*types.Err); ok && e.NodeID() <= 0 {
		return types.NewErrWithNodeID(node, "%w", e.Unwrap())
	}
	return v
}

const noOverloadMessage = "no such overload"

// noOverload is the error of a function given values it is not made for.
func noOverload() ref.Val { return types.NewErr(noOverloadMessage) }
