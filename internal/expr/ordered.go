package expr

import (
	"cmp"
	"slices"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// ordered is a map that an expression built, iterated in the order of its keys.
// CEL keeps such a map in one of Go's, whose order differs from run to run:
// {"b": 1, "a": 2}.map(k, k) would not give the same list twice.
type ordered struct {
	traits.Mapper
	keys []ref.Val
}

var (
	_ traits.Foldable            = (*ordered)(nil)
	_ types.AggregateSizeVisitor = (*ordered)(nil)
)

func (o *ordered) sorted() []ref.Val {
	if o.keys == nil {
		for it := o.Mapper.Iterator(); it.HasNext() == types.True; {
			o.keys = append(o.keys, it.Next())
		}
		slices.SortFunc(o.keys, compareKeys)
	}
	return o.keys
}

// compareKeys orders keys by type and then by value.
func compareKeys(a, b ref.Val) int {
	if c := cmp.Compare(a.Type().TypeName(), b.Type().TypeName()); c != 0 {
		return c
	}
	if a, ok := a.(traits.Comparer); ok {
		if c, ok := a.Compare(b).(types.Int); ok {
			return int(c)
		}
	}
	return 0
}

// Iterator implements traits.Iterable.
func (o *ordered) Iterator() traits.Iterator {
	keys := o.sorted()
	return newIterator(len(keys), func(i int) ref.Val { return keys[i] })
}

// Fold implements traits.Foldable.
func (o *ordered) Fold(f traits.Folder) {
	for _, k := range o.sorted() {
		v, _ := o.Mapper.Find(k)
		if !f.FoldEntry(k, v) {
			return
		}
	}
}

// AggregateSize implements types.AggregateSizeVisitor: the map within remembers
// its size, which keeps the measuring of nested maps linear.
func (o *ordered) AggregateSize(s types.AggregateSizer) uint32 {
	if v, ok := o.Mapper.(types.AggregateSizeVisitor); ok {
		return v.AggregateSize(s)
	}
	return s.AggregateSize(o.Mapper)
}

// IsZeroValue implements traits.Zeroer.
func (o *ordered) IsZeroValue() bool { return o.Mapper.Size() == types.IntZero }
