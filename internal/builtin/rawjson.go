package builtin

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/go-json-experiment/json/jsontext"
)

// pair is one member of an object.
type pair struct {
	name  string
	value json.RawMessage
}

// object is a JSON object under construction. Its members keep their order, and
// their values the bytes they came in.
type object []pair

// set adds a member, or gives it a new value in its old place.
func (o *object) set(name string, value json.RawMessage) {
	for i := range *o {
		if (*o)[i].name == name {
			(*o)[i].value = value
			return
		}
	}
	*o = append(*o, pair{name, value})
}

func (o object) raw() json.RawMessage {
	b := []byte{'{'}
	for i, p := range o {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, quote(p.name)...)
		b = append(b, ':')
		b = append(b, orNull(p.value)...)
	}
	return append(b, '}')
}

// members reads an object, its members in their order.
func members(raw json.RawMessage) (object, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	t, err := dec.Token()
	if err != nil {
		return nil, err
	}
	if t != json.Delim('{') {
		return nil, errors.New("not an object")
	}
	var o object
	seen := map[string]int{}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			return nil, err
		}
		key, _ := name.(string)
		if i, ok := seen[key]; ok {
			o[i].value = v
			continue
		}
		seen[key] = len(o)
		o = append(o, pair{key, v})
	}
	_, err = dec.Token()
	return o, err
}

func array(values []json.RawMessage) json.RawMessage {
	b := []byte{'['}
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, orNull(v)...)
	}
	return append(b, ']')
}

// quote writes a string. What is no UTF-8 in it becomes the replacement
// character.
func quote(s string) json.RawMessage {
	b, _ := jsontext.AppendQuote(nil, s)
	return b
}

func quotes(list []string) json.RawMessage {
	out := make([]json.RawMessage, len(list))
	for i, s := range list {
		out[i] = quote(s)
	}
	return array(out)
}

func orNull(v json.RawMessage) json.RawMessage {
	if len(v) == 0 {
		return json.RawMessage("null")
	}
	return v
}

// kind is the JSON kind of a value in words, "nothing" for no value.
func kind(v json.RawMessage) string {
	v = bytes.TrimLeft(v, " \t\r\n")
	if len(v) == 0 {
		return "nothing"
	}
	switch v[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	}
	return "a number"
}

// absent reports whether v is no value or null.
func absent(v json.RawMessage) bool {
	k := kind(v)
	return k == "nothing" || k == "null"
}
