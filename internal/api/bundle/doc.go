// Package bundle writes a run's debug bundle: one JSON document with what there is to
// know of a run that misbehaves (spec v1 debug-bundle.md). It is bounded in size, and
// what it leaves out it says. How a major writes a run and an event is a Wire; what of
// a run may be shown is decided in internal/host.
package bundle
