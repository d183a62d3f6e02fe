package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// inputFlags are how a run's inputs are given.
type inputFlags struct {
	pairs []string
	file  string
}

func (f *inputFlags) bind(cmd *cobra.Command) {
	cmd.Flags().StringArrayVarP(&f.pairs, "input", "i", nil, "an input as name=value; JSON where the variable's type asks for it, else text (repeatable)")
	cmd.Flags().StringVar(&f.file, "inputs", "", "file with a JSON object of inputs, - for the standard input")
}

// inputs makes the inputs of a run: those of the file, overlaid by single ones.
func (a *app) inputs(f inputFlags, vars []variable) (json.RawMessage, error) {
	in := map[string]json.RawMessage{}
	if f.file != "" {
		b, err := a.input(f.file)
		if err != nil {
			return nil, err
		}
		if err := strictObject(b, &in); err != nil {
			return nil, usage("the inputs in %s are not a JSON object: %w", f.file, err)
		}
	}
	types := map[string]string{}
	for _, v := range vars {
		types[v.Name] = v.Type
	}
	for _, p := range f.pairs {
		name, text, ok := strings.Cut(p, "=")
		if !ok || name == "" {
			return nil, usage("--input %q is not name=value", p)
		}
		v, err := inputValue(text, types[name])
		if err != nil {
			return nil, usage("--input %s: %w", name, err)
		}
		in[name] = v
	}
	if len(in) == 0 {
		return nil, nil
	}
	return marshal(in)
}

// inputValue reads a value the way its variable's type asks for. Text stays text
// for a string variable even where it looks like a number; for an undeclared
// variable, whatever is JSON is taken as JSON.
func inputValue(text, typ string) (json.RawMessage, error) {
	trimmed := strings.TrimSpace(text)
	is := ""
	if json.Valid([]byte(trimmed)) {
		is = jsonType(trimmed[0])
	}
	switch {
	case typ == "string" && is == "string", typ == "" && is != "":
		return json.RawMessage(trimmed), nil
	case typ == "string" || typ == "":
		return marshal(text)
	case is == typ || is == "null":
		return json.RawMessage(trimmed), nil
	}
	return nil, fmt.Errorf("%q is not %s in JSON", text, article(typ))
}

func jsonType(first byte) string {
	switch first {
	case '"':
		return "string"
	case '{':
		return "object"
	case '[':
		return "array"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}

func article(noun string) string {
	if noun != "" && strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}

// strictObject decodes exactly one JSON object.
func strictObject(b []byte, into *map[string]json.RawMessage) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows it")
	}
	if *into == nil {
		return errors.New("it is null")
	}
	return nil
}
