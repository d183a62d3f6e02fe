// Package run is the pure core: what a run's state is, how an event changes it
// (fold), and which events and effects follow from a command (Decide). It does
// no I/O, reads no clock and starts no goroutine; time is a field of a command.
//
// The log is the truth. Folding the events that Decide returned onto the state
// it was given yields the state it left behind: live execution, recovery,
// replay and every reader rely on that, and the property tests hold it.
//
// It must not know stores, HTTP or how a node is executed.
package run
