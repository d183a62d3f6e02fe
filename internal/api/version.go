package api

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// VersionHeader names the version of the protocol that a request wants and an answer
// is given in (spec v2 versioning.md §1.3, §1.4).
const VersionHeader = "OpenWOP-Version"

var versionGrammar = regexp.MustCompile(`^(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*))?$`)

// Major is the major that a version names, which alone selects; empty for a text
// that is no version.
func Major(v string) string {
	m := versionGrammar.FindStringSubmatch(v)
	if m == nil {
		return ""
	}
	return m[1]
}

// Asked is the version that a request names; empty if it names none. A header that stands
// there twice is a list, and no version: who looks at the first of two and who looks at the
// last would take the same request for two different ones.
func Asked(h http.Header) string { return strings.Join(h.Values(VersionHeader), ", ") }

// Varies says of an answer that it would be another one under another version of the
// protocol, so that no cache gives it to somebody who asks for that.
func Varies(h http.Header) {
	if !slices.Contains(h.Values("Vary"), VersionHeader) {
		h.Add("Vary", VersionHeader)
	}
}
