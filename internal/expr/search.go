package expr

import (
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// indexOf and lastIndexOf replace those of CEL's strings extension, with the
// same meaning: theirs compare at every position, which for two long strings is
// quadratic.
const (
	indexOf     = "indexOf"
	lastIndexOf = "lastIndexOf"
)

var searches = map[string]call{
	indexOf: func(args ...ref.Val) ref.Val {
		return search(args, indexOf, func(s, sub string, from int) int {
			start := runeOffset(s, from)
			if sub == "" {
				return min(from, utf8.RuneCountInString(s))
			}
			if i := strings.Index(s[start:], sub); i >= 0 {
				return utf8.RuneCountInString(s[:start+i])
			}
			return -1
		})
	},
	lastIndexOf: func(args ...ref.Val) ref.Val {
		return search(args, lastIndexOf, func(s, sub string, from int) int {
			n := utf8.RuneCountInString(s)
			if sub == "" {
				return min(from, n)
			}
			if from >= n && len(args) == 3 {
				return -1
			}
			end := min(runeOffset(s, from)+len(sub), len(s))
			if i := strings.LastIndex(s[:end], sub); i >= 0 {
				return utf8.RuneCountInString(s[:i])
			}
			return -1
		})
	},
}

// search takes s.f(sub) and s.f(sub, from) apart. Positions count characters.
func search(args []ref.Val, name string, find func(s, sub string, from int) int) ref.Val {
	if len(args) < 2 {
		return noOverload()
	}
	s, ok1 := args[0].(types.String)
	sub, ok2 := args[1].(types.String)
	if !ok1 || !ok2 {
		return types.NewErr("no such overload: %s.%s(%s)",
			args[0].Type().TypeName(), name, args[1].Type().TypeName())
	}
	from := 0
	if name == lastIndexOf {
		from = len(s)
	}
	if len(args) == 3 {
		n, ok := args[2].(types.Int)
		if !ok {
			return types.NewErr("no such overload: string.%s(string, %s)", name, args[2].Type().TypeName())
		}
		if n < 0 {
			return types.NewErr("index out of range: %d", int64(n))
		}
		from = clamp(n)
	}
	return types.Int(find(string(s), string(sub), from))
}

// runeOffset is where the n-th character of s starts, or len(s).
func runeOffset(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}
