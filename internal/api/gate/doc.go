// Package gate keeps callers within their shares of a host: how often a tenant and
// each of its keys ask, how many calls and streams a tenant has open, and how often
// an address may present a credential that is none.
//
// It says no before a request costs anything, by a count and never by a queue: who
// is over his bound is told when to come again, and waits somewhere else. It does
// not decide who may do what; that is internal/host.
package gate
