package jsonschema

import (
	"encoding/json"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// meter is the budget of one validation. The validator has no notion of one, but
// it calls a schema's format before it goes into the schema: install puts a format
// that pays into every schema.
type meter struct {
	left int
	// around is what each visit costs in any case: an error there copies the
	// path to it, which is as long as the value is deep.
	around int
	// scopes is the work of finding out where a dynamic reference leads, from
	// all the schemas that are being applied at that moment.
	scopes int
}

// start begins a validation of a value so deep, with schemas that are height deep
// within each other at each level.
func (m *meter) start(budget, depth, height int) {
	m.left, m.around, m.scopes = budget, depth/8, depth*height/8
}

// spent ends a validation by a panic, which Validate turns into a violation: the
// validator would take an error for an answer, and go on.
type spent struct{}

func (m *meter) spend(n int) {
	if m.left -= n; m.left < 0 {
		panic(spent{})
	}
}

// price is what applying a schema costs, apart from what the schemas it leads to
// pay for themselves: looking at each child, and the checks of those schemas that
// run before their own format does.
type price struct {
	fixed    int
	perChild int
	deep     bool // the whole value is hashed
	numeric  bool // a number is computed with
	dynamic  bool // there is a dynamic reference to resolve
}

func (p price) of(v any, m *meter) int {
	n := p.fixed + m.around
	if p.dynamic {
		n += m.scopes
	}
	switch v := v.(type) {
	case map[string]any:
		n += p.perChild * len(v)
	case []any:
		n += p.perChild * len(v)
	case string:
		n += len(v) / 64
	case json.Number:
		if p.numeric {
			n += arithmetic(string(v))
		}
	}
	if p.deep {
		n += weigh(v, m.left)
	}
	return n
}

// arithmetic is the work of computing with a number: what its digits and its
// exponent make of it when it is written out.
func arithmetic(text string) int {
	n := len(text) / 4
	if strings.ContainsAny(text, "eE") {
		n += maxExponent / 8
	}
	return n
}

// install makes every schema of a compiled graph pay to m when it is applied.
func install(m *meter, all []*jsonschema.Schema) {
	unevaluated := 0
	for _, s := range all {
		if s.UnevaluatedItems != nil || s.UnevaluatedProperties != nil {
			unevaluated = 1
		}
	}
	for _, s := range all {
		if s.Bool != nil {
			continue
		}
		p, own := priceOf(s, unevaluated), s.Format
		paying := &jsonschema.Format{Validate: func(v any) error {
			m.spend(p.of(v, m))
			if own != nil {
				return own.Validate(v)
			}
			return nil
		}}
		if own != nil {
			paying.Name = own.Name
		}
		s.Format = paying
	}
	for _, s := range all { // once all are priced
		stopEarly(s)
	}
}

// priceOf prices a schema. unevaluated is 1 when any schema asks for what others
// have not evaluated, which makes every schema note that of every child.
func priceOf(s *jsonschema.Schema, unevaluated int) price {
	applied := here(s)
	one, every := below(s)
	p := price{
		fixed:    1 + len(s.Required) + len(s.DependentRequired) + len(s.DependentSchemas) + len(s.Dependencies),
		perChild: 1 + unevaluated*(1+len(applied)),
		deep:     s.UniqueItems,
		numeric:  computes(s) || s.MultipleOf != nil,
		dynamic:  s.DynamicRef != nil || s.RecursiveRef != nil,
	}
	for _, sub := range applied {
		p.fixed += ownChecks(sub)
	}
	dearest := 0
	for _, sub := range one {
		dearest = max(dearest, ownChecks(sub))
	}
	p.perChild += dearest
	for _, sub := range every {
		p.perChild += ownChecks(sub)
	}
	if s.Contains != nil {
		p.perChild += 30 // an error is kept of each element that does not match
	}
	return p
}

// ownChecks is the work of a schema's keywords that look at the value itself.
func ownChecks(s *jsonschema.Schema) int {
	const exact = 4 // making a rational of a number
	n := 1
	if s.Types != nil {
		n += exact
	}
	if s.Enum != nil {
		n += weigh(s.Enum.Values, maxChecks)
	}
	if s.Const != nil {
		n += weigh(*s.Const, maxChecks)
	}
	if computes(s) {
		n += exact
	}
	if s.MultipleOf != nil {
		n += 2 * exact
	}
	return n
}

func computes(s *jsonschema.Schema) bool {
	return s.Minimum != nil || s.Maximum != nil || s.ExclusiveMinimum != nil || s.ExclusiveMaximum != nil
}

// weigh counts what is in v, up to about most: numbers for eight, because they
// are compared as rationals.
func weigh(v any, most int) int {
	n := 1
	switch v := v.(type) {
	case json.Number:
		return 8
	case string:
		return 1 + len(v)/64
	case []any:
		for _, elem := range v {
			if n += weigh(elem, most-n); n > most {
				break
			}
		}
	case map[string]any:
		for name, member := range v {
			if n += 1 + len(name)/64 + weigh(member, most-n); n > most {
				break
			}
		}
	}
	return n
}
