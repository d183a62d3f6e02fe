package conformance

import "encoding/json"

// forkChecks look at what a fork must leave alone, and at who dispatched a run.
var forkChecks = []check{
	must("fork.prefix-bytes", "replay.md §Byte-equivalence of the prefix", "the payloads of what is inherited are the source's, byte for byte", func(p *probe) {
		for _, mode := range p.forkModes() {
			src := p.over("approved")
			log := p.log(src)
			from := len(log) - 2
			id := p.ok(p.fork(src, object{"mode": mode, "fromSeq": from}), 201, "").str("runId")
			p.ended(id)
			for i, e := range p.log(id)[:from] {
				p.want(string(e.Payload) == string(log[i].Payload), "event %d of the %s: %.200s, in the source %.200s", i, mode, e.Payload, log[i].Payload)
			}
		}
	}).gated("replay"),

	must("fork.interrupt-not-raised", "replay.md §Determinism caveats, rules 2 and 6", "a replay takes the recorded answer: nothing is asked anew, and nobody can answer", func(p *probe) {
		p.offers("replay")
		src := p.over("approved")
		log := p.log(src)
		for i, was := range log {
			if was.Type != "interrupt.resolved" {
				continue
			}
			id := p.ok(p.fork(src, object{"mode": "replay", "fromSeq": i}), 201, "").str("runId")
			p.becomes(id, "completed")
			found := false
			for _, e := range p.log(id) {
				p.want(e.Sequence < int64(i) || e.Type != "interrupt.requested", "the replay raises an interrupt at sequence %d", e.Sequence)
				if e.Type == "interrupt.resolved" {
					found = true
					for _, member := range []string{"decision", "action", "resolvedBy"} {
						a, b := was.field(member), e.field(member)
						p.want(same(a, b), "%s is %s in the source and %s in the replay", member, a, b)
					}
				}
			}
			p.want(found, "the replay has no interrupt.resolved")
			p.refused(p.resolve(id, was.NodeID, accept), 409, "interrupt_already_resolved")
			return
		}
		p.blocked("no interrupt was resolved in the source")
	}).gated("replay"),

	must("fork.branch-apart", "replay.md §Modes", "a branch has an interrupt of its own, and its source goes on waiting", func(p *probe) {
		p.offers("branch")
		src, node := p.waiting(approval, "waiting-approval")
		log := p.log(src)
		from := 1
		for i, e := range log {
			if e.Type == "node.started" && e.NodeID == node {
				from = i + 1
			}
		}
		if from >= len(log) {
			p.blocked("the run waits without having said so")
		}
		id := p.ok(p.fork(src, object{"mode": "branch", "fromSeq": from}), 201, "").str("runId")
		p.await(id, "waiting-approval")
		p.ok(p.resolve(id, node, accept), 200, "")
		p.becomes(id, "completed")
		p.stillWaits(src)
		after := p.log(src)
		p.want(len(after) == len(log), "the source's log grew from %d to %d events", len(log), len(after))
	}).gated("replay"),

	must("ancestry.top", "runs.md §Diff and ancestry", "a run that was created, or forked, was dispatched by nobody", func(p *probe) {
		p.ancestry()
		src := p.over("completed")
		a := p.ok(p.get(at(src)+"/ancestry"), 200, "run-ancestry-response")
		p.want(string(a.obj()["parent"]) == "null" && a.str("runId") == src, "the ancestry is %s", a.body)
		for _, mode := range p.forkModes() {
			id := p.ok(p.fork(src, object{"mode": mode, "fromSeq": 0}), 201, "").str("runId")
			a := p.ok(p.get(at(id)+"/ancestry"), 200, "run-ancestry-response")
			p.want(string(a.obj()["parent"]) == "null", "a %s is dispatched by %s", mode, a.obj()["parent"])
		}
	}).gated("multiAgent"),

	must("ancestry.child", "runs.md §Diff and ancestry", "a child run names the run that dispatched it", func(p *probe) {
		p.ancestry()
		child, parent := p.childRun()
		a := p.ok(p.get(at(child)+"/ancestry"), 200, "run-ancestry-response")
		var got struct{ RunID, HostID, Cause string }
		_ = json.Unmarshal(a.obj()["parent"], &got) // what is missing is empty
		p.want(got.RunID == parent && got.HostID != "" && got.Cause != "", "the parent is %s", a.obj()["parent"])
	}).gated("multiAgent"),
}

// ancestry skips a check where the host does not serve the operation.
func (p *probe) ancestry() {
	var m struct {
		CrossHostCausation struct{ AncestryEndpointSupported bool }
	}
	p.s.facet(&m, "multiAgent", "executionModel")
	if !m.CrossHostCausation.AncestryEndpointSupported {
		p.inapplicable("multiAgent.executionModel.crossHostCausation.ancestryEndpointSupported is not advertised")
	}
}
