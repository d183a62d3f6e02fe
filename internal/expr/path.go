package expr

import (
	"strconv"
	"strings"

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
