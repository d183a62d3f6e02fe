package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// derived is what a bundle's own rows say about a profile, whatever it claims.
type derived struct {
	id        string
	claimed   bool     // the discovery document satisfies the predicate
	lacks     []string // what it lacks, else
	witnesses int      // scenarios with a pass
	against   []string // what stands against certifying it
}

// refusal is why the profile is not certified; empty if it is.
func (d *derived) refusal() string { return strings.Join(d.against, "; ") }

// derive judges every profile from the signed rows. It is what certifies, and what
// a verifier holds against a claim.
func (b *Bundle) derive() []derived {
	var doc map[string]json.RawMessage
	_ = json.Unmarshal(b.Discovery.Document, &doc)
	out := make([]derived, 0, len(profiles))
	for _, p := range profiles {
		d := derived{id: p.id}
		for _, n := range p.needs {
			if _, ok := doc[n]; !ok {
				d.lacks = append(d.lacks, n)
			}
		}
		d.claimed = len(d.lacks) == 0
		b.floor(&d, p)
		if n := b.Results.Totals.Blocked; n > 0 {
			what := "requirements are"
			if n == 1 {
				what = "requirement is"
			}
			d.against = append(d.against, fmt.Sprintf("%d %s blocked", n, what))
		}
		for _, r := range b.Host.Relaxations {
			if relaxes(r, p) {
				d.against = append(d.against, "the operator has relaxed "+r.Obligation)
			}
		}
		out = append(out, d)
	}
	return out
}

// floor judges the rows of a profile's floor scenarios.
func (b *Bundle) floor(d *derived, p profile) {
	for _, id := range p.floor {
		sum := ""
		for i := range b.Results.Rows {
			r := &b.Results.Rows[i]
			switch {
			case r.Scenario != id:
			case r.Result == rowPass && r.Assertions == 0:
				sum = worse(sum, rowBlocked) // a pass that asserted nothing witnesses nothing
			default:
				sum = worse(sum, r.Result)
			}
		}
		switch sum {
		case rowPass:
			d.witnesses++
		case rowInapplicable:
		case "":
			d.against = append(d.against, "nothing witnesses "+id)
		default:
			d.against = append(d.against, id+" is "+sum)
		}
	}
	if d.witnesses == 0 {
		d.against = append(d.against, "no scenario of the floor was witnessed")
	}
}

// relaxes reports whether a relaxation belongs to a profile: its family is one
// the profile needs. One whose family nobody knows may belong to any.
func relaxes(r Relaxation, p profile) bool {
	family, _, ok := strings.Cut(r.Obligation, ".")
	return !ok || family == "" || slices.Contains(p.needs, family)
}
