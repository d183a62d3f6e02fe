package expr

import (
	"math/bits"
	"strings"

	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// A price is the work of one call: the bytes and elements it touches or
// allocates, from above. Ten of them cost one unit of CEL's. CEL's own models
// are not used: they know a call's overload only where the checker did, and
// nothing is typed here, so they would price most calls at 1.
type price func(args []ref.Val) int

// prices are the functions whose work is not simply the length of the strings
// they are given.
var prices = map[string]price{
	operators.Equals:        smaller,
	operators.NotEquals:     smaller,
	operators.Less:          smaller,
	operators.LessEquals:    smaller,
	operators.Greater:       smaller,
	operators.GreaterEquals: smaller,
	operators.In:            searched,

	"replace": replaced,
	"join":    joined,
	"split":   splitted,
	"format":  func(a []ref.Val) int { return sizeOf(a[0]) + 4*sizeOf(a[1]) },
	"charAt":  func(a []ref.Val) int { return 4 * sizeOf(a[0]) },

	"lists.range": func(a []ref.Val) int { n, _ := a[0].(types.Int); return clamp(n) },
	"slice":       func(a []ref.Val) int { return 10 * lengthOf(a[0]) },
	"reverse":     func(a []ref.Val) int { return 10 * lengthOf(a[0]) },
	"flatten":     func(a []ref.Val) int { return 10 * sizeOf(a[0]) },
	"distinct":    func(a []ref.Val) int { return lengthOf(a[0]) * (sizeOf(a[0])/8 + 1) },
	"math.@min":   func(a []ref.Val) int { return lengthOf(a[0]) },
	"math.@max":   func(a []ref.Val) int { return lengthOf(a[0]) },

	tollName: func(a []ref.Val) int { n, _ := a[0].(types.Int); return int(n) },
}

// early are the priced functions that must be charged before they run, because
// one call can touch far more than what has been paid for: they multiply their
// arguments, or walk a value that shares its parts ([[x, x], [x, x]], whose size
// doubles with every map() while its cost does not).
var early = map[string]bool{
	"replace": true, "join": true, "split": true, "format": true,
	"slice": true, "reverse": true, "flatten": true, "distinct": true,
	sort: true, sortBy: true, "math.@min": true, "math.@max": true,
}

// earlyInLoops are charged before they run in a source that has a loop; without
// one no value can share its parts often enough to matter.
var earlyInLoops = map[string]bool{
	operators.Equals: true, operators.NotEquals: true, operators.In: true,
}

// work prices a call of any function.
func work(function string, args []ref.Val) int {
	if p, ok := prices[function]; ok {
		return p(args)
	}
	n := 0
	for _, a := range args {
		switch a := a.(type) {
		case types.String:
			n += len(a)
		case types.Bytes:
			n += len(a)
		}
	}
	return n
}

// sizer measures values that expressions built; it gives up, with the largest
// number, on one that has more parts than could be paid for.
var sizer = types.NewSizeCalculator(
	types.SizeCalculatorStringUnitLength(1),
	types.SizeCalculatorMaxDepth(maxNesting),
	types.SizeCalculatorMaxTraversal(maxCallWork/10),
)

// most keeps products of two sizes within an int.
const most = 1 << 30

func sizeOf(v ref.Val) int {
	switch v := v.(type) {
	case types.String:
		return min(len(v), most)
	case types.Bytes:
		return min(len(v), most)
	case raw:
		return min(len(v.json()), most)
	case traits.Sizer:
		return min(int(sizer.AggregateSize(v)), most)
	}
	return 1
}

func lengthOf(v ref.Val) int {
	switch v := v.(type) {
	case types.String:
		return min(len(v), most)
	case traits.Sizer:
		n, _ := v.Size().(types.Int)
		return clamp(n)
	}
	return 1
}

// clamp also makes a length that overflowed, and so went negative, a long one.
func clamp(n types.Int) int {
	if n < 0 || n > most {
		return most
	}
	return int(n)
}

func smaller(a []ref.Val) int { return min(sizeOf(a[0]), sizeOf(a[1])) }

func searched(a []ref.Val) int {
	if _, ok := a[1].(traits.Mapper); ok {
		return 1
	}
	return sizeOf(a[1])
}

func sorted(a []ref.Val) int {
	n := lengthOf(a[0])
	return n*(10+bits.Len(uint(n))) + sizeOf(a[len(a)-1])
}

func replaced(a []ref.Val) int {
	s, ok1 := a[0].(types.String)
	old, ok2 := a[1].(types.String)
	if !ok1 || !ok2 {
		return 1
	}
	return len(s) + strings.Count(string(s), string(old))*sizeOf(a[2])
}

func joined(a []ref.Val) int {
	n := sizeOf(a[0])
	if len(a) > 1 {
		n += lengthOf(a[0]) * sizeOf(a[1])
	}
	return n
}

func splitted(a []ref.Val) int {
	if sep, ok := a[1].(types.String); ok && sep == "" {
		return 16 * sizeOf(a[0]) // every character becomes a string
	}
	return 4 * sizeOf(a[0])
}
