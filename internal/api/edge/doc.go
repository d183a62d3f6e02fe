// Package edge is what every request passes before anything is looked up, and
// every answer afterwards: the names a host is called by, paths that mean two
// things, origins of browsers, and the headers that tell a browser to make nothing
// of an answer but what it is.
//
// It knows no operation and no credential.
package edge
