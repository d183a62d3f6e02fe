package api

import "regexp"

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
