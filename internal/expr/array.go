package expr

import (
	"reflect"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// array is a raw JSON array as a CEL list. Like object it belongs to one
// evaluation.
type array struct {
	raw     []byte
	meter   *meter
	indexed bool
	starts  []uint32
	kept    map[int]ref.Val // elements worth keeping, once touched
}

var (
	_ traits.Lister              = (*array)(nil)
	_ traits.Foldable            = (*array)(nil)
	_ traits.Zeroer              = (*array)(nil)
	_ types.AggregateSizeVisitor = (*array)(nil)
)

func (a *array) json() []byte { return a.raw }

func (a *array) elements() []uint32 {
	if !a.indexed {
		a.meter.spend(len(a.raw))
		a.starts, a.indexed = indexElements(a.raw), true
	}
	return a.starts
}

func (a *array) at(i int) ref.Val {
	if v, ok := a.kept[i]; ok {
		return v
	}
	val := decode(a.meter, valueAt(a.raw, int(a.elements()[i])))
	if worthKeeping(val) {
		if a.kept == nil {
			a.kept = make(map[int]ref.Val)
		}
		a.kept[i] = val
	}
	return val
}

// Get implements traits.Indexer.
func (a *array) Get(index ref.Val) ref.Val {
	i, err := types.GetOrError(index)
	if err != nil {
		return types.ValOrErr(index, "%v", err)
	}
	if n := len(a.elements()); i < 0 || i >= n {
		return types.NewErr("index %d is out of range of a list of %d", i, n)
	}
	return a.at(i)
}

// Contains implements traits.Container.
func (a *array) Contains(elem ref.Val) ref.Val {
	for i := range a.elements() {
		if types.Equal(elem, a.at(i)) == types.True {
			return types.True
		}
	}
	return types.False
}

// Size implements traits.Sizer.
func (a *array) Size() ref.Val { return types.Int(len(a.elements())) }

// IsZeroValue implements traits.Zeroer.
func (a *array) IsZeroValue() bool { return len(a.elements()) == 0 }

// AggregateSize implements types.AggregateSizeVisitor.
func (a *array) AggregateSize(types.AggregateSizer) uint32 { return rawSize(a.raw) }

// Fold implements traits.Foldable.
func (a *array) Fold(f traits.Folder) {
	for i := range a.elements() {
		if !f.FoldEntry(types.Int(i), a.at(i)) {
			return
		}
	}
}

// Iterator implements traits.Iterable.
func (a *array) Iterator() traits.Iterator { return newIterator(len(a.elements()), a.at) }

// Add implements traits.Adder. The sum of two lists is operator's to make.
func (a *array) Add(other ref.Val) ref.Val { return types.MaybeNoSuchOverloadErr(other) }

// Equal implements ref.Val, as object's does.
func (a *array) Equal(other ref.Val) ref.Val {
	if t, ok := other.(*array); ok {
		return sameRaw(a.meter, a.raw, t.raw)
	}
	l, ok := other.(traits.Lister)
	if !ok || l.Size() != a.Size() {
		return types.False
	}
	for i := range a.elements() {
		if types.Equal(a.at(i), l.Get(types.Int(i))) != types.True {
			return types.False
		}
	}
	return types.True
}

// ConvertToNative implements ref.Val.
func (a *array) ConvertToNative(to reflect.Type) (any, error) { return toNative(a, to) }

// ConvertToType implements ref.Val.
func (a *array) ConvertToType(to ref.Type) ref.Val { return convert(a, to) }

// Type implements ref.Val.
func (a *array) Type() ref.Type { return types.ListType }

// Value implements ref.Val.
func (a *array) Value() any { return a }
