package jsonschema

import (
	"errors"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Violation is the first way in which a value breaks a schema.
type Violation struct {
	Path    string // where in the value: "answers.q1", "[2].name"; "" is the whole
	Message string // one line, to follow the name of the value: "must be a string"
}

// Error makes a Violation an error.
func (v *Violation) Error() string {
	if v.Path == "" {
		return v.Message
	}
	return v.Path + " " + v.Message
}

// Validate reports how v, the text of a JSON value, breaks the schema, and nil
// when it does not. Of several violations it gives the one whose place comes
// first; of alternatives that all fail, the one that the value came closest to.
//
// A value is also refused when it is not strict JSON, is nested deeper than
// MaxValueDepth, holds a number beyond exact arithmetic, or takes more checks
// than its size justifies.
func (s *Schema) Validate(v []byte) *Violation {
	d := &decoder{maxDepth: MaxValueDepth}
	value, err := d.decode(v)
	if err != nil {
		var f *fault
		if errors.As(err, &f) {
			return &Violation{f.path(), f.message}
		}
		return &Violation{"", "is not valid JSON"}
	}
	return s.validate(value, d)
}

func (s *Schema) validate(value any, d *decoder) (v *Violation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		switch r := recover().(type) {
		case nil:
		case spent:
			v = &Violation{"", "takes too many checks to validate"}
		default:
			_ = r // a fault of the validator's: the value has not been found valid
			v = &Violation{"", "could not be validated"}
		}
	}()
	s.meter.start(min(budgetStart+budgetPerToken*d.tokens, budgetCeiling), d.deepest, s.height)
	s.meter.spend(ownChecks(s.root))
	err := s.root.Validate(value)
	if err == nil {
		return nil
	}
	var verr *jsonschema.ValidationError
	if !errors.As(err, &verr) {
		return &Violation{"", "could not be validated"}
	}
	worst := pick(verr)
	return &Violation{spell(value, worst.InstanceLocation), message(worst)}
}
