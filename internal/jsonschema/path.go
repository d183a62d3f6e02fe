package jsonschema

import (
	"strconv"
	"strings"
)

// appendStep writes one step of a path: .name, ["another name"] or [2].
func appendStep(out *strings.Builder, step any) {
	switch step := step.(type) {
	case int:
		out.WriteString("[" + strconv.Itoa(step) + "]")
	case string:
		switch {
		case !plain(step):
			out.WriteString("[" + strconv.Quote(step) + "]")
		case out.Len() > 0:
			out.WriteString("." + step)
		default:
			out.WriteString(step)
		}
	}
}

// plain reports whether a dot can spell the name.
func plain(name string) bool {
	for i := 0; i < len(name); i++ {
		c := name[i]
		if !(c == '_' || c == '-' || c == '$' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' ||
			c >= '0' && c <= '9' && i > 0) {
			return false
		}
	}
	return name != ""
}

// spell writes the path that tokens take through v, as the validator gives it:
// names and positions alike as strings. Only v tells which they are.
func spell(v any, tokens []string) string {
	var out strings.Builder
	for _, token := range tokens {
		switch parent := v.(type) {
		case []any:
			i, _ := strconv.Atoi(token)
			appendStep(&out, i)
			if v = nil; i >= 0 && i < len(parent) {
				v = parent[i]
			}
		case map[string]any:
			appendStep(&out, token)
			v = parent[token]
		default:
			appendStep(&out, token)
		}
	}
	return clip(out.String())
}
