// Package openapi owns the OpenAPI 3.1 document of this host: it turns a route
// table and the schemas it names into one self-contained document, the same
// bytes for the same routes in whatever order they come.
//
// It must not know a handler, a request or a run. What it says of an operation
// is what the operation's row says; a row it cannot describe is an error when the
// document is built, never a gap in it.
package openapi
