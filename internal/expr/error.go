package expr

import (
	"fmt"
	"strings"
)

// Error is every failure of this package: a source that does not compile, or an
// evaluation that has no result. Message is one line for the author of the
// workflow.
type Error struct {
	Source string // the whole source, or the path or pattern of a condition
	// Line and Column are where in Source, from 1, in characters; 0 when the
	// failure has no place.
	Line, Column int
	Message      string

	// Missing names the member that was absent ("variables.order.id") when
	// that is why an evaluation failed, so that a caller can tell an optional
	// binding from a broken one.
	Missing string
}

// Error is the message with its place.
func (e *Error) Error() string {
	switch {
	case e.Column == 0:
		return e.Message
	case e.Line > 1:
		return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
	default:
		return fmt.Sprintf("column %d: %s", e.Column, e.Message)
	}
}

func failf(source, format string, args ...any) *Error {
	return &Error{Source: source, Message: oneLine(fmt.Sprintf(format, args...))}
}

// maxMessage keeps a message with a hostile value in it out of logs and
// envelopes.
const maxMessage = 500

func oneLine(s string) string {
	if i := strings.IndexAny(s, "\r\n"); i >= 0 {
		s = s[:i]
	}
	if len(s) > maxMessage {
		s = strings.ToValidUTF8(s[:maxMessage], "") + "…"
	}
	return s
}
