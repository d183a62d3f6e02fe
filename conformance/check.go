package conformance

import "slices"

// check is one entry of the registry.
type check struct {
	id       string
	section  string
	says     string
	level    Level
	scenario string
	ref      string   // the protocol's id of the requirement, where it has one
	needs    []string // families discovery must advertise
	slow     bool
	sweep    bool // looks at what the other checks were answered; runs after them
	run      func(*probe)
}

func must(id, section, says string, run func(*probe)) check {
	return check{id: id, section: section, says: says, level: Must, run: run}
}

func should(id, section, says string, run func(*probe)) check {
	return check{id: id, section: section, says: says, level: Should, run: run}
}

// floor ties a check to a floor scenario and to the protocol's requirement.
func (c check) floor(scenario, ref string) check {
	c.scenario, c.ref = scenario, ref
	return c
}

// gated makes a check inapplicable unless discovery advertises the families.
func (c check) gated(families ...string) check {
	c.needs = append(slices.Clone(c.needs), families...)
	return c
}

// long marks a check that has to wait for a long silence.
func (c check) long() check {
	c.slow = true
	return c
}

// last lets a check run after all others, on their answers.
func (c check) last() check {
	c.sweep = true
	return c
}

func (c *check) requirement() Requirement {
	return Requirement{ID: or(c.ref, "fermata.requirement."+c.id), Section: c.section, Says: c.says}
}

// registry lists every check, in the order of the report.
var registry = slices.Concat(
	discoveryChecks, versioningChecks, headerChecks, errorChecks, identityChecks, tenancyChecks, laneChecks,
	createChecks, optionChecks, readChecks, listChecks, cancelChecks, bulkChecks, pauseChecks,
	logChecks, streamChecks, resumeChecks, batchChecks, pollChecks,
	interruptChecks, approvalChecks, approverChecks, tokenChecks, heldTokenChecks,
	compensationChecks, idempotencyChecks, effectChecks, credentialChecks, retentionChecks, replayChecks, forkChecks, diffChecks, webhookChecks, deliveryChecks, standardChecks, lifeChecks, auditChecks, limitChecks, redactionChecks, gateChecks, seamChecks,
)
