package egress

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// Options sets up a Guard. The zero value is the safe one: no relaxation, and
// the default bounds.
type Options struct {
	// AllowPrefixes admits ranges that are closed otherwise. It is meant for
	// development and for services an operator runs next to the host.
	AllowPrefixes []netip.Prefix

	// Proxy picks a proxy for a request. Nil means none: the environment is
	// ignored unless http.ProxyFromEnvironment is given here. The proxy, not the
	// guard, then resolves the names that are called.
	Proxy func(*http.Request) (*url.URL, error)

	// Resolver, if set, resolves names in place of the default one.
	Resolver *net.Resolver

	// TLS is the base of the client's TLS configuration.
	TLS *tls.Config

	ConnectTimeout time.Duration // one connection; default 10 s
	TLSTimeout     time.Duration // one handshake; default 10 s
	HeaderTimeout  time.Duration // from the request sent to the response's header; default 30 s

	// TotalTimeout bounds one call with its body where the caller's context sets
	// no earlier end; default 10 minutes.
	TotalTimeout time.Duration

	MaxBodyBytes   int64 // of a response, after decompression; default 32 MiB
	MaxHeaderBytes int64 // of a response; default 64 KiB
}

// Guard is the one way out. It is safe for concurrent use.
type Guard struct {
	opts  Options
	allow []netip.Prefix
	trip  *transport
	seam  string // of the node runtime; empty for the host's own calls
}

// New makes a Guard.
func New(opts Options) *Guard {
	opts.ConnectTimeout = positive(opts.ConnectTimeout, 10*time.Second)
	opts.TLSTimeout = positive(opts.TLSTimeout, 10*time.Second)
	opts.HeaderTimeout = positive(opts.HeaderTimeout, 30*time.Second)
	opts.TotalTimeout = positive(opts.TotalTimeout, 10*time.Minute)
	opts.MaxBodyBytes = positive(opts.MaxBodyBytes, 32<<20)
	opts.MaxHeaderBytes = positive(opts.MaxHeaderBytes, 64<<10)
	g := &Guard{opts: opts}
	for _, p := range opts.AllowPrefixes {
		if p = unmapped(p); p.IsValid() {
			g.allow = append(g.allow, p)
		}
	}
	g.trip = &transport{guard: g, base: g.transport()}
	return g
}

// positive falls back on def, so that no bound can be switched off by accident.
func positive[T int64 | time.Duration](v, def T) T {
	if v > 0 {
		return v
	}
	return def
}

// unmapped writes an IPv4-mapped prefix as the IPv4 one it stands for, the form
// in which addresses are compared.
func unmapped(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked()
}

func (g *Guard) transport() *http.Transport {
	tlsConf := &tls.Config{}
	if g.opts.TLS != nil {
		tlsConf = g.opts.TLS.Clone()
	}
	tlsConf.MinVersion = max(tlsConf.MinVersion, tls.VersionTLS12)
	return &http.Transport{
		Proxy:                  g.opts.Proxy,
		DialContext:            g.DialContext,
		TLSClientConfig:        tlsConf,
		TLSHandshakeTimeout:    g.opts.TLSTimeout,
		ResponseHeaderTimeout:  g.opts.HeaderTimeout,
		ExpectContinueTimeout:  time.Second,
		IdleConnTimeout:        60 * time.Second,
		MaxIdleConns:           128,
		MaxIdleConnsPerHost:    8,
		MaxResponseHeaderBytes: g.opts.MaxHeaderBytes,
		ForceAttemptHTTP2:      true,
	}
}

// Client returns an HTTP client that answers a redirect with the redirect
// itself.
func (g *Guard) Client() *http.Client {
	return &http.Client{
		Transport:     g.trip,
		Timeout:       g.opts.TotalTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// RedirectClient returns an HTTP client that follows a few redirects. Each hop
// is judged like a call of its own, and what may be a credential stays with the
// origin it was meant for.
func (g *Guard) RedirectClient() *http.Client {
	return &http.Client{Transport: g.trip, Timeout: g.opts.TotalTimeout, CheckRedirect: follow}
}

// Close drops the connections that are idle.
func (g *Guard) Close() { g.trip.base.CloseIdleConnections() }

// DialContext connects to address if the address it resolves to may be called,
// and ctx may have effects.
func (g *Guard) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if err := g.pass(ctx); err != nil {
		return nil, err
	}
	d := net.Dialer{
		Timeout:   g.opts.ConnectTimeout,
		KeepAlive: 30 * time.Second,
		Resolver:  g.opts.Resolver,
		Control:   g.control,
	}
	return d.DialContext(ctx, network, address)
}
