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
		Effect:     "nodes may call " + list(ranges) + ", which is closed otherwise",
		Obligation: "outbound requests reach public addresses only",
	}}
}

// Webhooks is the relaxation of a guard that lets webhooks and callbacks be delivered
// to ranges which are closed otherwise, without TLS to a literal address in one; none
// for no ranges.
func Webhooks(ranges []netip.Prefix) []Relaxation {
	if len(ranges) == 0 {
		return nil
	}
	return []Relaxation{{
		Name: "webhook-private-ranges", Setting: "allow-webhooks",
		Effect:     "webhooks may be delivered to " + list(ranges) + ", which is closed otherwise",
		Obligation: "webhooks are delivered to public addresses only, over TLS",
	}}
}

func list(ranges []netip.Prefix) string {
	texts := make([]string, len(ranges))
	for i, p := range ranges {
		texts[i] = p.String()
	}
	return strings.Join(texts, ", ")
}
