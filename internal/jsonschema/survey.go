package jsonschema

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// surveyor looks through a schema's document, before it is compiled, for what
// the compiler would take at its word.
type surveyor struct {
	references map[string]bool
	ids        int
	at         []string // the place being visited, as the tokens of a JSON pointer
	dynamic    []string // the JSON pointers of the schemas with a $dynamicAnchor
}

// survey refuses a document with too many references or identifiers, and the
// values of keywords that do not fit the validator. It returns the places of the
// dynamic anchors, which no other reference may lead to.
func survey(doc any) (dynamic []string, err error) {
	s := surveyor{references: map[string]bool{}}
	err = s.visit(doc)
	return s.dynamic, err
}

func (s *surveyor) visit(v any) error {
	switch v := v.(type) {
	case []any:
		for i, elem := range v {
			if err := s.child(strconv.Itoa(i), elem); err != nil {
				return in(i, err)
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			err := s.keyword(name, v[name])
			if err == nil {
				err = s.child(name, v[name])
			}
			if err != nil {
				return in(name, err)
			}
		}
	}
	return nil
}

func (s *surveyor) child(token string, v any) error {
	s.at = append(s.at, token)
	defer func() { s.at = s.at[:len(s.at)-1] }()
	return s.visit(v)
}

func (s *surveyor) pointer() string {
	var out strings.Builder
	for _, token := range s.at {
		out.WriteString("/" + url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(token)))
	}
	return out.String()
}

// counts are the keywords whose value is a number of things. The validator keeps
// them in an int, without a look at what it loses.
var counts = map[string]bool{
	"minLength": true, "maxLength": true, "minItems": true, "maxItems": true,
	"minProperties": true, "maxProperties": true, "minContains": true, "maxContains": true,
}

func (s *surveyor) keyword(name string, value any) error {
	switch value := value.(type) {
	case string:
		switch name {
		case "$ref", "$dynamicRef", "$recursiveRef":
			return s.reference(value)
		case "$id", "$anchor", "$dynamicAnchor":
			if s.ids++; s.ids > maxIDs {
				return faultf("is one of more than %d identifiers", maxIDs)
			}
			if name == "$dynamicAnchor" {
				s.dynamic = append(s.dynamic, s.pointer())
			}
		}
	case json.Number:
		const most = 1 << 53
		if f, err := value.Float64(); counts[name] && (err != nil || f > most) {
			return faultf("is too large")
		}
	}
	return nil
}

func (s *surveyor) reference(ref string) error {
	s.references[ref] = true
	if len(s.references) > maxReferences {
		return faultf("is one of more than %d different references", maxReferences)
	}
	_, fragment, _ := strings.Cut(ref, "#")
	pointer, err := url.PathUnescape(fragment)
	if err != nil {
		return faultf("is not a reference")
	}
	if !strings.HasPrefix(pointer, "/") {
		return nil
	}
	for _, token := range strings.Split(pointer, "/")[1:] {
		// The validator takes 07 and +7 for 7, and compiles whatever each
		// spelling leads to anew: a few of them multiply a schema by itself.
		if n, err := strconv.Atoi(token); err == nil && strconv.Itoa(n) != token {
			return faultf("is not a reference")
		}
	}
	return nil
}
