// Package archive moves stores: into a file and out of it, and from one place to
// another. It owns the form of the file, the digests that say whether two stores are
// the same, and what is verified before a store is called whole.
//
// It must not know a backend, nor what a row means, but for the audit log, which it
// follows from entry to entry on the way.
//
// The file is a line that names the form, then one stream of gzip. In it, lines of
// JSON stand around rows in binary: a header, then for each table a line with its
// columns, its rows, and a line with their number and digest; at the end a line with
// a digest over all these lines. A reader needs no more memory than the largest value.
package archive
