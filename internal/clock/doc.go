// Package clock owns the source of time, so that everything above it can be
// driven by a test. It must not know what the time is used for.
package clock
