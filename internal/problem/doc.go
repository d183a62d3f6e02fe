// Package problem owns every refusal fermata can answer with: one table of
// registered error codes (spec v2 errors.md §The registry), each with its HTTP
// status and retriability, and the error value that carries a code through the
// layers up to the closed wire envelope {error, message, details?}.
//
// It must not know HTTP handlers, stores or runs. A new code is one row in
// table.go and nothing else.
package problem
