// Package overlap is the place where the wire of an older major is put beside this
// one's (spec v2 versioning.md §5): the older wire registers itself here, and the
// root finds it without naming it. It owns which of the two a request on a bare path
// is for, and nothing of what either says.
package overlap
