package postgres

import (
	"math"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// opt reads a text that is empty for NULL.
type opt string

// ScanText implements pgtype.TextScanner.
func (o *opt) ScanText(v pgtype.Text) error {
	*o = opt(v.String)
	return nil
}

// raw reads bytes as a string, empty for NULL.
type raw string

// ScanBytes implements pgtype.BytesScanner.
func (r *raw) ScanBytes(v []byte) error {
	*r = raw(v)
	return nil
}

// stamp reads unix milliseconds, NULL as the zero time.
type stamp time.Time

// ScanInt64 implements pgtype.Int64Scanner.
func (s *stamp) ScanInt64(v pgtype.Int8) error {
	*s = stamp{}
	if v.Valid {
		*s = stamp(time.UnixMilli(v.Int64).UTC())
	}
	return nil
}

// millis writes a time, the zero time as NULL.
func millis(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMilli()
}

// order is a time as a number that sorts, the zero time before all others.
func order(t time.Time) int64 {
	if t.IsZero() {
		return math.MinInt64
	}
	return t.UnixMilli()
}

// optional writes a text that is NULL if it is empty.
func optional(v string) any {
	if v == "" {
		return nil
	}
	return v
}

// bound writes a limit; none is a number nothing reaches.
func bound(limit int) int64 {
	if limit <= 0 {
		return math.MaxInt64
	}
	return int64(limit)
}

// full turns no bytes into an empty value, for columns that must have one.
func full(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
