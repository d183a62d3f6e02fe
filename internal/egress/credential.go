package egress

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/fermata-run/fermata/node"
)

// Bearer is a credential as the guard sees it: it is asked for its material for
// each host, and told of each call that is not let out. *node.Credential is one.
type Bearer interface {
	For(ctx context.Context, host string) (node.Material, error)
	Refused(ctx context.Context, host, reason string) error
}

// attachment is a credential with the way in which it goes along.
type attachment struct {
	bearer Bearer
	put    func(*http.Request, node.Material) error
}

type attachmentKey struct{}

// With lets a credential go along with the requests made with ctx. It is put on
// each hop by itself, after the guard has judged where that goes, and on a copy of
// the request: the caller never holds what carries it.
func With(ctx context.Context, b Bearer, put func(*http.Request, node.Material) error) context.Context {
	return context.WithValue(ctx, attachmentKey{}, &attachment{b, put})
}

func attached(ctx context.Context) *attachment {
	a, _ := ctx.Value(attachmentKey{}).(*attachment)
	return a
}

// Destination is how the host of a URL is named in a decision.
func Destination(host string) string {
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// equip judges a request that is to carry a credential and returns the one to send.
func (t *transport) equip(r *http.Request, a *attachment) (*http.Request, error) {
	ctx, host := r.Context(), Destination(r.URL.Hostname())
	err := t.guard.checkRequest(r)
	if err == nil {
		err = t.guard.reachable(r)
	}
	if err != nil {
		return nil, a.refuse(ctx, host, err)
	}
	m, err := a.bearer.For(ctx, host)
	if errors.Is(err, node.ErrDowngraded) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	with := r.Clone(ctx)
	return with, a.put(with, m)
}

// refuse records that a call was not let out. If that cannot be recorded, the call
// fails for that reason; let out it is not in either case.
func (a *attachment) refuse(ctx context.Context, host string, err error) error {
	reason, ok := DeniedReason(err)
	if !ok || host == "" {
		return err
	}
	if rec := a.bearer.Refused(ctx, host, string(reason)); rec != nil {
		var denied *node.Error
		if !errors.As(rec, &denied) || denied.Code != "egress_denied" {
			return rec
		}
	}
	return err
}

// reachable judges what the dialer would judge, so that a credential is not said to
// have been allowed where the address is closed. The dialer judges again: a name may
// lead elsewhere by then. Without TLS a credential goes to no host but one the
// operator has admitted by its address.
func (g *Guard) reachable(r *http.Request) error {
	host := r.URL.Hostname()
	if a, err := netip.ParseAddr(host); err == nil {
		if r.URL.Scheme != "https" && !g.admitted(a) {
			return policy("a credential without TLS")
		}
		return nil // its range has been judged
	}
	if r.URL.Scheme != "https" {
		return policy("a credential without TLS")
	}
	if g.opts.Proxy != nil {
		return nil
	}
	resolver := g.opts.Resolver
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	addrs, err := resolver.LookupNetIP(r.Context(), "ip", host)
	if err != nil {
		return nil // the dialer finds out, and nothing is sent
	}
	for _, a := range addrs {
		if err = g.CheckAddr(a); err == nil {
			return nil
		}
	}
	return err
}
