package expr

import (
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
)

// activation is what CEL resolves names against, for one evaluation. It keeps
// the values it has resolved, so that what is learnt of a large value (where its
// members are) is learnt once.
type activation struct {
	scope    Scope
	extra    []string
	meter    meter
	resolved []binding
	space    [2]binding // where resolved starts: most sources use few names
}

type binding struct {
	name string
	val  ref.Val
}

// ResolveName implements interpreter.Activation. A name the scope does not hold
// is null.
func (a *activation) ResolveName(name string) (any, bool) {
	name = unspell(name)
	for i := range a.resolved {
		if a.resolved[i].name == name {
			return a.resolved[i].val, true
		}
	}
	if !known(name, a.extra) {
		return nil, false
	}
	var val ref.Val = types.NullValue
	if v, ok := lookup(a.scope, name); ok {
		val = decode(&a.meter, trim(v))
	}
	if a.resolved == nil {
		a.resolved = a.space[:0]
	}
	a.resolved = append(a.resolved, binding{name, val})
	return val, true
}

// Parent implements interpreter.Activation.
func (a *activation) Parent() interpreter.Activation { return nil }
