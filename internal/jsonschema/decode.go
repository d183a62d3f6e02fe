package jsonschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// decoder reads JSON into the forms the validator takes, strictly: no duplicate
// names, no invalid UTF-8, numbers as their text.
type decoder struct {
	text     *jsontext.Decoder
	maxDepth int
	maxNodes int // of objects and booleans; 0 means no limit
	nodes    int
	tokens   int
	deepest  int
}

// fault is why a document was not read, and where: its steps, from the outside.
type fault struct {
	at      []any // names and positions, innermost first
	message string
}

func (f *fault) Error() string { return f.message }

func (f *fault) path() string {
	var out strings.Builder
	for i := len(f.at) - 1; i >= 0; i-- {
		appendStep(&out, f.at[i])
	}
	return clip(out.String())
}

// in notes that the fault err happened within the child called step.
func in(step any, err error) error {
	var f *fault
	if errors.As(err, &f) {
		f.at = append(f.at, step)
	}
	return err
}

func faultf(format string, args ...any) error {
	return &fault{message: fmt.Sprintf(format, args...)}
}

// decode reads the one value of raw.
func (d *decoder) decode(raw []byte) (any, error) {
	d.text = jsontext.NewDecoder(bytes.NewBuffer(raw))
	v, err := d.value(0)
	if err != nil {
		return nil, err
	}
	if _, err := d.text.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, faultf("is followed by more than white space")
	}
	return v, nil
}

func (d *decoder) value(depth int) (any, error) {
	if depth > d.maxDepth {
		return nil, faultf("is nested more than %d deep", d.maxDepth)
	}
	d.deepest = max(d.deepest, depth)
	tok, err := d.next()
	if err != nil {
		return nil, err
	}
	switch tok.Kind() {
	case '{':
		return d.object(depth)
	case '[':
		return d.array(depth)
	case '"':
		return tok.String(), nil
	case '0':
		return number(tok.String())
	case 't', 'f':
		return tok.Bool(), d.count()
	}
	return nil, nil
}

func (d *decoder) next() (jsontext.Token, error) {
	d.tokens++
	tok, err := d.text.ReadToken()
	switch {
	case err == nil:
		return tok, nil
	case errors.Is(err, jsontext.ErrDuplicateName):
		return tok, faultf("has two members of the same name")
	}
	return tok, faultf("is not valid JSON")
}

func (d *decoder) count() error {
	if d.nodes++; d.maxNodes > 0 && d.nodes > d.maxNodes {
		return faultf("holds more than %d subschemas", d.maxNodes)
	}
	return nil
}

func (d *decoder) object(depth int) (any, error) {
	if err := d.count(); err != nil {
		return nil, err
	}
	out := map[string]any{}
	for d.text.PeekKind() != '}' {
		name, err := d.next()
		if err != nil {
			return nil, err
		}
		key := name.String() // the token does not outlive the next one
		v, err := d.value(depth + 1)
		if err != nil {
			return nil, in(key, err)
		}
		out[key] = v
	}
	_, err := d.next()
	return out, err
}

func (d *decoder) array(depth int) (any, error) {
	out := []any{}
	for d.text.PeekKind() != ']' {
		v, err := d.value(depth + 1)
		if err != nil {
			return nil, in(len(out), err)
		}
		out = append(out, v)
	}
	_, err := d.next()
	return out, err
}

func number(text string) (any, error) {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	if len(mantissa) > maxDigits {
		return nil, faultf("has more than %d digits", maxDigits)
	}
	if exponent != "" {
		if n, err := strconv.Atoi(exponent); err != nil || n > maxExponent || n < -maxExponent {
			return nil, faultf("has an exponent beyond %d", maxExponent)
		}
	}
	return json.Number(text), nil
}
