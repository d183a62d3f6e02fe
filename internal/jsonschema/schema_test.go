package jsonschema

import (
	"errors"
	"strings"
	"testing"
)

func TestCompileRefuses(t *testing.T) {
	deep := func(n int) string { return strings.Repeat(`{"not":`, n) + "{}" + strings.Repeat("}", n) }
	for _, c := range []struct{ schema, want string }{
		// not JSON, or not a schema
		{``, `the schema is not valid JSON`},
		{`{`, `the schema is not valid JSON`},
		{`{"a":1,"a":2}`, `the schema has two members of the same name`},
		{`{} {}`, `the schema is followed by more than white space`},
		{"{\"a\":\"\xff\"}", `the schema's a is not valid JSON`},
		{`[1]`, `the schema must be a boolean or an object, not an array`},
		{`{"type":"strin"}`, `the schema's type must be one of "array", "boolean", "integer", "null", "number", "object", "string"`},
		{`{"properties":{"a b":{"minimum":"x"}}}`, `the schema's properties["a b"].minimum must be a number, not a string`},
		{`{"$schema":"https://example.com/mine"}`, `the schema refers to https://example.com/mine, which is outside of it`},
		{`{"minLength":1e300}`, `the schema's minLength is too large`},
		{`{"allOf":[{"maxItems":18446744073709551616}]}`, `the schema's allOf[0].maxItems is too large`},
		{`{"minimum":1e401}`, `the schema's minimum has an exponent beyond 400`},
		{`{"enum":[` + strings.Repeat("7", 1001) + `]}`, `the schema's enum[0] has more than 1000 digits`},
		// references that leave the document, or lead nowhere
		{`{"$ref":"http://example.com/a"}`, `the schema refers to http://example.com/a, which is outside of it`},
		{`{"items":{"$ref":"https://169.254.169.254/latest"}}`, `the schema refers to https://169.254.169.254/latest, which is outside of it`},
		{`{"$ref":"file:///etc/passwd"}`, `the schema refers to file:///etc/passwd, which is outside of it`},
		{`{"$ref":"/etc/passwd"}`, `the schema refers to schema:///etc/passwd, which is outside of it`},
		{`{"$ref":"other.json#/a"}`, `the schema refers to schema:///other.json, which is outside of it`},
		{`{"$id":"http://example.com/a/","$ref":"b"}`, `the schema refers to http://example.com/a/b, which is outside of it`},
		{`{"$dynamicRef":"http://example.com/a#x"}`, `the schema refers to http://example.com/a, which is outside of it`},
		{`{"$ref":"https://json-schema.org/draft/2020-12/nope"}`, `the schema refers to https://json-schema.org/draft/2020-12/nope, which is outside of it`},
		{`{"$ref":"#/$defs/a"}`, `the schema refers to #/$defs/a, which leads nowhere`},
		{`{"$ref":"#a"}`, `the schema refers to #a, which leads nowhere`},
		{`{"$ref":"#/allOf/00","allOf":[{}]}`, `the schema's $ref is not a reference`},
		{`{"$ref":"#/%zz"}`, `the schema's $ref is not a reference`},
		// loops on one value
		{`{"$ref":"#"}`, `the schema applies itself to the same value, without end`},
		{`{"$dynamicAnchor":"a","$dynamicRef":"#a"}`, `the schema applies itself to the same value, without end`},
		{`{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,"$recursiveRef":"#"}`,
			`the schema applies itself to the same value, without end`},
		{`{"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}},"items":{"$ref":"#/$defs/a"}}`,
			`the schema's $defs.a applies itself to the same value, without end`},
		{`{"if":{"then":{"$ref":"#"}},"then":true}`, ``},
		{`{"if":{"if":true,"then":{"$ref":"#"}},"then":true}`, `the schema applies itself to the same value, without end`},
		// size
		{`{"title":"` + strings.Repeat("x", MaxSize) + `"}`, `the schema is larger than 262144 bytes`},
		{deep(MaxDepth + 1), `the schema's ` + clip(strings.Repeat("not.", MaxDepth)+"not") + ` is nested more than 128 deep`},
		{`{"anyOf":[` + strings.Repeat("{},", MaxSubschemas) + `{}]}`, `the schema's anyOf[4999] holds more than 5000 subschemas`},
		{`{"anyOf":[` + strings.Repeat("true,", MaxSubschemas) + `{}]}`, `the schema's anyOf[4999] holds more than 5000 subschemas`},
		{doubling(60, "allOf"), `the schema comes to more than 50000 checks of one value`},
		{strings.Repeat(`{"not":`, maxHeight) + "{}" + strings.Repeat("}", maxHeight), `the schema puts more than 100 schemas within each other on one value`},
		{doubling(60, "anyOf"), `the schema comes to more than 50000 checks of one value`},
		{`{"items":{"enum":[` + strings.Repeat("1.5,", 10_000) + `2]}}`, `the schema's items comes to more than 50000 checks of one value`},
		{`{"$defs":{` + list(200, `"a%":{"$id":"http://example.com/%"}`) + `}}`, `the schema's $defs.a189.$id is one of more than 100 identifiers`},
		{`{"x":{` + list(600, `"a%":{}`) + `},"allOf":[` + list(600, `{"$ref":"#/x/a%"}`) + `]}`, `the schema's allOf[500].$ref is one of more than 500 different references`},
		// patterns
		{`{"pattern":"("}`, `the schema's pattern is not a regular expression that RE2 knows`},
		{`{"properties":{"a":{"pattern":"(?=a)b"}}}`, `the schema's properties.a.pattern is not a regular expression that RE2 knows`},
		{`{"pattern":"(?:abc){900}"}`, `the schema's pattern is too complex a pattern`},
		{`{"pattern":"` + strings.Repeat("a", 5000) + `"}`, `the schema's pattern is too long a pattern`},
		{`{"patternProperties":{"(":true}}`, `the schema's patternProperties must not have a member named "("`},
	} {
		_, err := Compile([]byte(c.schema))
		if c.want == "" {
			if err != nil {
				t.Errorf("Compile(%.80s) = %v", c.schema, err)
			}
			continue
		}
		var e *Error
		if !errors.As(err, &e) || err.Error() != c.want {
			t.Errorf("Compile(%.80s)\n = %v\n want %s", c.schema, err, c.want)
		}
	}
}

