package cli

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
)

// answerValue reads what was typed, or the file it names. Text that is no JSON
// is taken as text where the schema does not ask for something else.
func answerValue(s string, schema json.RawMessage) (json.RawMessage, error) {
	if path, ok := strings.CutPrefix(s, "@"); ok {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if !json.Valid(b) {
			return nil, errors.New(path + " does not hold JSON")
		}
		return json.RawMessage(b), nil
	}
	var want struct {
		Type string            `json:"type"`
		Enum []json.RawMessage `json:"enum"`
	}
	_ = json.Unmarshal(schema, &want)
	if len(want.Enum) > 0 {
		return oneOf(s, want.Enum)
	}
	typ := want.Type
	if typ == "integer" {
		typ = "number"
	}
	switch strings.ToLower(s) {
	case "yes", "y":
		if typ == "boolean" {
			return json.RawMessage("true"), nil
		}
	case "no", "n":
		if typ == "boolean" {
			return json.RawMessage("false"), nil
		}
	}
	if typ == "" && strings.ContainsRune(`{["`, rune(s[0])) && !json.Valid([]byte(s)) {
		return nil, errors.New("that looks like JSON, but is not")
	}
	return inputValue(s, typ)
}

func oneOf(s string, allowed []json.RawMessage) (json.RawMessage, error) {
	var names []string
	for _, v := range allowed {
		var text string
		if json.Unmarshal(v, &text) != nil {
			text = string(v)
		}
		if s == text || s == string(v) {
			return v, nil
		}
		names = append(names, text)
	}
	return nil, errors.New("Please answer with one of: " + strings.Join(names, ", ") + ".") //nolint:staticcheck // a sentence for a person
}

// hint says what a question's schema asks for.
func hint(schema json.RawMessage) string {
	var s struct {
		Type string            `json:"type"`
		Enum []json.RawMessage `json:"enum"`
	}
	_ = json.Unmarshal(schema, &s)
	switch {
	case len(s.Enum) > 0:
		var names []string
		for _, v := range s.Enum {
			var text string
			if json.Unmarshal(v, &text) != nil {
				text = string(v)
			}
			names = append(names, plain(text))
		}
		return " [" + strings.Join(names, "/") + "]"
	case s.Type == "boolean":
		return " [yes/no]"
	case s.Type != "" && s.Type != "string":
		return " (" + s.Type + ")"
	}
	return ""
}
