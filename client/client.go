package client

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// ProtocolVersion is the version of the protocol this client speaks.
const ProtocolVersion = "2.0"

// Client calls one host. It is safe for concurrent use.
type Client struct {
	base  *url.URL
	key   string
	http  *http.Client
	agent string

	retry   Retry
	timeout time.Duration // of one attempt of a call
	idle    time.Duration // of silence on a stream
	unkeyed bool          // no Idempotency-Key of the client's own
	lost    int           // connections in a row that may bring a stream nothing

	sleep  func(context.Context, time.Duration) error
	random func() float64
}

// Option changes how a client works.
type Option func(*Client)

// WithTransport sends requests through a transport of the caller's: a proxy, a
// TLS configuration of its own, or a host in the same process (see InProcess).
func WithTransport(t http.RoundTripper) Option {
	return func(c *Client) { c.http.Transport = t }
}

// WithRetry says how calls that may be repeated are repeated.
func WithRetry(r Retry) Option { return func(c *Client) { c.retry = r } }

// WithTimeout bounds one attempt of a call (default 30 s). Streams have no such
// bound, and a poll is given the time it asks the host to wait on top.
func WithTimeout(d time.Duration) Option { return func(c *Client) { c.timeout = d } }

// WithIdleTimeout says how long a stream may be silent before its connection is
// given up and made anew (default 45 s; a host says something every 15 s). 0
// means for ever.
func WithIdleTimeout(d time.Duration) Option { return func(c *Client) { c.idle = d } }

// WithStreamRetries says how many connections in a row may fail to bring a
// stream anything new before it ends with an error (default 10). A negative
// number means that it never gives up.
func WithStreamRetries(n int) Option { return func(c *Client) { c.lost = n } }

// WithUserAgent names the calling program to the host.
func WithUserAgent(s string) Option { return func(c *Client) { c.agent = s } }

// New makes a client for the host at baseURL, such as "http://127.0.0.1:7411".
// The API key may be empty where only public operations are called.
func New(baseURL, apiKey string, opts ...Option) (*Client, error) {
	base, err := parseBase(baseURL)
	if err != nil {
		return nil, err
	}
	if strings.ContainsAny(apiKey, " \t\r\n") {
		return nil, errors.New("the API key holds white space")
	}
	c := &Client{
		base: base, key: apiKey, agent: "fermata-client",
		http: &http.Client{
			Transport: defaultTransport(),
			// A redirect could lead to another host, which must not see the key.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		retry: DefaultRetry(), timeout: 30 * time.Second, idle: 45 * time.Second, lost: 10,
		sleep: sleep, random: rand.Float64,
	}
	for _, o := range opts {
		o(c)
	}
	if c.idle <= 0 {
		c.idle = math.MaxInt64
	}
	return c, nil
}

// BaseURL is the address of the host.
func (c *Client) BaseURL() string { return c.base.String() }

func parseBase(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		// The error of url.Parse repeats its input, which may hold a password.
		return nil, errors.New("the host's address is not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("the host's address must begin with http:// or https://, not %q", u.Scheme+":")
	case u.Host == "":
		return nil, errors.New("the host's address names no host")
	case u.User != nil:
		return nil, errors.New("the host's address must not hold a user name or password; give an API key instead")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("the host's address must not hold a query or fragment")
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = ""
	return u, nil
}

// defaultTransport is http.DefaultTransport with connections enough for many
// streams to one host.
func defaultTransport() http.RoundTripper {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport
	}
	t = t.Clone()
	t.MaxIdleConnsPerHost = 16
	return t
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
