package expr

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// parsePath parses the grammar of Path.
func parsePath(src string) (route, bool) {
	if len(src) > MaxSource {
		return nil, false
	}
	var p route
	for i := 0; i < len(src); {
		if src[i] == '[' {
			s, n := parseBracket(src[i:])
			if n == 0 {
				return nil, false
			}
			p, i = append(p, s), i+n
			continue
		}
		if len(p) > 0 {
			if src[i] != '.' {
				return nil, false
			}
			i++
		}
		n := nameLength(src[i:])
		if n == 0 {
			return nil, false
		}
		name := src[i : i+n]
		p, i = append(p, step{name: name, index: position(name), dot: true}), i+n
	}
	return p, true
}

// nameLength measures the dotted name at the start of s. What a dotted name may
// hold is generous ("order-id", "prénom"), because nothing else competes for it.
func nameLength(s string) int {
	n := strings.IndexFunc(s, func(r rune) bool {
		return r <= ' ' || r == utf8.RuneError || strings.ContainsRune(`.[]()"'\`+"`", r)
	})
	if n < 0 {
		n = len(s)
	}
	return n
}

// position is the element that a run of digits names, or -1.
func position(s string) int {
	if s == "" || len(s) > 9 {
		return -1
	}
	n := 0
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return -1
		}
		n = n*10 + int(s[i]-'0')
	}
	return n
}

// parseBracket parses [n], ["name"] or ['name'] at the start of s and returns
// its length, 0 when it is none of them.
func parseBracket(s string) (step, int) {
	if len(s) < 3 {
		return step{}, 0
	}
	if q := s[1]; q == '"' || q == '\'' {
		name, n := parseQuoted(s[1:])
		if n == 0 || 1+n >= len(s) || s[1+n] != ']' {
			return step{}, 0
		}
		return step{name: name, index: -1}, n + 2
	}
	end := strings.IndexByte(s, ']')
	if end < 0 {
		return step{}, 0
	}
	n := position(s[1:end])
	if n < 0 {
		return step{}, 0
	}
	return step{index: n}, end + 1
}

// parseQuoted reads the quoted name at the start of s and returns its length.
// The escapes are those that mean the same in JSON and in CEL, so that a source
// means the same whether or not it takes the short way.
func parseQuoted(s string) (string, int) {
	quote := s[0]
	var out strings.Builder
	for i := 1; i < len(s); {
		switch c := s[i]; {
		case c == quote:
			return out.String(), i + 1
		case c < ' ':
			return "", 0
		case c != '\\':
			out.WriteByte(c)
			i++
		default:
			r, n := parseEscape(s[i:])
			if n == 0 {
				return "", 0
			}
			out.WriteRune(r)
			i += n
		}
	}
	return "", 0
}

var escapes = map[byte]rune{
	'\\': '\\', '"': '"', '\'': '\'', 'n': '\n', 'r': '\r', 't': '\t', 'b': '\b', 'f': '\f',
}

func parseEscape(s string) (rune, int) {
	if len(s) < 2 {
		return 0, 0
	}
	if r, ok := escapes[s[1]]; ok {
		return r, 2
	}
	if s[1] != 'u' || len(s) < 6 {
		return 0, 0
	}
	n, err := strconv.ParseUint(s[2:6], 16, 16)
	if err != nil || !utf8.ValidRune(rune(n)) {
		return 0, 0
	}
	return rune(n), 6
}
