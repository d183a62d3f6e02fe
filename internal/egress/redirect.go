package egress

import (
	"context"
	"net/http"
	"net/url"
	"strings"
)

const maxRedirects = 5

// carried are the request headers that go along to another origin. Anything
// else might be a credential under a name of its own. The idempotency key must
// go along: without it a repeated call would have its effect twice.
var carried = map[string]bool{
	"Accept": true, "Accept-Encoding": true, "Accept-Language": true,
	"Content-Encoding": true, "Content-Language": true, "Content-Type": true,
	"Idempotency-Key": true, "User-Agent": true,
}

// carryingKey is where a context names one header more that goes along.
type carryingKey struct{}

// Carrying lets the header of an idempotency key go along to another origin where
// it has a name of its own. Its value must be the host's: nothing secret.
func Carrying(ctx context.Context, header string) context.Context {
	return context.WithValue(ctx, carryingKey{}, http.CanonicalHeaderKey(header))
}

func carries(ctx context.Context) string {
	name, _ := ctx.Value(carryingKey{}).(string)
	return name
}

// follow decides on one more hop. Having left the first origin once is enough:
// a way back must not bring the credentials out again, since where it leads is
// for the other side to say.
func follow(next *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return policy("more than %d redirects", maxRedirects)
	}
	last := via[len(via)-1]
	if last.URL.Scheme == "https" && next.URL.Scheme != "https" {
		return policy("redirect from https to %s", next.URL.Scheme)
	}
	first := origin(via[0].URL)
	left := origin(next.URL) != first
	for _, r := range via {
		left = left || origin(r.URL) != first
	}
	if left {
		for name := range next.Header {
			if !carried[name] && name != carries(next.Context()) {
				delete(next.Header, name)
			}
		}
		next.Host = ""
	}
	return nil
}

func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}
