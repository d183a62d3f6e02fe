// Package egress owns every connection fermata opens to the outside: a dialer
// that judges the address it is about to connect to, and an HTTP client on top
// of it that is bounded in time and size.
//
// An address is judged inside the dialer's Control hook, when the kernel is
// about to be handed exactly that address. What a name resolved to a moment
// earlier therefore does not matter, and a name that changes its answer gains
// nothing by it.
//
// A call that runs for a replay is never let out, and one of a node only through a
// seam (package effect).
//
// It must not know runs, nodes, tenants or credentials; who may call where, and
// with what, is decided above.
package egress
