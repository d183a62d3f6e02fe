// Package telemetry owns how the process speaks of itself: the logger, in a form
// for people or for machines, and the redactor that keeps secrets out of both.
//
// It must not know what is logged, or why.
package telemetry
