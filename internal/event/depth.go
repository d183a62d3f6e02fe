package event

// MaxDepth is how deep the JSON of a request, and of anything a node gives out,
// may nest. One bound for both: what comes out could have come in.
const MaxDepth = 128

// Depth is the nesting of a JSON text, valid or not, found without building
// anything, so that hostile nesting is refused before a decoder sees it.
func Depth(b []byte) int {
	deepest, now := 0, 0
	inString, escaped := false, false
	for _, c := range b {
		switch {
		case escaped:
			escaped = false
		case inString:
			switch c {
			case '\\':
				escaped = true
			case '"':
				inString = false
			}
		case c == '"':
			inString = true
		case c == '{' || c == '[':
			now++
			deepest = max(deepest, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return deepest
}
