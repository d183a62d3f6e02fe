// Package effect knows the seams by which effects leave the host, and guards
// them: a call may pass a seam only if its context says that it may and the seam
// is listed. Whatever is in doubt is denied.
//
// It does no I/O and knows no runs; the ledger of what has been done is in
// internal/store and kept by internal/engine.
package effect
