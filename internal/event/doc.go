// Package event owns the run log's vocabulary: the closed envelope (spec v2
// events.md §The envelope), the registry of event types with the stream tier
// and the v1 name of each, and the payloads of the types fermata emits.
//
// It must not know how a log is stored, folded or sent. A new event type is one
// row in types.go and, if this host emits it, one payload struct.
package event
