package client

import "strings"

const hexUpper = "0123456789ABCDEF"

// Segment projects an id onto one path segment: every byte outside
// [A-Za-z0-9._-] becomes ~ and two uppercase hexadecimal digits, so that
// "acme/0123456789abcdef" is written "acme~2F0123456789abcdef" (spec v2
// identity.md §5).
func Segment(id string) string {
	var b strings.Builder
	b.Grow(len(id) + 4)
	for i := range len(id) {
		if c := id[i]; plain(c) {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'~', hexUpper[c>>4], hexUpper[c&15]})
		}
	}
	return b.String()
}

func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-'
}

// Name ids (workflows, nodes) are not tenant-bound: they are percent-encoded
// like any other path segment.
func nameSegment(id string) string {
	var b strings.Builder
	b.Grow(len(id))
	for i := range len(id) {
		if c := id[i]; plain(c) || c == '~' || c == ':' {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', hexUpper[c>>4], hexUpper[c&15]})
		}
	}
	return b.String()
}
