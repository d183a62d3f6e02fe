package schema_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/schema"
)

func TestEmittedPayloadsAreValid(t *testing.T) {
	for _, s := range samples() {
		for _, p := range []any{s.minimal, s.full} {
			if err := schema.ValidatePayload(string(s.typ), event.Encode(p)); err != nil {
				t.Errorf("%s: %v\n%s", s.typ, err, event.Encode(p))
			}
		}
		v := reflect.ValueOf(s.full)
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				t.Errorf("%s: the full sample lacks %s", s.typ, v.Type().Field(i).Name)
			}
		}
	}
}

// Every payload definition is closed, whether this host emits it or not, and has
// the vendors' hatch exactly where we expect it.
func TestPayloadDefinitionsAreClosed(t *testing.T) {
	for typ := range asMap(parsed(t, "run-event-payloads")["types"]) {
		def := definition(t, typ)
		if def["type"] != "object" || def["additionalProperties"] != false {
			t.Errorf("%s is open", typ)
		}
		if hatch := asMap(def["patternProperties"]); len(hatch) > 1 || len(hatch) == 1 && hatch[`^(openwop-|x-|vendor\.)`] != true {
			t.Errorf("%s: patternProperties = %v", typ, hatch)
		}
	}
}

// Each emitted type refuses an unknown member, a missing one and one of another
// JSON type; it admits an extension exactly where its definition has the hatch.
func TestEmittedPayloadsAreStrict(t *testing.T) {
	for _, s := range samples() {
		def := definition(t, string(s.typ))
		var full map[string]any
		if err := json.Unmarshal(event.Encode(s.full), &full); err != nil {
			t.Fatal(err)
		}
		check := func(what string, ok bool, change func(map[string]any)) {
			t.Helper()
			p := maps.Clone(full)
			change(p)
			b, err := json.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.ValidatePayload(string(s.typ), b); (err == nil) != ok {
				t.Errorf("%s, %s: %v", s.typ, what, err)
			}
		}
		check("untouched", true, func(map[string]any) {})
		check("unknown member", false, func(p map[string]any) { p["unheardOf"] = 1 })
		for _, key := range []string{"x-other", "openwop-other", "vendor.acme.other"} {
			check(key, def["patternProperties"] != nil, func(p map[string]any) { p[key] = 1 })
		}
		required, _ := def["required"].([]any)
		for _, key := range required {
			check("without "+key.(string), false, func(p map[string]any) { delete(p, key.(string)) })
		}
		for key, sub := range asMap(def["properties"]) {
			if wrong, ok := otherType(t, sub); ok {
				check("wrong type of "+key, false, func(p map[string]any) { p[key] = wrong })
			}
		}
	}
}

// definition returns the object schema a type's payload must satisfy.
func definition(t *testing.T, typ string) map[string]any {
	t.Helper()
	doc := parsed(t, "run-event-payloads")
	name, _ := asMap(doc["types"])[typ].(string)
	return resolve(t, "run-event-payloads", asMap(asMap(doc["$defs"])[name]))
}

// resolve follows references until it reaches a schema with a type of its own.
func resolve(t *testing.T, name string, s map[string]any) map[string]any {
	t.Helper()
	for s["type"] == nil {
		ref, ok := s["$ref"].(string)
		if !ok {
			return s
		}
		doc, def, _ := strings.Cut(ref, "#/$defs/")
		if doc = strings.TrimPrefix(doc, schema.Prefix); doc == "" {
			doc = name
		}
		root := parsed(t, doc)
		if name, s = doc, root; def != "" {
			s = asMap(asMap(root["$defs"])[def])
		}
	}
	return s
}

// otherType returns a value whose JSON type a member's schema does not allow; it
// reports false where the schema allows any.
func otherType(t *testing.T, sub any) (any, bool) {
	m, ok := sub.(map[string]any)
	if !ok {
		return nil, false
	}
	switch resolve(t, "run-event-payloads", m)["type"] {
	case "string":
		return 1, true
	case "integer":
		return 1.5, true
	case "number", "boolean", "array":
		return "1", true
	case "object":
		return []any{}, true
	}
	return nil, false
}
