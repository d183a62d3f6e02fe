package expr

import "bytes"

// The scanner walks JSON text that a strict decoder has already accepted, so it
// finds where values end without judging them. On malformed text it may answer
// anything, but never panics, loops or leaves the slice. None of it recurses:
// nesting costs no stack.

// skipSpace returns the index of the first byte from i on that is not white
// space; len(b) at the end.
func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the index after the string whose opening quote is at i, or
// -1 when it has no end.
func skipString(b []byte, i int) int {
	for k := i + 1; k < len(b) && k < i+16; k++ { // most are short keys
		if b[k] == '"' {
			return k + 1
		}
		if b[k] == '\\' {
			break
		}
	}
	for start := i + 1; ; {
		n := bytes.IndexByte(b[start:], '"')
		if n < 0 {
			return -1
		}
		end := start + n
		slashes := 0
		for k := end - 1; k > i && b[k] == '\\'; k-- {
			slashes++
		}
		if slashes%2 == 0 {
			return end + 1
		}
		start = end + 1
	}
}

// skipValue returns the index after the value that starts at i, which is not
// white space, or -1.
func skipValue(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		return skipContainer(b, i)
	}
	start := i
	for i < len(b) && !delimiter(b[i]) {
		i++
	}
	if i == start {
		return -1
	}
	return i
}

func delimiter(c byte) bool {
	switch c {
	case ',', ':', '{', '}', '[', ']', '"', ' ', '\n', '\t', '\r':
		return true
	}
	return false
}

func skipContainer(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			if i = skipString(b, i); i < 0 {
				return -1
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return -1
}

// nextMember steps through an object: i is the index after the opening brace or
// after the previous member's value. It returns where the key and the value of
// the next member start, or ok=false at the end.
func nextMember(b []byte, i int) (key, val int, ok bool) {
	i = skipSpace(b, i)
	if i < len(b) && b[i] == ',' {
		i = skipSpace(b, i+1)
	}
	if i >= len(b) || b[i] != '"' {
		return 0, 0, false
	}
	key = i
	if i = skipString(b, i); i < 0 {
		return 0, 0, false
	}
	i = skipSpace(b, i)
	if i >= len(b) || b[i] != ':' {
		return 0, 0, false
	}
	val = skipSpace(b, i+1)
	return key, val, val < len(b)
}

// nextElement steps through an array in the same way and returns where the next
// element starts.
func nextElement(b []byte, i int) (val int, ok bool) {
	i = skipSpace(b, i)
	if i < len(b) && b[i] == ',' {
		i = skipSpace(b, i+1)
	}
	return i, i < len(b) && b[i] != ']'
}

// trim takes the white space off both ends of a value, without walking it.
func trim(v []byte) []byte {
	end := len(v)
	for end > 0 && (v[end-1] == ' ' || v[end-1] == '\n' || v[end-1] == '\t' || v[end-1] == '\r') {
		end--
	}
	return v[min(skipSpace(v, 0), end):end:end]
}

// kind is the first byte of a value, which tells its JSON type: one of { [ " t f n
// or the start of a number; 0 when there is no value.
func kind(v []byte) byte {
	if i := skipSpace(v, 0); i < len(v) {
		return v[i]
	}
	return 0
}

func isNull(v []byte) bool { return kind(v) == 'n' }
