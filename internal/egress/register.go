package egress

import (
	"net/netip"
	"net/url"
	"strings"
)

// inside lists the ends of host names that mean something in the network the host
// runs in, and nothing elsewhere. Clouds serve their own credentials under some.
var inside = []string{".localhost", ".local", ".localdomain", ".internal", ".home.arpa", ".lan", ".intranet", ".corp", ".home"}

// CheckRegistration judges a URL that somebody wants called later, again and again:
// nil, or a *Denied. It asks more than CheckURL, since nobody sits beside the call:
// https, and a name that can be a public one. A literal address in a range that the
// operator has admitted may be called without TLS.
func (g *Guard) CheckRegistration(u *url.URL) error {
	if err := g.CheckURL(u); err != nil {
		return err
	}
	if u.Fragment != "" || u.RawFragment != "" {
		return policy("a fragment")
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if a, err := netip.ParseAddr(host); err == nil {
		if u.Scheme != "https" && !g.admitted(a) {
			return policy("scheme %q", u.Scheme)
		}
		return nil
	}
	if u.Scheme != "https" {
		return policy("scheme %q", u.Scheme)
	}
	return checkName(host)
}

func checkName(host string) error {
	dot := strings.LastIndexByte(host, '.')
	if dot < 0 {
		return &Denied{Reason: Blocked, Detail: "a host name without a domain"}
	}
	for _, end := range inside {
		if strings.HasSuffix(host, end) {
			return &Denied{Reason: Blocked, Detail: "a host name of an inner network"}
		}
	}
	// Some resolvers read 127.1 and 0x7f000001 as addresses.
	if last := host[dot+1:]; last == "" || last[0] >= '0' && last[0] <= '9' {
		return &Denied{Reason: Blocked, Detail: "a number in place of a host name"}
	}
	return nil
}

// admitted reports whether the operator has admitted an address that is closed
// otherwise.
func (g *Guard) admitted(a netip.Addr) bool {
	for _, p := range g.allow {
		if p.Contains(plain(a)) {
			return true
		}
	}
	return false
}
