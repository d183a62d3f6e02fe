package api

import "strings"

// Shown is a request's path as it may be written down or sent back. A segment
// that could be an interrupt token is a credential and is left out, whether a
// route takes it or not (spec v2 interrupt.md §Resolve surfaces).
func Shown(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if strings.HasPrefix(strings.ToLower(p), "ow2.") || i == 2 && parts[1] == "interrupts" ||
			i == 3 && parts[1] == "v1" && parts[2] == "interrupts" { // tokens of v1 have no form to know them by
			parts[i] = "{token}"
		}
	}
	return strings.Join(parts, "/")
}
