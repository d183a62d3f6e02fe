package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"syscall"
)

// Reason is why a call was not let out. The set is closed (the protocol's
// egress decision), so that a reason can never carry a URL or a header.
type Reason string

// The reasons this package gives.
const (
	Blocked Reason = "ssrf-blocked"  // the address is not one to call
	Policy  Reason = "policy-denied" // the request itself is not acceptable
)

// Denied is a call the guard refused before anything was sent.
type Denied struct {
	Reason Reason

	// Detail is for the operator's log. It may tell what a name resolved to, so
	// it is no part of Error and must not reach the author of a workflow.
	Detail string
}

func (d *Denied) Error() string { return "egress denied: " + string(d.Reason) }

// DeniedReason returns the reason in err's chain, if the guard refused.
func DeniedReason(err error) (Reason, bool) {
	var d *Denied
	if errors.As(err, &d) {
		return d.Reason, true
	}
	return "", false
}

func policy(format string, args ...any) *Denied {
	return &Denied{Reason: Policy, Detail: fmt.Sprintf(format, args...)}
}

// TooLarge is a response that went past its bound.
type TooLarge struct{ Limit int64 }

func (t *TooLarge) Error() string {
	return "the response is larger than " + strconv.FormatInt(t.Limit, 10) + " bytes"
}

// Describe puts a failed call into words fit for a log that others read. The
// error of an http.Client quotes the whole URL, and a URL may hold a secret.
func Describe(err error) string {
	var (
		large *TooLarge
		dns   *net.DNSError
		cert  *tls.CertificateVerificationError
		noTLS tls.RecordHeaderError
		timed net.Error
	)
	if reason, ok := DeniedReason(err); ok {
		return "the call was refused (" + string(reason) + ")"
	}
	switch {
	case errors.As(err, &large):
		return large.Error()
	case errors.Is(err, context.Canceled):
		return "the call was cancelled"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timed) && timed.Timeout():
		return "the call timed out"
	case errors.As(err, &dns):
		return "the host name could not be resolved"
	case errors.As(err, &cert):
		return "the server's certificate was not accepted"
	case errors.As(err, &noTLS):
		return "the server did not answer in TLS"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed early"
	}
	return "the connection failed"
}
