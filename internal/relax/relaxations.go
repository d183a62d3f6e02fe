package relax

import (
	"net/netip"
	"strings"
)

// Egress is the relaxation of a guard that lets nodes call ranges which are closed
// otherwise; none for no ranges.
func Egress(ranges []netip.Prefix) []Relaxation {
	if len(ranges) == 0 {
		return nil
	}
	return []Relaxation{{
		Name: "egress-private-ranges", Setting: "allow-egress",
		Family:     "webhooks", // the guard of everything that goes out is an obligation of theirs
		Effect:     "nodes may call " + list(ranges) + ", which is closed otherwise",
		Obligation: "outbound requests reach public addresses only",
	}}
}

// Webhooks is the relaxation of a host whose webhooks may go to ranges that are
// closed otherwise.
func Webhooks(ranges []netip.Prefix) []Relaxation {
	if len(ranges) == 0 {
		return nil
	}
	return []Relaxation{{
		Name: "webhooks-private-ranges", Setting: "allow-webhooks", Family: "webhooks",
		Effect:     "webhooks may be delivered to " + list(ranges) + ", which is closed otherwise, and there without TLS",
		Obligation: "webhooks go to public https addresses only",
	}}
}

// Issuers is the relaxation of a host that trusts an issuer of tokens whose keys
// come without TLS. That an operator's own issuer is in a private range is none.
func Issuers(plain bool) []Relaxation {
	if !plain {
		return nil
	}
	return []Relaxation{{
		Name: "issuers-without-tls", Setting: "identity", Family: "auth",
		Effect:     "keys that callers are verified with come over a connection that anybody on the way can change",
		Obligation: "a credential is verified against the trust root of its lane",
	}}
}

// Seams is the relaxation of a host that lets a conformance suite into its inside.
// It belongs to no profile that the suite certifies, but to that of production.
func Seams(mounted bool) []Relaxation {
	if !mounted {
		return nil
	}
	return []Relaxation{{
		Name: "conformance-seams", Setting: "conformance-seams", Family: "production",
		Effect:     "any API key of the host can drive its test seams",
		Obligation: "nothing but the protocol's operations can change a run",
	}}
}

func list(ranges []netip.Prefix) string {
	texts := make([]string, len(ranges))
	for i, p := range ranges {
		texts[i] = p.String()
	}
	return strings.Join(texts, ", ")
}
