package ids

import (
	"unicode"
	"unicode/utf8"
)

// The grammars are checked by hand rather than by regular expression: they run
// on every request, and a byte loop is both faster and easier to audit.

func unreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		c == '.' || c == '_' || c == '~' || c == '-'
}

func all(s string, min, max int, ok func(byte) bool) bool {
	if len(s) < min || len(s) > max {
		return false
	}
	for i := 0; i < len(s); i++ {
		if !ok(s[i]) {
			return false
		}
	}
	return true
}

// ValidTenant reports whether s is a tenantId, with or without the one
// permitted "anon:" prefix.
func ValidTenant(s string) bool {
	if len(s) > 5 && s[:5] == "anon:" {
		s = s[5:]
	}
	return all(s, 1, 128, unreserved)
}

// ValidSubject reports whether s is a subjectId: 1 to 256 characters, none of
// them a slash or white space.
func ValidSubject(s string) bool {
	n := 0
	for _, r := range s {
		if r == '/' || r == utf8.RuneError || unicode.IsSpace(r) || unicode.IsControl(r) || r == '\ufeff' {
			return false
		}
		n++
	}
	return n >= 1 && n <= 256
}

// ValidOpaque reports whether s is a host-minted opaque segment.
func ValidOpaque(s string) bool { return all(s, 16, 128, unreserved) }

// ValidAuthored reports whether s is an id chosen by a workflow's author:
// nodeId, workflowId and their kin.
func ValidAuthored(s string) bool {
	return all(s, 1, 128, func(c byte) bool { return unreserved(c) || c == ':' })
}

// ValidKeyID reports whether s is a keyId: the name of a signing key.
func ValidKeyID(s string) bool { return all(s, 1, 128, unreserved) }

// ValidTypeID reports whether s is a node type id such as core.http.request.
func ValidTypeID(s string) bool {
	if len(s) > 256 || s == "" {
		return false
	}
	segments, start := 0, true
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case start:
			if c < 'a' || c > 'z' {
				return false
			}
			start, segments = false, segments+1
		case c == '.':
			start = true
		case c >= 'A' && c <= 'Z':
			if segments == 1 {
				return false // the first segment is lower case
			}
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return !start && segments >= 2
}
