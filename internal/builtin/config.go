package builtin

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"

	"github.com/fermata-run/fermata/node"
)

// bind reads the config, with the input ports laid over it, into v.
func bind(in *node.Input, v any) error {
	err := in.Bind(v)
	if err == nil {
		return nil
	}
	// Bind words its failure after the Go types. Find the member once more and
	// name it in the author's terms.
	if e := misfit("config", in.Config, v); e != nil {
		return e
	}
	ports, _ := json.Marshal(in.Inputs)
	if e := misfit("inputs", ports, v); e != nil {
		return e
	}
	return err
}

// settings reads the config alone. Members that hold an expression, or decide
// what kind of thing a node does, are read this way.
func settings(in *node.Input, v any) error { return bind(&node.Input{Config: in.Config}, v) }

// declared reads the config when a workflow is registered.
func declared(c node.CheckContext, v any) error { return bind(&node.Input{Config: c.Config}, v) }

func misfit(where string, raw json.RawMessage, v any) error {
	var e *json.UnmarshalTypeError
	if len(raw) == 0 || !errors.As(json.Unmarshal(raw, v), &e) {
		return nil
	}
	field := where
	if e.Field != "" {
		field += "." + e.Field
	}
	return badMember(field, "must be %s, not %s", want(e.Type), given(e.Value))
}

func want(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "an object"
	}
	return "another kind of value"
}

func given(value string) string {
	kind, _, _ := strings.Cut(value, " ") // a number comes with its digits
	switch kind {
	case "array":
		return "a list"
	case "object":
		return "an object"
	case "bool":
		return "true or false"
	}
	return "a " + kind
}

// badMember refuses one member of the config or one input port.
func badMember(field, format string, args ...any) *node.Error {
	e := node.Fail(node.CodeConfig, "%s "+format, append([]any{field}, args...)...)
	e.Details = map[string]any{"field": field}
	return e
}

// member returns an input port or, failing that, a config member, as the bytes
// it came in; nil if there is neither.
func member(in *node.Input, name string) json.RawMessage {
	if v, ok := in.Inputs[name]; ok {
		return v
	}
	var all map[string]json.RawMessage
	if len(in.Config) == 0 || json.Unmarshal(in.Config, &all) != nil {
		return nil
	}
	return all[name]
}

// number is a config member that may be any JSON number; whole says which whole
// number it is, however it was written.
type number struct{ raw json.RawMessage }

// UnmarshalJSON keeps whatever is there, so that whole can name the member it
// refuses. Null changes nothing, as for any other Go value.
func (n *number) UnmarshalJSON(b []byte) error {
	if string(b) != "null" {
		n.raw = append(json.RawMessage(nil), b...)
	}
	return nil
}

func (n number) set() bool { return len(n.raw) > 0 && string(n.raw) != "null" }

// whole returns the number, or def if it is absent.
func (n number) whole(field string, def, least, most int64) (int64, error) {
	if !n.set() {
		return def, nil
	}
	d, ok := parseDecimal(n.raw)
	if !ok {
		return 0, badMember(field, "must be a number")
	}
	v, ok := d.int64()
	if !ok || v < least || v > most {
		return 0, badMember(field, "must be a whole number from %d to %d", least, most)
	}
	return v, nil
}

// choice returns v, or def if it is empty, if that is one of allowed.
func choice(field, v, def string, allowed ...string) (string, error) {
	if v == "" {
		v = def
	}
	for _, a := range allowed {
		if v == a {
			return v, nil
		}
	}
	return "", badMember(field, "must be one of %s", strings.Join(allowed, ", "))
}
