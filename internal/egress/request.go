package egress

import (
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// CheckURL judges what can be judged of a URL without resolving it: nil, or a
// *Denied. It serves to refuse a bad URL when it is registered; it replaces no
// check made at the time of the call.
func (g *Guard) CheckURL(u *url.URL) error {
	if u == nil {
		return policy("no URL")
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return policy("scheme %q", u.Scheme)
	}
	if u.User != nil {
		return policy("user information in the URL")
	}
	if u.Opaque != "" {
		return policy("opaque URL")
	}
	if err := checkHost(u.Host); err != nil {
		return err
	}
	host := u.Hostname()
	if host == "" {
		return policy("no host")
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
			return policy("port %q", p)
		}
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return g.CheckAddr(a)
	}
	return nil
}

// checkHost refuses what no host name holds and some parsers read as an end, a
// space or a path.
func checkHost(host string) error {
	for i := 0; i < len(host); i++ {
		if c := host[i]; c <= ' ' || c == 0x7f || strings.IndexByte(`/\?#@<>"'{}|^`+"`", c) >= 0 {
			return policy("character %#x in the host", c)
		}
	}
	return nil
}

// checkRequest judges a request, on its first hop or a later one. A tunnel or an
// upgrade would turn the connection into something that is bounded no more.
func (g *Guard) checkRequest(r *http.Request) error {
	if err := g.CheckURL(r.URL); err != nil {
		return err
	}
	if err := checkHost(r.Host); err != nil {
		return err
	}
	if r.Method == http.MethodConnect {
		return policy("method CONNECT")
	}
	if len(r.Header.Values("Upgrade")) > 0 {
		return policy("upgrade")
	}
	return nil
}
