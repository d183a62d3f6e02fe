package client

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Retry says how often and how soon a call is repeated: a read, and a call that
// changes something, which carries the same Idempotency-Key each time. What the
// host keeps no record of (CreateKey) is repeated only if its connection could not
// be made in the first place.
type Retry struct {
	Attempts int           // in all; 1 means no repeat
	Base     time.Duration // wait before the first repeat; it doubles each time
	Max      time.Duration // longest wait, also of a Retry-After that is obeyed
}

// DefaultRetry is what a client does if it is told nothing: four attempts within
// a few seconds.
func DefaultRetry() Retry {
	return Retry{Attempts: 4, Base: 200 * time.Millisecond, Max: 10 * time.Second}
}

// backoff is the wait before repeat n, counted from 0. Half of it is random, so
// that clients who failed together do not come back together.
func (c *Client) backoff(n int) time.Duration {
	base, most := c.retry.Base, c.retry.Max
	if base <= 0 || most <= 0 {
		base, most = DefaultRetry().Base, DefaultRetry().Max
	}
	d := most
	if n < 20 && base<<n < most {
		d = base << n
	}
	return d/2 + time.Duration(c.random()*float64(d/2))
}

// wait sleeps before a repeat. It reports false if there must be none: the
// attempts are used up, or the host wants more time than the caller gives.
func (c *Client) wait(ctx context.Context, n int, after time.Duration) bool {
	if n+1 >= c.retry.Attempts || after > c.retry.Max {
		return false
	}
	return c.sleep(ctx, max(c.backoff(n), after)) == nil
}

// transient reports whether a status may be gone at the next attempt.
func transient(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// unsent reports whether a request certainly never reached the host, because no
// connection to it came about.
func unsent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// retryAfter reads a Retry-After header in either of its forms.
func retryAfter(v string, now time.Time) time.Duration {
	v = strings.TrimSpace(v)
	if secs, err := strconv.ParseUint(v, 10, 31); err == nil {
		return time.Duration(secs) * time.Second
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}
