package conformance_test

import (
	"slices"
	"testing"

	"github.com/fermata-run/fermata/conformance"
)

// floors lists, for every floor scenario of profiles.json, the checks that witness
// it. More may join; none of these may go, or move to another scenario.
var floors = map[string]map[string][]string{
	"openwop-discovery-core": {
		"v2-capabilities-root-closed":  {"discovery.document", "discovery.root-closed"},
		"v2-preferred-version-default": {"versioning.grammar", "versioning.preferred", "versioning.headerless"},
		"v2-version-header-honored":    {"versioning.both-spellings", "versioning.unserved-refused", "versioning.unserved-everywhere", "versioning.two-majors"},
	},
	"openwop-core-standard": {
		"v2-interrupt-token-scheme":   {"token.unprefixed", "token.unheld-key", "token.unknown-alg"},
		"v2-effect-seam-manifest":     {"replay.facet", "replay.manifest"},
		"v2-webhook-durable-delivery": {"webhooks.complete", "webhooks.retried", "webhooks.dead-letter"},
		"v2-idempotency-key-grammar":  {"idempotency.key-accepted", "idempotency.key-refused"},
		"v2-era-key":                  {"discovery.era", "create.era"},
		"v2-era-stamp-universal":      {"create.era-universal", "create.child-era"},
		"v2-event-type-closed":        {"log.envelope", "log.sequence", "log.types"},
		"v2-poll-cursor-v2":           {"poll.shape", "poll.from-first", "poll.every-position", "poll.past-end"},
		"v2-run-cancel":               {"cancel.running", "cancel.waiting", "cancel.terminal"},
		"v2-run-bulk-cancel":          {"bulk.cap", "bulk.each-alone", "bulk.all-fail"},
		"v2-run-pause-resume":         {"pause.cycle", "pause.terminal", "pause.resume-unpaused", "pause.policy-echoed"},
		"v2-run-options-limits":       {"create.closed", "options.tag-limits", "options.tags-free", "options.metadata"},
		"v2-sse-last-event-id":        {"stream.complete", "resume.every-position", "resume.at-end", "resume.values"},
		"v2-sse-last-event-id-cursor": {"resume.past-end", "resume.past-end-live", "resume.malformed", "resume.after-authorization"},
	},
	"openwop-conformance-seams-v2": {
		"v2-fork-a-v1-run":                {"seams.fork-v1"},
		"v2-effect-identity-business-key": {"seams.effect-retry"},
		"v2-v1-signed-webhook-accepted":   {"seams.v1-webhook"},
		"v2-effect-seam-no-refire":        {"seams.no-refire"},
	},
}

// unbroken lists floor checks without a broken host in the tables, with the reason or
// the test that has one.
var unbroken = map[string]string{
	"versioning.two-majors": "it binds a host of two majors, and the good host serves one",
	"create.child-era":      "the same stamp as create.era-universal, of a run that a node starts",
	"webhooks.complete":     "TestBrokenDeliveriesAreCaught",
	"webhooks.retried":      "TestBrokenDeliveriesAreCaught",
	"webhooks.dead-letter":  "TestBrokenDeliveriesAreCaught",
}

func TestEveryFloorScenarioHasChecks(t *testing.T) {
	t.Parallel()
	r := look(t, serve(t, good(t)), func(c *conformance.Config) { c.Filter = `^v2-` })
	if len(r.Profiles) != len(floors) {
		t.Errorf("%d profiles, want %d", len(r.Profiles), len(floors))
	}
	for _, p := range r.Profiles {
		want := floors[p.ID]
		if len(p.Scenarios) != len(want) {
			t.Errorf("%s has %d scenarios, want %d", p.ID, len(p.Scenarios), len(want))
		}
		for _, s := range p.Scenarios {
			if len(want[s.ID]) == 0 {
				t.Errorf("%s: no row for %s", p.ID, s.ID)
			}
			for _, id := range want[s.ID] {
				if !slices.Contains(s.Checks, id) {
					t.Errorf("%s: %s is not witnessed by %s, only by %v", p.ID, s.ID, id, s.Checks)
				}
			}
		}
	}
}

// A check of the floor that nobody has seen failing proves nothing.
func TestEveryFloorCheckHasABrokenHost(t *testing.T) {
	t.Parallel()
	caught := map[string]bool{}
	for _, m := range mutations {
		caught[m.check] = true
	}
	for _, f := range futureFaults {
		caught[f.check] = true
	}
	for _, m := range seamMutations {
		caught[m.check] = true
	}
	for _, scenarios := range floors {
		for scenario, checks := range scenarios {
			for _, id := range checks {
				if !caught[id] && unbroken[id] == "" {
					t.Errorf("%s: no broken host is there for %s", scenario, id)
				}
				if caught[id] && unbroken[id] != "" {
					t.Errorf("%s has a broken host: take it off the list", id)
				}
			}
		}
	}
}
