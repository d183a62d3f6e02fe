package gate

import (
	"errors"
	"hash/maphash"
	"net"
	"net/http"
	"net/netip"
	"sync"

	"github.com/fermata-run/fermata/internal/problem"
)

// Knock refuses a credential unseen if too many from its address have been none
// lately. One that has been good since the host started is looked at all the same:
// others behind the same address, as behind a proxy, are not shut out by whoever
// guesses there.
func (g *Gate) Knock(r *http.Request, credential string) error {
	if !g.guarded || credential == "" || g.good.has(credential) {
		return nil
	}
	if wait := g.failures.Wait(address(r), g.now()); wait > 0 {
		return over("auth-failures", g.bounds.Failures.String(), wait)
	}
	return nil
}

// Known is told what became of a credential, and passes the refusal on.
func (g *Gate) Known(r *http.Request, credential string, err error) error {
	var p *problem.Error
	switch {
	case !g.guarded || credential == "":
	case err == nil:
		g.good.add(credential)
	case errors.As(err, &p) && p.Status() == http.StatusUnauthorized:
		g.failures.Take(address(r), g.now())
	}
	return err
}

// address is who a request comes from: an address of IPv4, a /64 of IPv6, which is
// what one party is given. Without one, all share what is left.
func address(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return ""
	}
	if ip = ip.Unmap(); ip.Is4() {
		return ip.String()
	}
	p, err := ip.WithZone("").Prefix(64)
	if err != nil {
		return ""
	}
	return p.String()
}

// good remembers credentials that were good, by a hash under a key of this process
// and in two generations: of the last maxGood it forgets none.
type good struct {
	seed maphash.Seed
	mu   *sync.Mutex
	gens *[2]map[uint64]struct{}
}

const maxGood = 16_384

func newGood() good {
	return good{seed: maphash.MakeSeed(), mu: &sync.Mutex{}, gens: &[2]map[uint64]struct{}{{}, {}}}
}

func (g good) has(credential string) bool {
	h := maphash.String(g.seed, credential)
	g.mu.Lock()
	defer g.mu.Unlock()
	_, young := g.gens[0][h]
	_, old := g.gens[1][h]
	return young || old
}

func (g good) add(credential string) {
	h := maphash.String(g.seed, credential)
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.gens[0][h]; ok {
		return
	}
	if len(g.gens[0]) >= maxGood {
		g.gens[0], g.gens[1] = map[uint64]struct{}{}, g.gens[0]
	}
	g.gens[0][h] = struct{}{}
}
