package conformance

import (
	"maps"
	"slices"
)

// Verdict is what the results say about a profile the host claims.
type Verdict string

// A profile holds if each floor scenario was witnessed or does not apply, and
// at least one was witnessed.
const (
	Holds      Verdict = "pass"
	Broken     Verdict = "fail"
	Unmeasured Verdict = "blocked"
	NotClaimed Verdict = "not-claimed"
	Partial    Verdict = "incomplete" // the filter left scenarios out
)

// ProfileResult is the verdict on one profile.
type ProfileResult struct {
	ID        string           `json:"id"`
	Claimed   bool             `json:"claimed"`
	Missing   []string         `json:"missing,omitempty"` // what discovery lacks for the claim
	Verdict   Verdict          `json:"verdict"`
	Witnesses int              `json:"witnessCount"` // scenarios witnessed
	Scenarios []ScenarioResult `json:"scenarios"`
}

// ScenarioResult is the sum of the checks of one floor scenario.
type ScenarioResult struct {
	ID     string   `json:"id"`
	Status Status   `json:"status"` // empty if none of its checks ran
	Checks []string `json:"checks"`
}

// profile is a predicate over the discovery document, with the scenarios that
// are its floor (spec v2 capabilities.md §7).
type profile struct {
	id    string
	needs []string
	floor []string
}

var profiles = []profile{
	{"openwop-discovery-core", []string{"protocolVersions", "preferredVersion"}, []string{
		"v2-capabilities-root-closed", "v2-preferred-version-default", "v2-version-header-honored",
	}},
	{"openwop-core-standard", []string{"interrupt", "replay", "webhooks", "idempotency", "eventLog"}, []string{
		"v2-interrupt-token-scheme", "v2-effect-seam-manifest", "v2-webhook-durable-delivery", "v2-idempotency-key-grammar",
		"v2-era-key", "v2-era-stamp-universal", "v2-event-type-closed", "v2-poll-cursor-v2", "v2-run-cancel",
		"v2-run-bulk-cancel", "v2-run-pause-resume", "v2-run-options-limits", "v2-sse-last-event-id", "v2-sse-last-event-id-cursor",
	}},
	{"openwop-conformance-seams-v2", []string{"conformance"}, []string{
		"v2-fork-a-v1-run", "v2-effect-identity-business-key", "v2-v1-signed-webhook-accepted", "v2-effect-seam-no-refire",
	}},
}

func (r *Report) judge(advertised func(string) bool) {
	for _, p := range profiles {
		out := ProfileResult{ID: p.id, Scenarios: make([]ScenarioResult, 0, len(p.floor))}
		for _, n := range p.needs {
			if !advertised(n) {
				out.Missing = append(out.Missing, n)
			}
		}
		out.Claimed = len(out.Missing) == 0
		found := map[Status]int{}
		for _, id := range p.floor {
			s := r.scenario(id)
			found[s.Status]++
			out.Scenarios = append(out.Scenarios, s)
		}
		out.Witnesses = found[Pass]
		out.Verdict = verdictOf(out.Claimed, found)
		r.Profiles = append(r.Profiles, out)
	}
}

func verdictOf(claimed bool, found map[Status]int) Verdict {
	switch {
	case !claimed:
		return NotClaimed
	case found[Fail] > 0:
		return Broken
	case found[""] > 0:
		return Partial
	case found[Blocked] > 0 || found[Pass] == 0:
		return Unmeasured
	}
	return Holds
}

// scenario sums up: worst first, and one pass outweighs legs that do not apply.
func (r *Report) scenario(id string) ScenarioResult {
	out := ScenarioResult{ID: id, Checks: []string{}}
	seen := map[Status]bool{}
	for i := range r.Results {
		x := &r.Results[i]
		if x.Scenario != id {
			continue
		}
		out.Checks = append(out.Checks, x.ID)
		if x.Status == Fail && x.Level == Should {
			continue
		}
		seen[x.Status] = true
	}
	for _, s := range []Status{Fail, Blocked, Pass, Inapplicable} {
		if seen[s] {
			out.Status = s
			break
		}
	}
	return out
}

// metadata lists the members a v2 discovery root may have that are no families
// (spec v2 capabilities.md §3.1), signing keys included (conformance.md).
var metadata = []string{
	"protocolVersion", "protocolVersions", "preferredVersion", "extensions", "implementation", "engineVersion",
	"eventLogSchemaVersion", "configurable", "observability", "minClientVersion", "runtimeCapabilities", "testing",
	"conformance", "fixtures", "compliance", "discovery", "signingKeys",
}

func familiesOf[V any](doc map[string]V) []string {
	out := slices.Sorted(maps.Keys(doc))
	return slices.DeleteFunc(out, func(k string) bool { return slices.Contains(metadata, k) })
}
