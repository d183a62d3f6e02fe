// Package sse writes a run's events as server-sent events (spec v2 events.md
// §SSE frames): the four stream modes and their combinations, batching, and
// resumption. It must not know where events come from.
package sse
