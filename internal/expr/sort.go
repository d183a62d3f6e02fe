package expr

import (
	"slices"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// xs.sort() and xs.sortBy(x, key) replace those of CEL's lists extension, which
// refuse a list that holds 10 and 10.5, and do not keep equal elements in order.
const (
	sort   = "sort"
	sortBy = "@sortByAssociatedKeys" // what the macro sortBy calls
)

var sorts = map[string]call{
	sort:   func(args ...ref.Val) ref.Val { return sortList(args[0], args[0]) },
	sortBy: func(args ...ref.Val) ref.Val { return sortList(args[0], args[1]) },
}

// sortList orders the elements of a list by the keys at their positions.
func sortList(list, keys ref.Val) ref.Val {
	elems, ok1 := list.(traits.Lister)
	by, ok2 := keys.(traits.Lister)
	if !ok1 || !ok2 || elems.Size() != by.Size() {
		return types.NewErr("only a list can be sorted, and this is %s", list.Type().TypeName())
	}
	type pair struct{ key, elem ref.Val }
	var pairs []pair
	for i := types.IntZero; i < elems.Size().(types.Int); i++ {
		pairs = append(pairs, pair{by.Get(i), elems.Get(i)})
	}
	var failure ref.Val
	slices.SortStableFunc(pairs, func(a, b pair) int {
		n, err := order(a.key, b.key)
		if err != nil {
			failure = err
		}
		return n
	})
	if failure != nil {
		return failure
	}
	out := make([]ref.Val, len(pairs))
	for i, p := range pairs {
		out[i] = p.elem
	}
	return types.NewRefValList(types.DefaultTypeAdapter, out)
}

// order compares two keys: numbers with numbers, otherwise only within a type.
func order(a, b ref.Val) (int, ref.Val) {
	c, ok := a.(traits.Comparer)
	if ok && (a.Type() == b.Type() || number(a) && number(b)) {
		if n, ok := c.Compare(b).(types.Int); ok {
			return int(n), nil
		}
	}
	return 0, types.NewErr("%s and %s cannot be put in order", a.Type().TypeName(), b.Type().TypeName())
}

func number(v ref.Val) bool { return integral(v) || v.Type() == types.DoubleType }
