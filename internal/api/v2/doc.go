// Package v2 is the second major of the wire: the unversioned paths of the
// protocol and the host's own operations under /host/fermata/. It translates
// between HTTP and internal/host and decides nothing.
//
// A new operation is one row in routes.go and one handler.
package v2
