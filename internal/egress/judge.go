package egress

import (
	"net/netip"
	"syscall"
)

// control is called by the dialer with the very address it is about to connect
// to, once for each address it tries.
func (g *Guard) control(network, address string, _ syscall.RawConn) error {
	if network != "tcp4" && network != "tcp6" {
		return policy("network %s", network)
	}
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return &Denied{Reason: Blocked, Detail: "not an address"}
	}
	if ap.Port() == 0 {
		return policy("port 0")
	}
	return g.CheckAddr(ap.Addr())
}

// CheckAddr reports whether a may be called: nil, or a *Denied.
func (g *Guard) CheckAddr(a netip.Addr) error {
	if g.admitted(a) {
		return nil
	}
	if what := closed(a); what != "" {
		return &Denied{Reason: Blocked, Detail: what + " address " + a.String()}
	}
	return nil
}
