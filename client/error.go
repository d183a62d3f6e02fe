package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Error is a refusal by the host: the protocol's error envelope with its status.
type Error struct {
	Status  int                        // HTTP status
	Code    string                     // registered code, such as "validation_error"; empty if the answer held none
	Message string                     // a sentence for a person
	Details map[string]json.RawMessage // for a program; "field" names what is wrong with the request

	// RetryAfter is how long the host asks to be left alone; 0 if it does not.
	RetryAfter time.Duration
}

func (e *Error) Error() string {
	if e.Code == "" {
		return e.Message
	}
	return e.Message + " (" + e.Code + ")"
}

// Field names the part of the request that was refused, if the host said so.
func (e *Error) Field() string {
	var s string
	if json.Unmarshal(e.Details["field"], &s) != nil {
		return ""
	}
	return s
}

// Issue is one thing that is wrong with a workflow definition.
type Issue struct {
	Field              string `json:"field"`
	Line               int    `json:"line,omitempty"` // from 1; 0 if unknown
	Message            string `json:"message"`
	RequiredCapability string `json:"requiredCapability,omitempty"`
}

// Issues lists everything that is wrong with a refused workflow definition. It
// is empty for other refusals.
func (e *Error) Issues() []Issue {
	var list []Issue
	if json.Unmarshal(e.Details["issues"], &list) != nil {
		return nil
	}
	return list
}

// IsCode reports whether err is a refusal with a code.
func IsCode(err error, code string) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}

// IsStatus reports whether err is a refusal with an HTTP status.
func IsStatus(err error, status int) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == status
}

var (
	// ErrUnreachable says that no answer came from the host: it is down, the
	// address is wrong, or the network failed. Whether the request was carried
	// out is unknown unless no connection could be made.
	ErrUnreachable = errors.New("cannot reach the host")

	// ErrNotModified says that a resource is still what its ETag stands for.
	ErrNotModified = errors.New("not modified")

	// ErrAnswer says that something answered which does not speak the protocol.
	ErrAnswer = errors.New("the answer is not what a fermata host sends")
)

func (c *Client) unreachable(err error) error {
	return fmt.Errorf("%w at %s: %w", ErrUnreachable, c.base.String(), bare(err))
}

// refusal reads an error answer. One that is no envelope, such as a proxy's
// page, is described by its status alone.
func refusal(status int, header http.Header, body []byte) *Error {
	e := &Error{Status: status, RetryAfter: retryAfter(header.Get("Retry-After"), time.Now())}
	var env struct {
		Error   string                     `json:"error"`
		Message string                     `json:"message"`
		Details map[string]json.RawMessage `json:"details"`
	}
	if json.Unmarshal(body, &env) == nil && env.Error != "" {
		e.Code, e.Message, e.Details = env.Error, env.Message, env.Details
		return e
	}
	e.Message = fmt.Sprintf("the host answered %d %s", status, http.StatusText(status))
	if status >= 300 && status < 400 {
		e.Message += "; redirects are not followed, so give the address it leads to"
	}
	return e
}
