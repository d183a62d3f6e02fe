package problem

import (
	"errors"
	"fmt"
	"maps"
	"time"
)

// Error is a refusal on its way to a client: a registered code, a sentence for
// a person, and details for a program. It is immutable; With returns a copy.
type Error struct {
	Code    Code
	Message string
	Details map[string]any

	// RetryAfter, when positive, becomes the Retry-After header. Retry timing
	// travels nowhere else (spec v2 errors.md §Retry timing).
	RetryAfter time.Duration

	// Cause is kept for logs and never leaves the process.
	Cause error
}

func (e *Error) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Message, e.Cause)
	}
	return string(e.Code) + ": " + e.Message
}

// Unwrap gives errors.Is and errors.As the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Status is the HTTP status registered for the error's code.
func (e *Error) Status() int {
	if r, ok := Lookup(e.Code); ok {
		return r.Status
	}
	return 500
}

// With returns a copy of e with one more detail.
func (e *Error) With(key string, value any) *Error {
	c := *e
	c.Details = maps.Clone(e.Details)
	if c.Details == nil {
		c.Details = map[string]any{}
	}
	c.Details[key] = value
	return &c
}

// New makes an error of a registered code.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Invalid is a validation_error whose details name the offending field, by its
// path in the request ("inputs.amount", "nodes[2].config.delayMs").
func Invalid(field, format string, args ...any) *Error {
	return New(ValidationError, format, args...).With("field", field)
}

// Internal hides a cause the client must not see behind internal_error.
func Internal(cause error) *Error {
	return &Error{Code: InternalError, Message: "The host could not complete this request.", Cause: cause}
}

// From returns the *Error in err's chain, or wraps err as internal_error.
// It returns nil for nil.
func From(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return Internal(err)
}

// Is reports whether err carries the given code.
func Is(err error, code Code) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}
