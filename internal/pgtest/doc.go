// Package pgtest gives tests a PostgreSQL of their own: found on the machine, kept in
// a temporary folder, listening on loopback and a socket in that folder, and ended
// with the test's process. Where there is none, tests that ask for one are skipped and
// say so.
package pgtest
