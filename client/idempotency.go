package client

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"net/http"
)

const keyHeader = "Idempotency-Key"

// inFlight is the code of a request that is being worked on under the same key.
const inFlight = "idempotency_in_flight"

type keyOf struct{}

// WithIdempotencyKey names the one operation that is called with the context, so
// that it happens once however often it is called: also by a program that has
// been started again meanwhile. The key has 22 to 128 of A-Z a-z 0-9 . _ ~ -, and
// must be drawn at random (NewIdempotencyKey does). Without it a client draws a
// new key for each call, and repeats of the call share it.
func WithIdempotencyKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, keyOf{}, key)
}

// NewIdempotencyKey draws a key of 192 random bits.
func NewIdempotencyKey() string {
	var b [24]byte
	rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// WithoutIdempotencyKeys is for a host that does not honour them: calls that
// change something carry no key of the client's own, and are repeated only where
// no connection came about.
func WithoutIdempotencyKeys() Option { return func(c *Client) { c.unkeyed = true } }

// name gives a call that changes something its key. Whoever honours it will not
// do the same thing twice, so the call may be repeated.
func (c *Client) name(ctx context.Context, k *call) {
	if !k.keyed {
		return
	}
	key, given := ctx.Value(keyOf{}).(string)
	if !given {
		if c.unkeyed {
			return
		}
		key = NewIdempotencyKey()
	}
	h := http.Header{keyHeader: {key}}
	for name, vs := range k.header {
		h[name] = vs
	}
	k.header, k.again = h, true
}

// worthRepeating reports whether an error may be gone at the next attempt.
func (k *call) worthRepeating(err error) bool {
	var e *Error
	switch {
	case errors.As(err, &e):
		return k.again && (transient(e.Status) || k.keyed && e.Code == inFlight)
	case errors.Is(err, ErrAnswer):
		return false
	}
	return k.again || unsent(err)
}
