// Package stream follows one run's log for one subscriber, over server-sent events,
// whatever major of the protocol he speaks: what a request asks for, where it resumes,
// batches, the values mode, and when a stream ends. How a major writes what it shows
// is a Wire; who may read is decided in internal/host.
package stream
