package schema

import (
	"bytes"
	stdjson "encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth bounds nesting: a document deeper than any the wire has a use for is
// refused before it can exhaust a stack.
const maxDepth = 256

// maxExponent bounds a number's exponent. Numbers are compared exactly, and one
// like 1e1000000 is a few bytes of document but megabytes of integer.
const maxExponent = 1000

// decode reads one JSON value in the form the validator wants: numbers keep the
// digits they were written with. It is stricter than encoding/json: keys that
// occur twice and text that is not UTF-8 are errors.
func decode(b []byte) (any, error) {
	d := jsontext.NewDecoder(bytes.NewReader(b))
	v, err := decodeValue(d)
	if err != nil {
		return nil, err
	}
	if _, err := d.ReadToken(); err != io.EOF {
		if err == nil {
			err = fmt.Errorf("more than one value")
		}
		return nil, err
	}
	return v, nil
}

func decodeValue(d *jsontext.Decoder) (any, error) {
	if d.StackDepth() > maxDepth {
		return nil, fmt.Errorf("nested more than %d deep", maxDepth)
	}
	t, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch t.Kind() {
	case 'n':
		return nil, nil
	case 't', 'f':
		return t.Bool(), nil
	case '"':
		return t.String(), nil
	case '0':
		return number(t.String())
	case '[':
		return decodeArray(d)
	default:
		return decodeObject(d)
	}
}

func decodeArray(d *jsontext.Decoder) (any, error) {
	a := []any{}
	for d.PeekKind() != ']' {
		v, err := decodeValue(d)
		if err != nil {
			return nil, err
		}
		a = append(a, v)
	}
	_, err := d.ReadToken()
	return a, err
}

func decodeObject(d *jsontext.Decoder) (any, error) {
	o := map[string]any{}
	for d.PeekKind() != '}' {
		t, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		key := t.String() // before the next token: it shares the decoder's buffer
		if o[key], err = decodeValue(d); err != nil {
			return nil, err
		}
	}
	_, err := d.ReadToken()
	return o, err
}

func number(s string) (any, error) {
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		e, err := strconv.Atoi(s[i+1:])
		if err != nil || e > maxExponent || e < -maxExponent {
			return nil, fmt.Errorf("number %.40s has an exponent beyond %d", s, maxExponent)
		}
	}
	return stdjson.Number(s), nil
}
