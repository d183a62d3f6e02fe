package jsonschema

import (
	"errors"
	"strings"
	"testing"
)

// FuzzSchema: any bytes as a schema are compiled or refused with one line, and any
// bytes as a value are then judged, twice the same.
func FuzzSchema(f *testing.F) {
	for _, s := range []string{
		form, `true`, `{"$ref":"#/$defs/a","$defs":{"a":{"items":{"$ref":"#"}}}}`, `{"anyOf":[{"type":"null"},{"const":1e9}]}`,
		`{"$dynamicAnchor":"a","properties":{"x":{"$dynamicRef":"#a"}}}`, `{"$id":"http://a/b","$anchor":"c","$ref":"#c"}`,
		`{"patternProperties":{"^a":{"uniqueItems":true}},"unevaluatedProperties":false}`, `{"$schema":"http://json-schema.org/draft-04/schema#","id":"x"}`,
		`{"if":{"minimum":1},"then":{"multipleOf":0.1},"else":false}`, `{"dependentSchemas":{"a":{"$ref":"#"}}}`, `{"$ref":"#/allOf/0/not"}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"]},"format":"regex","contentEncoding":"base64"}`,
	} {
		for _, v := range []string{filled, `[[1,"a",null,{"a":1}],1e400]`, `{"a":`} {
			f.Add(s, v)
		}
	}
	f.Fuzz(func(t *testing.T, schema, value string) {
		s, err := Compile([]byte(schema))
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || strings.ContainsAny(err.Error(), "\r\n") || strings.Contains(e.Message, "could not be compiled") {
				t.Errorf("%.200q: %v", schema, err)
			}
			return
		}
		first := s.Validate([]byte(value))
		if first == nil {
			first = &Violation{}
		}
		if strings.ContainsAny(first.Error(), "\r\n") || first.Message == "could not be validated" {
			t.Errorf("%.200q over %.200q: %v", schema, value, first)
		}
		again := s.Validate([]byte(value))
		if again == nil {
			again = &Violation{}
		}
		if *first != *again && first.Message != "takes too many checks to validate" && again.Message != "takes too many checks to validate" {
			t.Errorf("%.200q over %.200q: %v, then %v", schema, value, first, again)
		}
	})
}
