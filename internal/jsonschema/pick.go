package jsonschema

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// failure is a node in the validator's tree of what went wrong.
type failure = jsonschema.ValidationError

// pick chooses the failure to report. The validator's own order changes from run
// to run, as it goes through maps, so it plays no part.
func pick(f *failure) *failure {
	if len(f.Causes) == 0 {
		return f
	}
	switch f.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		return pickAlternative(f)
	case *kind.Contains, *kind.MinContains, *kind.MaxContains, *kind.PropertyNames, *kind.Not:
		return f // what its causes say of single elements or names misleads
	}
	first := pick(f.Causes[0])
	for _, cause := range f.Causes[1:] {
		if other := pick(cause); before(other, first) < 0 {
			first = other
		}
	}
	return first
}

// pickAlternative reports the alternative that was meant, if one stands out: the
// only one for values of this type, or with this constant in a member (as
// "type": "circle"), or else the one that got deepest into the value.
func pickAlternative(f *failure) *failure {
	depth := len(f.InstanceLocation)
	left := f.Causes
	for _, other := range []func(*failure, int) bool{otherType, otherConstant} {
		meant := slices.DeleteFunc(slices.Clone(left), func(c *failure) bool { return other(c, depth) })
		if len(meant) == 1 {
			return pick(meant[0])
		}
		if len(meant) > 0 {
			left = meant
		}
	}
	var deepest *failure
	tied := false
	for _, cause := range left {
		best := pick(cause)
		switch {
		case deepest == nil || len(best.InstanceLocation) > len(deepest.InstanceLocation):
			deepest, tied = best, false
		case len(best.InstanceLocation) == len(deepest.InstanceLocation):
			tied = true
		}
	}
	if tied || len(deepest.InstanceLocation) <= depth {
		return f
	}
	return deepest
}

// otherType reports whether an alternative is for values of another type.
func otherType(f *failure, depth int) bool {
	if _, ok := f.ErrorKind.(*kind.Type); ok {
		return len(f.InstanceLocation) == depth
	}
	return conjunction(f) && slices.ContainsFunc(f.Causes, func(c *failure) bool { return otherType(c, depth) })
}

// otherConstant reports whether an alternative wants another constant, of the
// value or of one of its members.
func otherConstant(f *failure, depth int) bool {
	switch f.ErrorKind.(type) {
	case *kind.Const, *kind.Enum:
		return len(f.InstanceLocation) <= depth+1
	}
	return conjunction(f) && slices.ContainsFunc(f.Causes, func(c *failure) bool { return otherConstant(c, depth) })
}

// conjunction reports whether every cause of f is by itself a reason for it.
func conjunction(f *failure) bool {
	switch f.ErrorKind.(type) {
	case *kind.Group, *kind.Reference, *kind.AllOf:
		return true
	}
	return false
}

// before orders failures by their place in the value, then by what they say.
func before(a, b *failure) int {
	if c := slices.CompareFunc(a.InstanceLocation, b.InstanceLocation, compareTokens); c != 0 {
		return c
	}
	return cmp.Compare(message(a), message(b))
}

func compareTokens(a, b string) int {
	i, err1 := strconv.Atoi(a)
	j, err2 := strconv.Atoi(b)
	if err1 == nil && err2 == nil && i != j {
		return cmp.Compare(i, j)
	}
	return cmp.Compare(a, b)
}
