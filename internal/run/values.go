package run

import (
	stdjson "encoding/json"
	"slices"
	"sort"

	"github.com/go-json-experiment/json/jsontext"
)

// values and raws move between the raw JSON types of the public node API and
// of this module. The bytes are shared.
func values(m map[string]stdjson.RawMessage) map[string]jsontext.Value {
	if m == nil {
		return nil
	}
	out := make(map[string]jsontext.Value, len(m))
	for k, v := range m {
		out[k] = jsontext.Value(v)
	}
	return out
}

// Raws is the inverse of values.
func Raws(m map[string]jsontext.Value) map[string]stdjson.RawMessage {
	if m == nil {
		return nil
	}
	out := make(map[string]stdjson.RawMessage, len(m))
	for k, v := range m {
		out[k] = stdjson.RawMessage(v)
	}
	return out
}

// EncodeObject writes raw members as one JSON object, names sorted.
func EncodeObject(m map[string]jsontext.Value) jsontext.Value { return encodeObject(m) }

// encodeObject writes raw members as one object, names sorted: the same state
// always gives the same bytes.
func encodeObject[V ~[]byte](m map[string]V) jsontext.Value {
	names := make([]string, 0, len(m))
	n := 2
	for k, v := range m {
		names = append(names, k)
		n += len(k) + len(v) + 4
	}
	sort.Strings(names)
	b := make([]byte, 0, n)
	b = append(b, '{')
	for i, k := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b, _ = jsontext.AppendQuote(b, k)
		b = append(b, ':')
		if v := m[k]; len(v) == 0 {
			b = append(b, "null"...)
		} else {
			b = append(b, v...)
		}
	}
	return append(b, '}')
}

func contains(list []string, s string) bool { return slices.Contains(list, s) }
