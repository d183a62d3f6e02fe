// Package segment is the form in which backends that keep rows keep a log: the
// events of one step joined into one row, cut where a row would get too large.
package segment