// doubling is a schema that doubles with every definition.
func doubling(n int, keyword string) string {
	return `{"$ref":"#/$defs/d0","$defs":{` +
		list(n, `"d%":{"`+keyword+`":[{"$ref":"#/$defs/d+"},{"$ref":"#/$defs/d+"}]}`) + `,"d` + digits(n) + `":{"type":"string"}}}`
}

// list repeats an item, with % for its number and + for the next.
func list(n int, item string) string {
	out := make([]string, n)
	for i := range out {
		out[i] = strings.NewReplacer("%", digits(i), "+", digits(i+1)).Replace(item)
	}
	return strings.Join(out, ",")
}

func TestValidate(t *testing.T) {
	const shapes = `{"oneOf":[
		{"properties":{"type":{"const":"circle"},"r":{"type":"number"}},"required":["type","r"]},
		{"properties":{"type":{"const":"square"},"side":{"type":"number"}},"required":["type","side"]}]}`
	const tree = `{"type":"object","properties":{"v":{"type":"number"},"children":{"type":"array","items":{"$ref":"#"}}}}`
	for _, c := range []struct{ schema, value, path, message string }{
		{form, filled, ``, ``},
		{form, `{"name":"Ada"}`, ``, `must have the member "age"`},
		{form, `{}`, ``, `must have the members "name", "age"`},
		{form, `{"name":"","age":1}`, `name`, `must have at least 1 character`},
		{form, `{"name":"a","age":1.5}`, `age`, `must be an integer, not a number`},
		{form, `{"name":"a","age":151}`, `age`, `must be at most 150`},
		{form, `{"name":"a","age":1,"tags":["a","x","a"]}`, `tags`, `must not repeat elements, as at 0 and 2`},
		{form, `{"name":"a","age":1,"tags":["a","x"]}`, `tags[1]`, `must be one of "a", "b", "c"`},
		{form, `{"name":"a","age":1,"z":1,"y":1}`, ``, `must not have the members "y", "z"`},
		{form, `[]`, ``, `must be an object, not an array`},
		// places
		{`{"items":{"properties":{"name":{"minLength":2}}}}`, `[{},{},{"name":"x"}]`, `[2].name`, `must have at least 2 characters`},
		{`{"properties":{"a b":{"items":{"type":["string","null"]}}}}`, `{"a b":[null,1]}`, `["a b"][1]`, `must be null or a string, not a number`},
		{`{"properties":{"0":{"type":"null"}}}`, `{"0":1}`, `["0"]`, `must be null, not a number`},
		{tree, `{"children":[{"v":1},{"children":[{"v":"x"}]}]}`, `children[1].children[0].v`, `must be a number, not a string`},
		{`{"items":{"type":"string"}}`, `[1,2,3,4,5,6,7,8,9,10,11]`, `[0]`, `must be a string, not a number`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","items":{"maximum":1}}`, `[0,2,2]`, `[1]`, `must be at most 1`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"maximum":1}],"additionalItems":{"maximum":2}}`, `[0,2,3]`, `[2]`, `must be at most 2`},
		{`{"prefixItems":[{"maximum":1}],"items":{"maximum":2}}`, `[0,2,3]`, `[2]`, `must be at most 2`},
		{`{"items":{"maximum":2},"unevaluatedItems":false}`, `[0,2]`, ``, ``},
		{`{"allOf":[{"prefixItems":[true]},{"prefixItems":[true,true]}],"unevaluatedItems":false}`, `[0,2,3]`, `[2]`, `is not allowed`},
		{`{"anyOf":[{"items":{"type":"string"}},{"items":{"type":"number"}}],"unevaluatedItems":false}`, `[0,2,3]`, ``, ``},
		{`{"not":{"items":{"type":"string"}}}`, `["a","b"]`, ``, `is of a form that is excluded`},
		{`{"not":{"items":{"type":"string"}}}`, `["a",1]`, ``, ``},
		{`{"items":{"maximum":1}}`, `[0,0,2,0,0,0,0,0,0,0,2]`, `[2]`, `must be at most 1`},
		// alternatives
		{shapes, `{"type":"square","side":"x"}`, `side`, `must be a number, not a string`},
		{shapes, `{"type":"circle"}`, ``, `must have the member "r"`},
		{shapes, `{"type":"line"}`, ``, `matches none of the alternatives`},
		{`{"anyOf":[{"type":"null"},{"type":"object","properties":{"a":{"minimum":3.25}}}]}`, `{"a":3.2}`, `a`, `must be at least 3.25`},
		{`{"anyOf":[{"type":"null"},{"type":"string"}]}`, `1`, ``, `matches none of the alternatives`},
		{`{"oneOf":[{"minimum":1},{"maximum":5}]}`, `3`, ``, `matches more than one of the alternatives`},
		{`{"allOf":[{"required":["b"]},{"required":["a"]}]}`, `{}`, ``, `must have the member "a"`},
		{`{"not":{"type":"string"}}`, `"x"`, ``, `is of a form that is excluded`},
		{`{"if":{"required":["a"]},"then":{"required":["b"]},"else":{"required":["c"]}}`, `{"a":1}`, ``, `must have the member "b"`},
		{`{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, ``, `must have the member "b" when it has "a"`},
		{`{"propertyNames":{"pattern":"^[a-z]+$"}}`, `{"A":1}`, ``, `must not have a member named "A"`},
		{`{"unevaluatedProperties":false,"allOf":[{"properties":{"a":true}}]}`, `{"a":1,"b":2}`, `b`, `is not allowed`},
		{`{"prefixItems":[{"type":"string"}],"items":false}`, `["a",1]`, `[1]`, `is not allowed`},
		{`{"contains":{"type":"string"}}`, `[1]`, ``, `must contain an element that it does not`},
		{`false`, `1`, ``, `is not allowed`},
		{`true`, `1`, ``, ``},
		{`{"pattern":"^a+$"}`, `"b"`, ``, `must match the pattern ^a+$`},
		{`{"const":{"a":[1]}}`, `{"a":[1.0]}`, ``, ``},
		{`{"const":{"a":[1]}}`, `{"a":[2]}`, ``, `must be {"a":[1]}`},
		// numbers are exact
		{`{"maximum":9007199254740992}`, `9007199254740993`, ``, `must be at most 9007199254740992`},
		{`{"maximum":9007199254740993}`, `9007199254740993`, ``, ``},
		{`{"exclusiveMinimum":0.1}`, `0.1`, ``, `must be more than 0.1`},
		{`{"exclusiveMinimum":0.1}`, `0.10000000000000000000000001`, ``, ``},
		{`{"multipleOf":0.1}`, `0.3`, ``, ``},
		{`{"multipleOf":0.1}`, `0.30000000000000000001`, ``, `must be a multiple of 0.1`},
		{`{"const":1e400}`, `10e399`, ``, ``},
		{`{"const":1e400}`, `1e399`, ``, `must be 1e400`},
		{`{"type":"integer"}`, `1e2`, ``, ``},
		{`{"type":"integer"}`, `123456789012345678901234567890.0`, ``, ``},
		{`{"uniqueItems":true}`, `[9007199254740992,9007199254740993]`, ``, ``},
		{`{"uniqueItems":true}`, `[1,10e-1]`, ``, `must not repeat elements, as at 0 and 1`},
		// formats are annotations since 2019-09
		{`{"format":"email"}`, `"x"`, ``, ``},
		{`{"$schema":"https://json-schema.org/draft/2020-12/schema","format":"date"}`, `"x"`, ``, ``},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","format":"date"}`, `"x"`, ``, `must be a valid date`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","format":"shoe-size"}`, `"x"`, ``, ``},
		// references
		{`{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, `{"properties":{"a":{"minimum":"x"}}}`, `properties.a.minimum`, `must be a number, not a string`},
		{`{"$id":"http://example.com/a","$defs":{"b":{"$id":"b","type":"string"}},"$ref":"b"}`, `1`, ``, `must be a string, not a number`},
		{`{"$defs":{"b":{"$anchor":"x","type":"string"}},"$ref":"#x"}`, `1`, ``, `must be a string, not a number`},
		{`{"$dynamicAnchor":"n","properties":{"next":{"$dynamicRef":"#n"},"v":{"type":"null"}}}`, `{"next":{"next":{"v":1}}}`, `next.next.v`, `must be null, not a number`},
		// values that are not strict JSON
		{`{}`, ``, ``, `is not valid JSON`},
		{`{}`, `{"a":1,"a":2}`, ``, `has two members of the same name`},
		{`{}`, `[1] 2`, ``, `is followed by more than white space`},
		{`{}`, `[1,{"b":1e401}]`, `[1].b`, `has an exponent beyond 400`},
		{`{}`, "[\"\xff\"]", `[0]`, `is not valid JSON`},
	} {
		s, err := Compile([]byte(c.schema))
		if err != nil {
			t.Errorf("Compile(%.80s): %v", c.schema, err)
			continue
		}
		for range 3 { // the validator goes through maps, in a different order each time
			v := s.Validate([]byte(c.value))
			if v == nil {
				v = &Violation{}
			}
			if v.Path != c.path || v.Message != c.message {
				t.Errorf("%.80s over %.60s\n = %q %s\n want %q %s", c.schema, c.value, v.Path, v.Message, c.path, c.message)
			}
		}
	}
}

func TestViolationIsAnError(t *testing.T) {
	if got := (&Violation{"a.b", "must be null"}).Error(); got != "a.b must be null" {
		t.Error(got)
	}
	if got := (&Violation{"", "must be null"}).Error(); got != "must be null" {
		t.Error(got)
	}
}
