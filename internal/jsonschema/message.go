package jsonschema

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// message says what is wrong, as it follows the name of a value. It is written
// here and not by the validator, whose messages round numbers.
func message(f *failure) string {
	switch k := f.ErrorKind.(type) {
	case *kind.Type:
		return "must be " + alternatives(k.Want) + ", not " + article(k.Got)
	case *kind.Const:
		return "must be " + literal(k.Want)
	case *kind.Enum:
		return "must be one of " + literals(k.Want)
	case *kind.Required:
		return "must have " + names(k.Missing)
	case *kind.AdditionalProperties:
		slices.Sort(k.Properties) // which come in the order of a map
		return "must not have " + names(k.Properties)
	case *kind.FalseSchema:
		return "is not allowed"
	case *kind.Pattern:
		return "must match the pattern " + clip(k.Want)
	case *kind.Format:
		if k.Want == "regex" && k.Err != nil {
			return clip(k.Err.Error())
		}
		return "must be a valid " + k.Want
	case *kind.PropertyNames:
		return "must not have a member named " + clip(fmt.Sprintf("%q", k.Property))
	case *kind.UniqueItems:
		return fmt.Sprintf("must not repeat elements, as at %d and %d", k.Duplicates[0], k.Duplicates[1])
	case *kind.AnyOf:
		return "matches none of the alternatives"
	case *kind.OneOf:
		if len(k.Subschemas) > 1 {
			return "matches more than one of the alternatives"
		}
		return "matches none of the alternatives"
	case *kind.Not:
		return "is of a form that is excluded"
	case *kind.Dependency:
		return fmt.Sprintf("must have %s when it has %s", names(k.Missing), clip(fmt.Sprintf("%q", k.Prop)))
	case *kind.DependentRequired:
		return fmt.Sprintf("must have %s when it has %s", names(k.Missing), clip(fmt.Sprintf("%q", k.Prop)))
	case *kind.RefCycle:
		return "cannot be validated, because the schema applies itself without end"
	}
	if text := bound(f); text != "" {
		return text
	}
	return "does not match the schema"
}

// bound says which limit a value is beyond, or nothing.
func bound(f *failure) string {
	switch k := f.ErrorKind.(type) {
	case *kind.Minimum:
		return "must be at least " + exact(k.Want)
	case *kind.Maximum:
		return "must be at most " + exact(k.Want)
	case *kind.ExclusiveMinimum:
		return "must be more than " + exact(k.Want)
	case *kind.ExclusiveMaximum:
		return "must be less than " + exact(k.Want)
	case *kind.MultipleOf:
		return "must be a multiple of " + exact(k.Want)
	case *kind.MinLength:
		return fmt.Sprintf("must have at least %s", plural(k.Want, "character"))
	case *kind.MaxLength:
		return fmt.Sprintf("must have at most %s", plural(k.Want, "character"))
	case *kind.MinItems:
		return fmt.Sprintf("must have at least %s", plural(k.Want, "element"))
	case *kind.MaxItems:
		return fmt.Sprintf("must have at most %s", plural(k.Want, "element"))
	case *kind.AdditionalItems:
		return fmt.Sprintf("must not have its last %s", plural(k.Count, "element"))
	case *kind.MinProperties:
		return fmt.Sprintf("must have at least %s", plural(k.Want, "member"))
	case *kind.MaxProperties:
		return fmt.Sprintf("must have at most %s", plural(k.Want, "member"))
	case *kind.Contains:
		return "must contain an element that it does not"
	case *kind.MinContains:
		return fmt.Sprintf("must contain at least %s of a form that it has fewer of", plural(k.Want, "element"))
	case *kind.MaxContains:
		return fmt.Sprintf("must contain at most %s of a form that it has more of", plural(k.Want, "element"))
	}
	return ""
}

func article(jsonType string) string {
	switch jsonType {
	case "null":
		return "null"
	case "array", "object", "integer":
		return "an " + jsonType
	}
	return "a " + jsonType
}

func alternatives(types []string) string {
	out := make([]string, len(types))
	for i, t := range types {
		out[i] = article(t)
	}
	return strings.Join(out, " or ")
}

func names(list []string) string {
	what := "the member "
	if len(list) > 1 {
		what = "the members "
	}
	quoted := make([]string, len(list))
	for i, name := range list {
		quoted[i] = fmt.Sprintf("%q", name)
	}
	return clip(what + strings.Join(quoted, ", "))
}

func literals(values []any) string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = literal(v)
	}
	return clip(strings.Join(out, ", "))
}

func literal(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return "another value"
	}
	return clip(string(text))
}

// clip keeps a message or a path short, whatever the schema or the value put
// into it.
func clip(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// exact writes a limit with all its digits: a schema's numbers are decimals.
func exact(r *big.Rat) string {
	if r.IsInt() {
		return clip(r.Num().String())
	}
	digits, _ := r.FloatPrec()
	return clip(r.FloatString(digits))
}
