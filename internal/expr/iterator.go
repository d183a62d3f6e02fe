package expr

import (
	"reflect"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// iterator walks n values that a function gives. CEL wants it to be a value;
// no expression can get hold of one.
type iterator struct {
	next, n int
	at      func(int) ref.Val
}

var _ traits.Iterator = (*iterator)(nil)

func newIterator(n int, at func(int) ref.Val) *iterator { return &iterator{n: n, at: at} }

// HasNext implements traits.Iterator.
func (it *iterator) HasNext() ref.Val { return types.Bool(it.next < it.n) }

// Next implements traits.Iterator. It is nil past the end.
func (it *iterator) Next() ref.Val {
	if it.next >= it.n {
		return nil
	}
	it.next++
	return it.at(it.next - 1)
}

// ConvertToNative implements ref.Val.
func (it *iterator) ConvertToNative(to reflect.Type) (any, error) { return toNative(it, to) }

// ConvertToType implements ref.Val.
func (it *iterator) ConvertToType(ref.Type) ref.Val { return noOverload() }

// Equal implements ref.Val.
func (it *iterator) Equal(ref.Val) ref.Val { return noOverload() }

// Type implements ref.Val.
func (it *iterator) Type() ref.Type { return types.IteratorType }

// Value implements ref.Val.
func (it *iterator) Value() any { return nil }
