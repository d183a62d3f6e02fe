package expr

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Path returns the member of v that path names, as the exact bytes it has in v
// (the result aliases v), and whether there is one.
//
// A path is names joined by dots, with [n] for an element and ["name"] or
// ['name'] for a name that a dot cannot spell; quoted names take the escapes
// \\ \" \' \n \r \t \b \f and \uXXXX. A dotted name of digits selects an element
// when it meets an array, and a member when it meets an object. The empty path
// is v itself. A path that is malformed or leads nowhere gives false; a member
// that is null gives null and true.
func Path(v jsontext.Value, path string) (jsontext.Value, bool) {
	p, ok := parsePath(path)
	if !ok {
		return nil, false
	}
	return p.in(v)
}

// route is a parsed path.
type route []step

type step struct {
	name  string
	index int // -1: not an element
	dot   bool
}

func (p route) in(v []byte) (jsontext.Value, bool) {
	if len(p) == 0 {
		v = trim(v)
		return v, len(v) > 0
	}
	i := skipSpace(v, 0)
	for _, s := range p {
		if i = s.from(v, i); i < 0 {
			return nil, false
		}
	}
	end := skipValue(v, i)
	if end < 0 {
		return nil, false
	}
	return v[i:end:end], true
}

// from returns where the child that s names starts, given where its parent
// starts, or -1. Only what precedes the child is walked.
func (s step) from(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '{':
		if s.index >= 0 && !s.dot {
			return -1
		}
		return findMember(b, i, s.name)
	case '[':
		return findElement(b, i, s.index)
	}
	return -1
}

func findMember(b []byte, i int, name string) int {
	i++
	for {
		key, val, ok := nextMember(b, i)
		if !ok {
			return -1
		}
		if keyIs(b, key, name) {
			return val
		}
		if i = skipValue(b, val); i < 0 {
			return -1
		}
	}
}

func findElement(b []byte, i, index int) int {
	if index < 0 {
		return -1
	}
	i++
	for ; ; index-- {
		val, ok := nextElement(b, i)
		if !ok {
			return -1
		}
		if index == 0 {
			return val
		}
		if i = skipValue(b, val); i < 0 {
			return -1
		}
	}
}

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

// String spells the path canonically, for messages.
func (p route) String() string {
	var out strings.Builder
	for i, s := range p {
		switch {
		case s.dot && i > 0:
			out.WriteString("." + s.name)
		case s.dot:
			out.WriteString(s.name)
		case s.index >= 0:
			out.WriteString("[" + strconv.Itoa(s.index) + "]")
		default:
			out.WriteString("[" + strconv.Quote(s.name) + "]")
		}
	}
	return out.String()
}
