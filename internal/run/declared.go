package run

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Declared hides the inputs that no variable of the workflow stands for: of those
// nobody has said whether they are sensitive. It is for what is handed on, where the
// log itself would show too much, and hides in passthrough mode as well. It reports
// whether there were any.
func (s *State) Declared(inputs jsontext.Value) (jsontext.Value, bool) {
	return s.conceal(inputs, func(string) bool { return true })
}

// DeclaredVariables is Declared for the variables that the inputs have become.
func (s *State) DeclaredVariables(variables jsontext.Value) (jsontext.Value, bool) {
	var inputs map[string]jsontext.Value
	if len(s.Inputs) > 0 && json.Unmarshal(s.Inputs, &inputs) != nil {
		return variables, false
	}
	return s.conceal(variables, func(name string) bool { return inputs[name] != nil })
}

// conceal masks the members of an object that are to be looked at and are not declared.
func (s *State) conceal(object jsontext.Value, look func(name string) bool) (jsontext.Value, bool) {
	var m map[string]jsontext.Value
	if len(object) == 0 || json.Unmarshal(object, &m) != nil {
		return object, false
	}
	hid := false
	for name, v := range m {
		if _, ok := s.wf.Variable(name); ok || !look(name) {
			continue
		}
		hid = true
		if !s.maskInto(m, name, v) {
			m[name] = jsontext.Value(Redacted)
		}
	}
	if !hid {
		return object, false
	}
	return encodeObject(m), true
}

// MaskingMode is how the run's workflow wants sensitive values masked.
func (s *State) MaskingMode() string {
	if c := s.wf.Def.Metadata.ComplianceConfig; c != nil && c.MaskingMode != "" {
		return c.MaskingMode
	}
	return maskDefault
}

const maskDefault = "mask"
