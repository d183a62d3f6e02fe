package expr

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math"
	"slices"
	"strconv"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"github.com/go-json-experiment/json/jsontext"
)

// encode writes the result of an evaluation as JSON. Values that are still raw
// are copied byte for byte. An empty optional is null; a value that JSON has no
// word for (NaN, a type, a map with keys that are not strings) is an error.
func encode(dst []byte, v ref.Val, depth int) ([]byte, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("the result is nested more than %d deep", maxNesting)
	}
	if len(dst) > MaxResult {
		return nil, errResultSize
	}
	switch v := v.(type) {
	case raw:
		if len(dst)+len(v.json()) > MaxResult {
			return nil, errResultSize
		}
		return append(dst, v.json()...), nil
	case types.Null:
		return append(dst, "null"...), nil
	case types.Bool:
		return strconv.AppendBool(dst, bool(v)), nil
	case types.Int:
		return strconv.AppendInt(dst, int64(v), 10), nil
	case types.Uint:
		return strconv.AppendUint(dst, uint64(v), 10), nil
	case types.Double:
		return appendDouble(dst, float64(v))
	case types.String:
		return appendString(dst, string(v))
	case types.Bytes:
		return appendString(dst, base64.StdEncoding.EncodeToString(v))
	case types.Timestamp, types.Duration:
		return appendString(dst, fmt.Sprint(v.ConvertToType(types.StringType).Value()))
	case *types.Optional:
		if !v.HasValue() {
			return append(dst, "null"...), nil
		}
		return encode(dst, v.GetValue(), depth+1)
	case traits.Lister:
		return encodeList(dst, v, depth)
	case traits.Mapper:
		return encodeMap(dst, v, depth)
	case *types.Err:
		return nil, v
	}
	return nil, fmt.Errorf("a value of type %s has no form in JSON", v.Type().TypeName())
}

var errResultSize = fmt.Errorf("the result is larger than %d bytes", MaxResult)

func encodeList(dst []byte, l traits.Lister, depth int) ([]byte, error) {
	dst = append(dst, '[')
	it := l.Iterator()
	for i := 0; it.HasNext() == types.True; i++ {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = encode(dst, it.Next(), depth+1); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

// encodeMap writes the members in the order of their keys: Go's own order of a
// map changes from run to run, and a log must not.
func encodeMap(dst []byte, m traits.Mapper, depth int) ([]byte, error) {
	keys, err := sortedKeys(m)
	if err != nil {
		return nil, err
	}
	dst = append(dst, '{')
	for i, key := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = appendString(dst, string(key)); err != nil {
			return nil, err
		}
		dst = append(dst, ':')
		v, _ := m.Find(key)
		if dst, err = encode(dst, v, depth+1); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

func sortedKeys(m traits.Mapper) ([]types.String, error) {
	var keys []types.String
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		s, ok := key.(types.String)
		if !ok {
			return nil, fmt.Errorf("the key %v of a map is not a string", key.Value())
		}
		keys = append(keys, s)
	}
	slices.Sort(keys)
	return keys, nil
}

func appendString(dst []byte, s string) ([]byte, error) {
	out, err := jsontext.AppendQuote(dst, s)
	if err != nil {
		return nil, fmt.Errorf("a string of the result is not valid UTF-8")
	}
	return out, nil
}

// appendDouble writes the shortest decimal that reads back as f, in the form
// JavaScript uses (3, 0.1, 1e+21).
func appendDouble(dst []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, fmt.Errorf("the number %v has no form in JSON", f)
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, format, -1, 64)
	if i := bytes.IndexByte(dst[start:], 'e'); i >= 0 { // e-07 → e-7
		if i += start + 2; i+1 < len(dst) && dst[i] == '0' {
			dst = append(dst[:i], dst[i+1:]...)
		}
	}
	return dst, nil
}
