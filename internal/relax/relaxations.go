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
	texts := make([]string, len(ranges))
	for i, p := range ranges {
		texts[i] = p.String()
	}
	return []Relaxation{{
		Name: "egress-private-ranges", Setting: "allow-egress",
		Effect:     "nodes may call " + strings.Join(texts, ", ") + ", which is closed otherwise",
		Obligation: "outbound requests reach public addresses only",
	}}
}
