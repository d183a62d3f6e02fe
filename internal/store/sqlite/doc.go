// Package sqlite keeps runs in one SQLite file: the default backend, for one
// process. It owns the schema and its migrations, the data folder's lock, the
// one writing goroutine with its group commit, and the pool of reading
// connections.
//
// It must not know what an event means, when a run is due for anything but its
// timer, or who may see a row: it stores what it is given and fails with the
// sentinels of package store.
//
// How a write travels: a method checks and encodes its arguments in the
// caller's goroutine (runs_append.go), hands a request to the writer
// (writer.go), which runs every request waiting at that moment in one
// transaction with one fsync, and answers each of them once all are durable.
package sqlite
