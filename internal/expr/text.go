package expr

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// unquote decodes the JSON string v, quotes included. An invalid escape gives
// ok=false.
func unquote(v []byte) (s string, ok bool) {
	if len(v) < 2 || v[0] != '"' || v[len(v)-1] != '"' {
		return "", false
	}
	if inner := v[1 : len(v)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return string(inner), true
	}
	out, err := jsontext.AppendUnquote(nil, v)
	return string(out), err == nil
}

// keyIs reports whether the JSON string that starts at b[i] spells key. It
// allocates only when that string has escapes in it.
func keyIs(b []byte, i int, key string) bool {
	if end := i + 1 + len(key); end < len(b) && b[end] == '"' && string(b[i+1:end]) == key &&
		bytes.IndexByte(b[i+1:end], '\\') < 0 {
		return true
	}
	end := skipString(b, i)
	if end < 0 || bytes.IndexByte(b[i:end], '\\') < 0 {
		return false
	}
	s, ok := unquote(b[i:end])
	return ok && s == key
}

// keyAt decodes the key that starts at b[i].
func keyAt(b []byte, i int) string {
	end := skipString(b, i)
	if end < 0 {
		return ""
	}
	s, _ := unquote(b[i:end])
	return s
}
