// Package schedule reads the configuration of a schedule trigger and says when its
// ticks are. A tick is a moment: it follows from the configuration alone, so that
// every process names the same ones. Nothing here waits or looks at a clock.
package schedule
