package jsonschema

import (
	"strconv"
	"strings"
	"sync"
	"testing"
)

func digits(n int) string { return strconv.Itoa(n) }

// TestHostileValues: schemas that compile, and values that would keep them busy
// for minutes or longer, were there no budget. Should one fail, it does not come
// back.
func TestHostileValues(t *testing.T) {
	const much = "takes too many checks to validate"
	nested := func(n int) string { return strings.Repeat(`{"x":`, n) + "1" + strings.Repeat("}", n) }
	lists := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	ones := "[" + strings.Repeat("1,", 200_000) + "1]"
	for name, c := range map[string]struct{ schema, value, want string }{
		"two ways into each member": {
			`{"$defs":{"a":{"allOf":[{"properties":{"x":{"$ref":"#/$defs/a"}}},{"properties":{"x":{"$ref":"#/$defs/a"}}}]}},"$ref":"#/$defs/a"}`,
			nested(100), much},
		"two ways that fail, where nobody asks why": {
			`{"$defs":{"a":{"anyOf":[{"prefixItems":[{"$ref":"#/$defs/a"}],"not":true},{"prefixItems":[{"$ref":"#/$defs/a"}],"not":true}]}},"not":{"$ref":"#/$defs/a"}}`,
			lists(100), much},
		"two dynamic ways": {
			`{"$dynamicAnchor":"n","anyOf":[{"properties":{"x":{"$dynamicRef":"#n"}},"required":["y"]},{"properties":{"x":{"$dynamicRef":"#n"}},"required":["z"]}]}`,
			nested(100), much},
		"a way that only a dynamic reference knows": {
			`{"$id":"http://example.com/r","$ref":"inner","$defs":{
				"x/~%":{"$dynamicAnchor":"n","allOf":[{"$ref":"#/$defs/y"},{"$ref":"#/$defs/y"}]},
				"y":{"properties":{"x":{"$ref":"#/$defs/x~1~0%25"}}},
				"inner":{"$id":"inner","$dynamicRef":"#n","$defs":{"d":{"$dynamicAnchor":"n"}}}}}`,
			nested(100), much},
		"references resolved through all that is open": {
			`{"$dynamicAnchor":"n","allOf":[` + strings.Repeat(`{"$dynamicRef":"#m"},`, 50) + `{"properties":{"x":{"$dynamicRef":"#n"}}}],"$defs":{"m":{"$dynamicAnchor":"m"}}}`,
			nested(500), much},
		"a long enumeration of each of many": {`{"items":{"enum":[` + strings.Repeat("2,", 4000) + `3]}}`, ones, much},
		"many hashes of all":                 {`{"allOf":[` + strings.Repeat(`{"uniqueItems":true},`, 2400) + `{}]}`, "[" + list(20_000, "%.+") + "]", much},
		"a pattern on a long text":           {`{"items":{"pattern":"^(([a-z])+.)+[A-Z]([a-z]){99}$"}}`, `["` + strings.Repeat("a", 1_000_000) + `"]`, "[0] " + much},
		"many patterns on many names":        {`{"patternProperties":{` + list(1000, `"^a%(b|c)*$":{"minimum":%}`) + `}}`, `{` + list(20_000, `"a%":%`) + `}`, much},
		"exponents to be written out":        {`{"items":{"multipleOf":1e-400,"minimum":1e-400,"maximum":1e400}}`, "[" + strings.Repeat("1e400,", 300_000) + "1]", much},
		"nesting":                            {`{"items":{"$ref":"#"}}`, lists(MaxValueDepth + 2), clip(strings.Repeat("[0]", MaxValueDepth+1)) + " is nested more than 512 deep"},
		"nesting to the limit":               {`{"anyOf":[{"type":"null"},{"items":{"$ref":"#"}}]}`, lists(MaxValueDepth + 1), ""},
	} {
		s, err := Compile([]byte(c.schema))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := ""
		if v := s.Validate([]byte(c.value)); v != nil {
			got = v.Error()
		}
		if strings.TrimPrefix(got, "[0] ") != strings.TrimPrefix(c.want, "[0] ") && got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		// and the schema is as good as before
		if v := s.Validate([]byte(`null`)); v != nil && v.Message == much {
			t.Errorf("%s: a spent budget stays spent", name)
		}
	}
}

// TestHostileSchemas: schemas that are hard to compile, and are compiled or
// refused for a reason.
func TestHostileSchemas(t *testing.T) {
	const compiles, refused = true, false
	for schema, want := range map[string]bool{
		`{"properties":{` + list(4900, `"p%":{"minimum":%}`) + `}}`:                                                                                       compiles,
		`{"properties":{` + list(4900, `"p%":{"minimum":"%"}`) + `}}`:                                                                                     refused,
		`{"x":{` + list(450, `"p%":{"minimum":%}`) + `},"allOf":[` + list(450, `{"$ref":"#/x/p%"}`) + `]}`:                                                compiles,
		`{"x":{` + list(450, `"p%":{"$ref":"#/x/q"}`) + `,"q":{}},"allOf":[` + list(450, `{"$ref":"#/x/p%"}`) + `]}`:                                      compiles,
		`{"$defs":{` + list(99, `"a%":{"$id":"http://example.com/%"}`) + `,"z":{"allOf":[` + strings.Repeat(`{"type":"string"},`, 4500) + `{}]}}}`:        compiles,
		strings.Repeat(`{"not":`, maxHeight-1) + "{}" + strings.Repeat("}", maxHeight-1):                                                                  compiles,
		strings.Repeat(`{"not":`, maxHeight) + "{}" + strings.Repeat("}", maxHeight):                                                                      refused,
		`{"$ref":"#/$defs/d0","$defs":{` + list(2000, `"d%":{"allOf":[{"$ref":"#/$defs/d+"}]}`) + `,"d2000":{"properties":{"x":{"$ref":"#/$defs/d0"}}}}}`: refused,
		strings.Repeat(`{"properties":{"a":`, MaxDepth/2) + "{}" + strings.Repeat("}}", MaxDepth/2):                                                       compiles,
		strings.Repeat(`[`, 100_000): refused,
		strings.Repeat(`{"$ref":"#","a":`, 100) + "1" + strings.Repeat("}", 100):                     refused,
		`{"allOf":[{"allOf":[{"$ref":"#/allOf/00"},{"$ref":"#/allOf/000"},{"$ref":"#/allOf/+0"}]}]}`: refused,
		`{"properties":{` + list(300, `"p%":{"pattern":"[\\p{L}]{200}"}`) + `}}`:                     compiles,
		doubling(11, "allOf"):                                compiles,
		`{"$ref":"http://json-schema.org/draft-07/schema#"}`: compiles,
		`{"$schema":"http://json-schema.org/draft-04/schema#","id":"http://example.com/","items":{"$ref":"#"}}`: compiles,
		`{"$schema":"http://json-schema.org/draft-03/schema#"}`:                                                 refused,
		`{"$vocabulary":{"https://example.com/v":true},"$schema":"#"}`:                                          refused,
		`{"$id":"%"}`:                refused,
		`{"$id":"a\\:b","$ref":":"}`: refused,
	} {
		if _, err := Compile([]byte(schema)); (err == nil) != want {
			t.Errorf("Compile(%.70s…): %v", schema, err)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	s, err := Compile([]byte(form))
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 200 {
				if v := s.Validate([]byte(filled)); v != nil {
					t.Errorf("%d: %v", i, v)
				}
				if v := s.Validate([]byte(`{"name":"a","age":-1}`)); v == nil || v.Path != "age" {
					t.Errorf("%d: %v", i, v)
				}
			}
		})
	}
	all.Wait()
}
