package edge

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/fermata-run/fermata/internal/problem"
)

// checkHost refuses a request that has come over a loopback connection under a
// name that is none of the loopback's. Such a name has been made to point here by
// whoever owns it: a page of his would pass for a page of this host.
func (e *edge) checkHost(r *http.Request) *problem.Error {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok || !loopback(local) || ownName(r.Host) || slices.Contains(e.Hosts, bare(r.Host)) {
		return nil
	}
	return problem.New(problem.Forbidden, "this host is not called by that name here; allowed-hosts lists the names of a proxy on its machine").
		With("header", "Host")
}

func loopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// ownName reports whether a Host header names the loopback itself. A request
// without one comes from no browser.
func ownName(host string) bool {
	name := bare(host)
	if name == "" || name == "localhost" || strings.HasSuffix(name, ".localhost") { // RFC 6761 §6.3
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.Unmap().IsLoopback()
}

// bare is a Host header's name in small letters, without port, brackets and the
// dot of the root.
func bare(host string) string {
	name := strings.ToLower(host)
	if n, _, err := net.SplitHostPort(name); err == nil {
		name = n
	} else if strings.HasPrefix(name, "[") {
		name = strings.TrimSuffix(name[1:], "]")
	}
	return strings.TrimSuffix(name, ".")
}
