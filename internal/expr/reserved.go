package expr

import "strings"

// CEL reserves the word "loop", which our protocol gives to authors as a name.
// The source that goes to CEL has it spelled loopAlias: of the same length, so
// that columns stay right, and refused when an author writes it.
const (
	loopName  = "loop"
	loopAlias = "lo0p"
)

func spell(name string) string {
	if name == loopName {
		return loopAlias
	}
	return name
}

func unspell(name string) string {
	if name == loopAlias {
		return loopName
	}
	return name
}

// respell replaces the name loop by its alias wherever it stands for a value,
// and reports the position of an alias that the author wrote, or -1.
func respell(src string) (string, int) {
	if !strings.Contains(src, loopName) && !strings.Contains(src, loopAlias) {
		return src, -1
	}
	out := []byte(src)
	field := false // whether the next word is a member's name, as after a dot
	for i := 0; i < len(src); {
		n, prefix := wordLength(src[i:]), prefixLength(src[i:])
		switch {
		case prefix > 0:
			field = false
			i += prefix + literalLength(src[i+prefix:], strings.ContainsAny(src[i:i+prefix], "rR"))
		case n > 0:
			if word := src[i : i+n]; !field && word == loopName {
				copy(out[i:], loopAlias)
			} else if !field && word == loopAlias {
				return src, i
			}
			field = false
			i += n
		case src[i] == '.':
			field = true
			i++
		case src[i] == '?' && field, strings.IndexByte(" \t\r\n\f", src[i]) >= 0:
			i++
		default:
			field = false
			i += opaqueLength(src[i:])
		}
	}
	return string(out), -1
}

// wordLength measures the word or number at the start of s.
func wordLength(s string) int {
	n := 0
	for n < len(s) && (s[n] == '_' || s[n] >= '0' && s[n] <= '9' ||
		s[n] >= 'a' && s[n] <= 'z' || s[n] >= 'A' && s[n] <= 'Z') {
		n++
	}
	return n
}

// prefixLength measures the letters at the start of s that belong to a string
// literal behind them, as in r"loop".
func prefixLength(s string) int {
	n := wordLength(s)
	if n > 0 && n <= 2 && n < len(s) && (s[n] == '"' || s[n] == '\'') &&
		strings.Trim(strings.ToLower(s[:n]), "rb") == "" {
		return n
	}
	return 0
}

// opaqueLength measures what stands at the start of s when it is not a word: a
// string, a quoted member, a comment, or one byte of anything else.
func opaqueLength(s string) int {
	switch {
	case s[0] == '"' || s[0] == '\'':
		return literalLength(s, false)
	case s[0] == '`':
		return through(s, 1, "`")
	case strings.HasPrefix(s, "//"):
		return through(s, 2, "\n")
	}
	return 1
}

// literalLength measures the string literal at the start of s.
func literalLength(s string, isRaw bool) int {
	quote := s[:1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(s, triple) {
		quote = triple
	}
	for i := len(quote); i < len(s); i++ {
		if s[i] == '\\' && !isRaw {
			i++
		} else if strings.HasPrefix(s[i:], quote) {
			return i + len(quote)
		}
	}
	return len(s)
}

// through is the index after the next end in s, from i on.
func through(s string, i int, end string) int {
	if n := strings.Index(s[i:], end); n >= 0 {
		return i + n + len(end)
	}
	return len(s)
}
