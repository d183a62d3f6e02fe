// Package storetest is the conformance suite of a store backend: whatever the
// contract in package store promises, stated as tests. Every backend runs the
// same suite.
//
// It must not know a backend, nor look behind the interfaces: what it checks, it
// reads back through them, often from a store that was closed and opened again.
package storetest
