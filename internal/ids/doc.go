// Package ids owns the identifier grammars of the protocol (spec v2
// identity.md §5): minting, validating, and projecting tenant-bound ids onto
// one path segment. It must not know what an id refers to.
package ids
