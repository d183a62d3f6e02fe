package jsonschema

import (
	"errors"
	"net/url"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// refusal makes an *Error of what the decoder or the surveyor found.
func refusal(err error) *Error {
	var f *fault
	if errors.As(err, &f) {
		return &Error{f.path(), f.message}
	}
	return &Error{"", "cannot be read"}
}

// explain makes an *Error of one of the compiler's.
func explain(err error, doc any) *Error {
	var (
		out     *jsonschema.LoadURLError
		invalid *jsonschema.SchemaValidationError
		verr    *jsonschema.ValidationError
		pattern *jsonschema.InvalidRegexError
		pointer *jsonschema.JSONPointerNotFoundError
		anchor  *jsonschema.AnchorNotFoundError
	)
	switch {
	case errors.As(err, &out):
		return &Error{"", "refers to " + clip(out.URL) + ", which is outside of it"}
	case errors.As(err, &invalid) && errors.As(invalid.Err, &verr):
		worst := pick(verr)
		return &Error{spell(doc, append(tokens(invalid.URL), worst.InstanceLocation...)), message(worst)}
	case errors.As(err, &pattern):
		return &Error{placeOf(pattern.URL, doc), pattern.Err.Error()}
	case errors.As(err, &pointer):
		return &Error{"", "refers to " + clip(local(pointer.URL)) + ", which leads nowhere"}
	case errors.As(err, &anchor):
		return &Error{"", "refers to " + clip(local(anchor.Reference)) + ", which leads nowhere"}
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return &Error{"", "cannot be compiled: " + clip(strings.ReplaceAll(text, base, ""))}
}

// local takes the identifier of a schema without one off a reference.
func local(ref string) string { return strings.TrimPrefix(ref, base) }

// placeOf spells the place in the document that a location of the compiler's, a
// URL with a JSON pointer, names.
func placeOf(location string, doc any) string { return spell(doc, tokens(location)) }

func tokens(location string) []string {
	_, fragment, _ := strings.Cut(location, "#")
	pointer, err := url.PathUnescape(fragment)
	if err != nil || !strings.HasPrefix(pointer, "/") {
		return nil
	}
	list := strings.Split(pointer[1:], "/")
	for i, token := range list {
		list[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
	}
	return list
}
