package node

import "fmt"

// Codes a node most often fails with. Any registered code may be used; a code
// that is not registered is recorded as internal_error with the code in
// details.reason.
const (
	CodeConfig      = "node_config_invalid"
	CodeUnavailable = "upstream_unavailable"
	CodeInternal    = "internal_error"
)

// Error is a failure a node describes itself.
type Error struct {
	Code      string
	Message   string
	Details   map[string]any
	Retryable bool
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Fail makes an error that is not retried.
func Fail(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Retry makes an error that is retried while the node has attempts left.
func Retry(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Retryable: true}
}
