package builtin

import (
	"encoding/json"
	"slices"
)

const dialect = `"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object"`

// closed is the schema of a config that may hold nothing but the properties
// given and notes under names of their own that begin with "x-".
func closed(properties string, required ...string) json.RawMessage {
	return json.RawMessage(`{` + dialect + `,"properties":{` + properties + `},` +
		`"required":` + string(quotes(required)) + `,` +
		`"patternProperties":{"^x-":{}},"additionalProperties":false}`)
}

// open is the schema of a config that may hold anything besides the properties
// given: other hosts keep hints of their own there.
func open(properties string) json.RawMessage {
	return json.RawMessage(`{` + dialect + `,"properties":{` + properties + `}}`)
}

// Pieces the schemas share.
const (
	expressionType = `{"type":"string","minLength":1,"maxLength":16384,"description":"An expression."}`
	nameType       = `{"type":"string","minLength":1,"maxLength":256}`
	namesType      = `{"type":"object","additionalProperties":` + nameType + `}`
	textsType      = `{"type":"array","items":{"type":"string"}}`
	timeoutType    = `{"type":"integer","minimum":0,"maximum":316224000000,"description":"Milliseconds; 0 for none."}`
	itemsType      = `{"type":["array","string"],"minLength":1,"maxItems":10000,"description":"A list, or an expression that gives one."}`
)

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
