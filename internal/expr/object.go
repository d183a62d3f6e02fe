package expr

import (
	"reflect"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// object is a raw JSON object as a CEL map. It belongs to one evaluation, so
// it may remember what it has decoded without a lock.
type object struct {
	raw   []byte
	meter *meter
	index memberIndex
	kept  []ref.Val // members worth keeping, once touched
}

var (
	_ traits.Mapper              = (*object)(nil)
	_ traits.Foldable            = (*object)(nil)
	_ traits.Zeroer              = (*object)(nil)
	_ types.AggregateSizeVisitor = (*object)(nil)
)

func (o *object) json() []byte { return o.raw }

func (o *object) members() *memberIndex {
	if o.index.raw == nil {
		o.meter.spend(len(o.raw))
		o.index.raw = o.raw
		o.index.build()
	}
	return &o.index
}

// at decodes the i-th member.
func (o *object) at(i int) ref.Val {
	x := o.members()
	if o.kept != nil && o.kept[i] != nil {
		return o.kept[i]
	}
	v := x.value(x.members[i])
	val := decode(o.meter, v)
	if worthKeeping(val) {
		if o.kept == nil {
			o.kept = make([]ref.Val, len(x.members))
		}
		o.kept[i] = val
	}
	return val
}

// FindStringKey is the way by which CEL resolves o.name without boxing the name.
func (o *object) FindStringKey(key string) (any, bool) {
	i := o.members().find(key)
	if i < 0 {
		return nil, false
	}
	return o.at(i), true
}

// Find implements traits.Mapper. A key that is not a string is simply absent.
func (o *object) Find(key ref.Val) (ref.Val, bool) {
	k, ok := key.(types.String)
	if !ok {
		return nil, false
	}
	i := o.members().find(string(k))
	if i < 0 {
		return nil, false
	}
	return o.at(i), true
}

// Get implements traits.Indexer.
func (o *object) Get(key ref.Val) ref.Val {
	if v, ok := o.Find(key); ok {
		return v
	}
	return types.ValOrErr(key, "no such key: %v", key)
}

// Contains implements traits.Container.
func (o *object) Contains(key ref.Val) ref.Val {
	k, ok := key.(types.String)
	return types.Bool(ok && o.members().find(string(k)) >= 0)
}

// Size implements traits.Sizer.
func (o *object) Size() ref.Val { return types.Int(len(o.members().members)) }

// IsZeroValue implements traits.Zeroer.
func (o *object) IsZeroValue() bool { return len(o.members().members) == 0 }

// AggregateSize implements types.AggregateSizeVisitor.
func (o *object) AggregateSize(types.AggregateSizer) uint32 { return rawSize(o.raw) }

// Fold implements traits.Foldable, in the order of the text.
func (o *object) Fold(f traits.Folder) {
	x := o.members()
	for i, m := range x.members {
		if !f.FoldEntry(types.String(keyAt(o.raw, int(m.key))), o.at(i)) {
			return
		}
	}
}

// Iterator implements traits.Iterable, over the keys.
func (o *object) Iterator() traits.Iterator {
	x := o.members()
	return newIterator(len(x.members), func(i int) ref.Val {
		return types.String(keyAt(o.raw, int(x.members[i].key)))
	})
}

// Equal implements ref.Val. Two texts are compared as JSON, which is exact where
// doubles are not; a map that an expression built is compared member by member.
func (o *object) Equal(other ref.Val) ref.Val {
	if t, ok := other.(*object); ok {
		return sameRaw(o.meter, o.raw, t.raw)
	}
	m, ok := other.(traits.Mapper)
	if !ok || m.Size() != o.Size() {
		return types.False
	}
	for i, member := range o.members().members {
		v, found := m.Find(types.String(keyAt(o.raw, int(member.key))))
		if !found || types.Equal(o.at(i), v) != types.True {
			return types.False
		}
	}
	return types.True
}

// ConvertToNative implements ref.Val.
func (o *object) ConvertToNative(to reflect.Type) (any, error) { return toNative(o, to) }

// ConvertToType implements ref.Val.
func (o *object) ConvertToType(to ref.Type) ref.Val { return convert(o, to) }

// Type implements ref.Val.
func (o *object) Type() ref.Type { return types.MapType }

// Value implements ref.Val.
func (o *object) Value() any { return o }
