package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
)

// inside4 holds an address at each end of every closed IPv4 range.
var inside4 = []string{
	"0.0.0.0", "0.255.255.255", "10.0.0.0", "10.255.255.255", "100.64.0.0", "100.127.255.255",
	"100.100.100.200", "127.0.0.1", "127.255.255.254", "168.63.129.16", "169.254.0.1", "169.254.169.254",
	"172.16.0.0", "172.31.255.255", "192.0.0.1", "192.0.0.192", "192.0.2.7", "192.31.196.1",
	"192.52.193.1", "192.88.99.1", "192.168.0.1", "192.168.255.255", "192.175.48.1", "198.18.0.0",
	"198.19.255.255", "198.51.100.9", "203.0.113.9", "224.0.0.1", "239.255.255.255", "240.0.0.1",
	"255.255.255.255",
}

// outside4 holds the neighbours of those ranges.
var outside4 = []string{
	"1.0.0.0", "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0",
	"126.255.255.255", "128.0.0.0", "168.63.129.15", "168.63.129.17", "169.253.255.255", "169.255.0.0",
	"172.15.255.255", "172.32.0.0", "192.0.1.0", "192.0.3.0", "192.167.255.255", "192.169.0.0",
	"198.17.255.255", "198.20.0.0", "223.255.255.255",
}

func TestClosedIPv4(t *testing.T) {
	for _, s := range inside4 {
		if closed(netip.MustParseAddr(s)) == "" {
			t.Errorf("%s is let out", s)
		}
	}
	for _, s := range outside4 {
		if what := closed(netip.MustParseAddr(s)); what != "" {
			t.Errorf("%s is refused as %s", s, what)
		}
	}
}

// forms writes an IPv4 address in every IPv6 dress it can travel in.
func forms(s string) map[string]netip.Addr {
	b := netip.MustParseAddr(s).As4()
	hex := fmt.Sprintf("%02x%02x:%02x%02x", b[0], b[1], b[2], b[3])
	inverted := fmt.Sprintf("%02x%02x:%02x%02x", ^b[0], ^b[1], ^b[2], ^b[3])
	text := map[string]string{
		"mapped":           "::ffff:" + s,
		"mapped with zone": "::ffff:" + s + "%eth0",
		"compatible":       "::" + s,
		"translated":       "::ffff:0:" + s,
		"NAT64":            "64:ff9b::" + s,
		"NAT64 with zone":  "64:ff9b::" + s + "%eth0",
		"local NAT64 /96":  "64:ff9b:1::" + s,
		"local NAT64 /48":  fmt.Sprintf("64:ff9b:1:%02x%02x:%x:%02x00::", b[0], b[1], b[2], b[3]),
		"6to4":             "2002:" + hex + "::1",
		"Teredo":           "2001:0:4136:e378:8000:63bf:" + inverted,
		"ISATAP":           "2a00:1450:4001:81b:0:5efe:" + s,
		"ISATAP universal": "2a00:1450:4001:81b:200:5efe:" + s,
	}
	out := map[string]netip.Addr{}
	for k, v := range text {
		out[k] = netip.MustParseAddr(v)
	}
	return out
}

func TestClosedIPv4InsideIPv6(t *testing.T) {
	for _, s := range inside4 {
		for form, a := range forms(s) {
			if closed(a) == "" {
				t.Errorf("%s as %s (%s) is let out", s, form, a)
			}
		}
	}
	// Of the public ones, the forms whose inner address decides are let out; the
	// forms that are not ours to read never are.
	decided := map[string]bool{
		"mapped": true, "mapped with zone": true, "NAT64": true, "NAT64 with zone": true,
		"ISATAP": true, "ISATAP universal": true, "6to4": true, "compatible": true,
	}
	for _, s := range outside4 {
		for form, a := range forms(s) {
			if got := closed(a) == ""; got != decided[form] {
				t.Errorf("%s as %s (%s): let out = %v", s, form, a, got)
			}
		}
	}
}

func TestClosedIPv6(t *testing.T) {
	inside := []string{
		"::", "::1", "::1%lo", "100::1", "2001::1", "2001:2::1", "2001:10::1", "2001:1f:ffff::1",
		"2001:20::1", "2001:2f:ffff::1", "2001:1ff::1", "2001:db8::1", "2002::1", "2620:4f:8000::1",
		"3fff::1", "3fff:fff:ffff::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fdff:ffff::1", "fe80::1",
		"fe80::1%eth0", "febf::1", "fec0::1", "feff::1", "ff02::1", "ff05::2", "ffff::1", "4000::1",
		"1000::1", "1fff::1", "64:ff9b:1::1", "64:ff9b:2::1", "64:ff9b::1:0:0",
	}
	for _, s := range inside {
		if closed(netip.MustParseAddr(s)) == "" {
			t.Errorf("%s is let out", s)
		}
	}
	outside := []string{
		"2606:4700:4700::1111", "2a00:1450:4001:81b::200e", "2001:4860:4860::8888", "2001:200::1",
		"2001:db7:ffff::1", "2001:db9::1", "2003::1", "2620:4f:8001::1", "3ffe:ffff::1", "3fff:1000::1",
	}
	for _, s := range outside {
		if what := closed(netip.MustParseAddr(s)); what != "" {
			t.Errorf("%s is refused as %s", s, what)
		}
	}
	if closed(netip.Addr{}) == "" {
		t.Error("no address at all is let out")
	}
}

func TestAllowPrefixes(t *testing.T) {
	g := New(Options{AllowPrefixes: []netip.Prefix{
		netip.MustParsePrefix("10.1.2.3/8"),           // host bits are ignored
		netip.MustParsePrefix("::ffff:127.0.0.1/128"), // the mapped form of 127.0.0.1/32
		netip.MustParsePrefix("fd00:1::/32"),
		{}, // an empty prefix admits nothing
	}})
	defer g.Close()
	for s, want := range map[string]bool{
		"10.200.0.1": true, "::ffff:10.200.0.1": true, "127.0.0.1": true, "fd00:1::9": true,
		"fd00:1::9%eth0": true, "8.8.8.8": true, "127.0.0.2": false, "fd00:2::9": false,
		"64:ff9b::10.200.0.1": false, "2002:ac8:1::1": false, "::10.200.0.1": false,
	} {
		err := g.CheckAddr(netip.MustParseAddr(s))
		if (err == nil) != want {
			t.Errorf("%s: %v", s, err)
		}
		var d *Denied
		if err != nil && (!errors.As(err, &d) || d.Reason != Blocked) {
			t.Errorf("%s: %#v", s, err)
		}
	}
}

func TestControl(t *testing.T) {
	g := New(Options{})
	for _, c := range []struct {
		network, address string
		want             Reason
	}{
		{"tcp4", "8.8.8.8:443", ""},
		{"tcp4", "8.8.8.8:1", ""},
		{"tcp6", "[2606:4700:4700::1111]:65535", ""},
		{"tcp4", "127.0.0.1:80", Blocked},
		{"tcp6", "[fe80::1%eth0]:80", Blocked},
		{"tcp6", "[::ffff:10.0.0.1]:80", Blocked},
		{"tcp4", "8.8.8.8:0", Policy},
		{"udp4", "8.8.8.8:53", Policy},
		{"unix", "/run/docker.sock", Policy},
		{"tcp4", "example.com:80", Blocked},
	} {
		got, _ := DeniedReason(g.control(c.network, c.address, nil))
		if got != c.want {
			t.Errorf("%s %s: %q, want %q", c.network, c.address, got, c.want)
		}
	}
}
