// Package seams is the wire of the conformance seams (spec v2 conformance.md §The
// seams profile): operations under /conformance/seams/ by which a conformance
// suite reaches what cannot be seen from outside. They are mounted only on a host
// that was started for it, never in production mode, and are in no document of the
// protocol's own operations.
//
// It translates between HTTP and internal/host and decides nothing; each seam does
// the real thing, through the host's use cases.
package seams
