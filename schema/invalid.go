package schema

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Invalid says that a document does not satisfy its schema, and points at one
// place where it does not.
type Invalid struct {
	Schema string
	Field  string // path of the offending value, "nodes[2].config"; empty for the document itself
	Reason string
	Cause  error // the *jsonschema.ValidationError with every finding, or the syntax error
}

func (e *Invalid) Error() string {
	if e.Field == "" {
		return e.Schema + ": " + e.Reason
	}
	return e.Schema + ": " + e.Field + ": " + e.Reason
}

// Unwrap gives errors.As the cause.
func (e *Invalid) Unwrap() error { return e.Cause }

func malformed(name string, err error) error {
	return &Invalid{Schema: name, Reason: "not acceptable JSON: " + err.Error(), Cause: err}
}

// finding is one leaf of a validation error.
type finding struct {
	field, reason string
	unknown       int // 1 for a member refused only because no subschema vouched for it
}

func invalid(name string, err error) error {
	var ve *jsonschema.ValidationError
	if !errors.As(err, &ve) {
		return err
	}
	var found []finding
	collect(ve, message.NewPrinter(language.English), &found)
	// A choice between shapes fails once per shape, a subschema that fails vouches
	// for none of its members, and the library walks maps: take what is wrong in
	// itself, then the finding that goes deepest, then the first by text, so that
	// the same document always gets the same answer.
	best := slices.MinFunc(found, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.unknown, b.unknown), cmp.Compare(depth(b.field), depth(a.field)),
			cmp.Compare(a.field, b.field), cmp.Compare(a.reason, b.reason))
	})
	return &Invalid{Schema: name, Field: best.field, Reason: best.reason, Cause: ve}
}

func depth(field string) int { return strings.Count(field, ".") + strings.Count(field, "[") }

func collect(ve *jsonschema.ValidationError, p *message.Printer, out *[]finding) {
	if len(ve.Causes) > 0 {
		for _, c := range ve.Causes {
			collect(c, p, out)
		}
		return
	}
	path, reason, unknown := ve.InstanceLocation, ve.ErrorKind.LocalizedString(p), 0
	switch k := ve.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		path, reason = append(slices.Clone(path), slices.Min(k.Properties)), "unknown member"
	case *kind.Required:
		path, reason = append(slices.Clone(path), slices.Min(k.Missing)), "required"
	case *kind.FalseSchema:
		reason, unknown = "unknown member", 1
	}
	*out = append(*out, finding{dotted(path), reason, unknown})
}

// dotted writes a location as the rest of fermata does: nodes[2].config.
func dotted(path []string) string {
	var b strings.Builder
	for _, p := range path {
		if n, err := strconv.Atoi(p); err == nil && n >= 0 && b.Len() > 0 {
			b.WriteString("[" + p + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(p)
	}
	return b.String()
}
