// Package jsonschema compiles and applies the JSON Schemas that workflow authors
// and callers supply. No schema reaches outside its own document.
package jsonschema

import (
	"bytes"
	"errors"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Schema is a compiled schema, safe for concurrent use.
type Schema struct{ s *jsonschema.Schema }

// Violation says where an instance does not fit, and why.
type Violation struct {
	Path    string // "answers.q1", "[2].name"; empty for the instance itself
	Message string
}

const maxSchema = 256 << 10

type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, errors.New("a schema must not refer to other documents")
}

// Compile checks and compiles a schema.
func Compile(raw []byte) (*Schema, error) {
	if len(raw) > maxSchema {
		return nil, errors.New("the schema is too large")
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	if err := c.AddResource("urn:author", doc); err != nil {
		return nil, err
	}
	s, err := c.Compile("urn:author")
	if err != nil {
		return nil, err
	}
	return &Schema{s}, nil
}

// Validate returns the first violation; nil for an instance that fits.
func (s *Schema) Validate(v []byte) *Violation {
	inst, err := jsonschema.UnmarshalJSON(bytes.NewReader(v))
	if err != nil {
		return &Violation{Message: err.Error()}
	}
	err = s.s.Validate(inst)
	var bad *jsonschema.ValidationError
	if err == nil {
		return nil
	}
	if !errors.As(err, &bad) {
		return &Violation{Message: err.Error()}
	}
	for len(bad.Causes) > 0 {
		bad = bad.Causes[0]
	}
	msg := bad.Error()
	if i := strings.LastIndex(msg, ": "); i >= 0 {
		msg = msg[i+2:]
	}
	return &Violation{Path: strings.Join(bad.InstanceLocation, "."), Message: msg}
}
