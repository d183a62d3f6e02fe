package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/fermata-run/fermata/client"
)

// usageError is a mistake in the command line or the configuration.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// told ends a command with a code whose reason has been printed already.
type told struct{ code int }

func (e told) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// fail prints an error and returns its exit code.
func (a *app) fail(err error) int {
	var t told
	if errors.As(err, &t) {
		return t.code
	}
	if errors.Is(err, errInterrupted) || errors.Is(err, context.Canceled) {
		a.note("interrupted")
		return ExitFailed
	}
	a.complain(err)
	switch code := exitCode(err); code {
	case ExitUnreachable:
		a.note("  Is the host running? Start one with `fermata serve`, or say where it is with --server.")
		return code
	case ExitDenied:
		if client.IsStatus(err, http.StatusUnauthorized) {
			a.note("  Set FERMATA_API_KEY to an API key of this host, or name a profile with --profile.")
		}
		return code
	case ExitUsage:
		a.note("  `fermata help` lists the commands; --help behind any of them explains it.")
		return code
	default:
		return code
	}
}

func exitCode(err error) int {
	var e *client.Error
	var u usageError
	switch {
	case errors.As(err, &u):
		return ExitUsage
	case errors.Is(err, client.ErrUnreachable):
		return ExitUnreachable
	case errors.As(err, &e) && (e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden):
		return ExitDenied
	}
	return ExitFailed
}

// complain prints an error with what a refusal says beside its message.
func (a *app) complain(err error) {
	var e *client.Error
	if !errors.As(err, &e) {
		a.note("error: %s", plain(err.Error()))
		return
	}
	issues, text := e.Issues(), err.Error()
	if f := e.Field(); f != "" && len(issues) == 0 {
		text = f + ": " + text // "inputs.name: is required"
	}
	a.note("error: %s", plain(text))
	for _, i := range issues {
		a.note("  %s", describe(i))
	}
	if e.RetryAfter > 0 {
		a.note("  The host asks to be left alone for %s.", span(e.RetryAfter))
	}
}

// describe writes what is wrong with a definition, without the file's name.
func describe(i client.Issue) string {
	var b strings.Builder
	if i.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", i.Line)
	}
	if i.Field != "" {
		b.WriteString(plain(i.Field) + ": ")
	}
	return b.String() + plain(i.Message)
}
