// Package v1wire says what an event of a log is on the v1 wire: its name there, its
// envelope, its payload. A run has one log whatever the major it is read under, so
// everything here is a translation of what is stored, and nothing is written back
// (spec v1 version-negotiation.md; spec v2 persistence.md §The era key).
//
// Bare ids stand where v2 binds an id to its tenant, engineVersion is text, a person
// is a principal and not a subject, and x- members stay behind: v1 has no rule that
// lets a reader carry them unread. It must not know how an event is stored or sent.
package v1wire
