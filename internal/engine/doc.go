// Package engine is the shell around the run core: it loads a run, lets a
// command happen to it, makes the outcome durable in one transaction, and only
// then tells anybody or does anything about it.
//
// At most one goroutine works on a run at a time; commands reach it through a
// mailbox. A parked run (waiting for a person, a timer or a child) has no
// goroutine, no timer and no state in memory. Timers come from the store's
// due-time index; runs of a lost owner are claimed by a loop that always runs.
//
// The engine must not know HTTP, credentials or SQL, and makes no decision that
// internal/run could make.
package engine
