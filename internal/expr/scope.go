package expr

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Scope gives the top-level values of an evaluation as raw JSON. Lookup reports
// false for a name it does not hold; such a name reads as null. Results may
// alias the bytes a Scope returned, so they must not change afterwards.
type Scope interface {
	Lookup(name string) (jsontext.Value, bool)
}

// Values is a Scope held in a map. A nil Values holds nothing.
type Values map[string]jsontext.Value

// Lookup implements Scope.
func (v Values) Lookup(name string) (jsontext.Value, bool) {
	val, ok := v[name]
	return val, ok
}

// names are the top-level names every expression may use.
var names = []string{
	"inputs", "variables", "channels", "nodes", "outputs", "output",
	"error", "loop", "run", "item", "index", "results",
}

// Names lists the top-level names that every expression may use.
func Names() []string { return slices.Clone(names) }

// known reports whether a source compiled with extra names may use name.
func known(name string, extra []string) bool {
	return slices.Contains(names, name) || slices.Contains(extra, name)
}

// lookup is Scope.Lookup for a scope that may be nil, and in which an empty
// value counts as absent.
func lookup(s Scope, name string) ([]byte, bool) {
	if s == nil {
		return nil, false
	}
	v, ok := s.Lookup(name)
	return v, ok && len(v) > 0
}
