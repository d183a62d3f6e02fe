// Package cli owns the command line: the tree of commands, what they print and
// the exit codes they end with. One command is one file; what several of them
// share is in the file named after it.
//
// Commands translate and never decide: what may be done is the host's to say,
// over the same wire that any other client uses (package client). The host that
// serve and run carry inside is given from outside, by its interface in host.go,
// so that this package knows no store, engine or backend.
package cli
