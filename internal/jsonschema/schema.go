package jsonschema

import (
	"errors"
	"fmt"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Schema is a compiled schema, safe for concurrent use. Validations with one
// Schema take turns: the budget they draw on is part of it. Each is short, and
// bounded.
type Schema struct {
	mu     sync.Mutex // guards meter, and with it every run of root
	meter  *meter
	root   *jsonschema.Schema
	height int // see checkOut
}

// Error is a schema that Compile refused.
type Error struct {
	Path    string // where in the schema: "properties.a.type"; "" is the whole
	Message string // one line
}

// Error is the message with its place.
func (e *Error) Error() string {
	if e.Path == "" {
		return "the schema " + e.Message
	}
	return "the schema's " + e.Path + " " + e.Message
}

// base is the identifier of a schema that does not give itself one. It has a
// scheme, so that the validator does not make a file's name of it.
const base = "schema:///"

// Compile checks and prepares a schema. It resolves references within the
// document and to the metaschemas of the drafts, and no others. The error is an
// *Error.
func Compile(raw []byte) (s *Schema, err error) {
	defer func() {
		if r := recover(); r != nil {
			s, err = nil, &Error{Message: fmt.Sprintf("could not be compiled: %.100v", r)}
		}
	}()
	if len(raw) > MaxSize {
		return nil, &Error{Message: fmt.Sprintf("is larger than %d bytes", MaxSize)}
	}
	doc, err := (&decoder{maxDepth: MaxDepth, maxNodes: MaxSubschemas}).decode(raw)
	if err != nil {
		return nil, refusal(err)
	}
	dynamic, err := survey(doc)
	if err != nil {
		return nil, refusal(err)
	}
	m := &meter{left: budgetCeiling}
	roots, err := load(doc, dynamic, m)
	if err != nil {
		return nil, explain(err, doc)
	}
	all := reachable(roots)
	if len(all) > 2*MaxSubschemas {
		return nil, &Error{Message: fmt.Sprintf("holds more than %d subschemas", MaxSubschemas)}
	}
	height, err := checkOut(all, doc)
	if err != nil {
		return nil, err
	}
	install(m, all)
	return &Schema{meter: m, root: roots[0], height: height}, nil
}

// load compiles a document. The result is its schema and those that only a
// $dynamicRef may come to, which must pay like all others.
func load(doc any, dynamic []string, m *meter) ([]*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(nothing{})
	c.UseRegexpEngine(compilePattern(m))
	if err := c.AddResource(base, doc); err != nil {
		return nil, err
	}
	root, err := c.Compile(base)
	if err != nil {
		return nil, err
	}
	roots := []*jsonschema.Schema{root}
	for _, pointer := range dynamic {
		if s, err := c.Compile(base + "#" + pointer); err == nil { // else it is no schema, but data
			roots = append(roots, s)
		}
	}
	return roots, nil
}

// nothing is the loader of references out of the document.
type nothing struct{}

// Load implements jsonschema.URLLoader.
func (nothing) Load(string) (any, error) { return nil, errors.ErrUnsupported }
