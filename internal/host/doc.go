// Package host owns the use cases: what a caller may ask of the host, checked
// and then handed to the engine or the store. One file per operation group.
// Authorization happens here and only here, so that every wire, the CLI and an
// embedding program meet the same rules.
//
// It must not know HTTP or any wire's shape.
package host
