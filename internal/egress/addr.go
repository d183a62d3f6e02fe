package egress

import "net/netip"

// A span is a range of addresses nothing may be called in, and what it is for.
type span struct {
	prefix netip.Prefix
	what   string
}

func spans(rows ...string) []span {
	out := make([]span, 0, len(rows)/2)
	for i := 0; i < len(rows); i += 2 {
		out = append(out, span{netip.MustParsePrefix(rows[i]), rows[i+1]})
	}
	return out
}

// closed4 follows the IANA special-purpose registry for IPv4, and adds what
// clouds serve their own credentials on.
var closed4 = spans(
	"0.0.0.0/8", "this network",
	"10.0.0.0/8", "private",
	"100.64.0.0/10", "carrier-grade NAT",
	"127.0.0.0/8", "loopback",
	"168.63.129.16/32", "cloud platform",
	"169.254.0.0/16", "link-local",
	"172.16.0.0/12", "private",
	"192.0.0.0/24", "protocol assignments",
	"192.0.2.0/24", "documentation",
	"192.31.196.0/24", "AS112",
	"192.52.193.0/24", "AMT",
	"192.88.99.0/24", "6to4 relay",
	"192.168.0.0/16", "private",
	"192.175.48.0/24", "AS112",
	"198.18.0.0/15", "benchmark",
	"198.51.100.0/24", "documentation",
	"203.0.113.0/24", "documentation",
	"224.0.0.0/4", "multicast",
	"240.0.0.0/4", "reserved", // includes the broadcast address
)

// closed6 names the closed ranges of IPv6. Whatever lies outside global6 is
// closed even if it is not named here.
var closed6 = spans(
	"::/128", "unspecified",
	"::1/128", "loopback",
	"::ffff:0:0:0/96", "IPv4-translated",
	"64:ff9b:1::/48", "local NAT64", // where the IPv4 sits is known to the network alone
	"100::/64", "discard",
	"2001::/32", "Teredo",
	"2001:10::/28", "ORCHID",
	"2001:20::/28", "ORCHID",
	"2001::/23", "protocol assignments",
	"2001:db8::/32", "documentation",
	"2620:4f:8000::/48", "AS112",
	"3fff::/20", "documentation",
	"5f00::/16", "segment routing",
	"fc00::/7", "unique local", // includes fd00:ec2::254
	"fe80::/10", "link-local",
	"fec0::/10", "site-local",
	"ff00::/8", "multicast",
)

var (
	global6 = netip.MustParsePrefix("2000::/3")
	nat64   = netip.MustParsePrefix("64:ff9b::/96")
	compat4 = netip.MustParsePrefix("::/96")
	sixto4  = netip.MustParsePrefix("2002::/16")
)

// closed says why a is not to be called, or "" if it is an ordinary address of
// the internet. Where an IPv4 address is carried inside an IPv6 one, the inner
// address is what is reached, so it is what is judged.
func closed(a netip.Addr) string {
	a = plain(a)
	if !a.IsValid() {
		return "not an address"
	}
	if a.Is4() {
		return find(closed4, a)
	}
	switch {
	case nat64.Contains(a):
		return inner(a, 12, "NAT64")
	case sixto4.Contains(a):
		return inner(a, 2, "6to4")
	case compat4.Contains(a) && a != netip.IPv6Unspecified() && a != netip.IPv6Loopback():
		return inner(a, 12, "IPv4-compatible")
	}
	if what := find(closed6, a); what != "" {
		return what
	}
	if !global6.Contains(a) {
		return "outside global unicast"
	}
	if isatap(a) {
		return inner(a, 12, "ISATAP")
	}
	return ""
}

// plain takes off what would hide an address from a prefix: a zone, and the
// mapped form, which the kernel treats as the IPv4 address itself.
func plain(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

// inner judges the IPv4 address that a carries from byte at on (RFC 6052, 3056,
// 4291).
func inner(a netip.Addr, at int, how string) string {
	b := a.As16()
	if what := find(closed4, netip.AddrFrom4([4]byte(b[at:at+4]))); what != "" {
		return what + " through " + how
	}
	return ""
}

// isatap reports whether a's interface id is that of a tunnel to an IPv4 host.
func isatap(a netip.Addr) bool {
	b := a.As16()
	return b[8]&^0x03 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
}

func find(list []span, a netip.Addr) string {
	for _, s := range list {
		if s.prefix.Contains(a) {
			return s.what
		}
	}
	return ""
}
