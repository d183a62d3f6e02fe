package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

const v1Events = "run-event.schema.json"

// youngerNames are the types that version 2 renamed, under their new names: none of them
// is a type of version 1 (spec v2 event-codemap.json).
var youngerNames = strings.Fields(`
	run.resume-started run.dead-lettered replay.diverged-at-refusal agent.reasoning-delta agent.prompt-resolved agent.tool-called agent.tool-returned
	agent.invocation-started agent.invocation-completed agent.memory-consolidated model.capability-substituted model.capability-insufficient
	envelope.retry-attempted envelope.retry-exhausted envelope.nl-to-format-engaged envelope.recovery-applied deployment.canary-adjusted deployment.state-changed
	roster.run-initiated tool.session-opened tool.session-closed trigger.subscription-state-changed trigger.delivery-attempted budget.threshold-crossed
	orchestrator.decided dispatch.fanned-out dispatch.joined workflow-chain.event workflow-chain.confidence-escalated connector.auth-expired
	voice.speech-start voice.endpoint-candidate voice.turn-commit voice.synthesis-chunk voice.barge-in compensation.manual-intervention-required`)

// ends are the shared runs that have ended, in every way.
func (p *probe) ends() (out [][]event) {
	for _, how := range []string{"completed", "approved", "failed", "cancelled"} {
		out = append(out, p.log(p.over(how)))
	}
	return out
}

var v1EventChecks = []check{
	must("v1.events.numbered", v1Events, "events are numbered from 0, one after the other", func(p *probe) {
		for _, log := range p.ends() {
			p.want(len(log) > 0, "a run that has ended has no events")
			for i, e := range log {
				p.want(e.Sequence == int64(i), "event %d has the sequence %d", i, e.Sequence)
			}
		}
	}),

	must("v1.events.envelope", v1Events, "an event has its ids, its type, its payload and its time; the engine's version is text", func(p *probe) {
		for _, how := range []string{"completed", "approved", "failed", "cancelled"} {
			id := p.over(how)
			seen := map[string]bool{}
			for i, e := range p.log(id) {
				p.want(e.EventID != "" && !seen[e.EventID], "event %d has the id %q", i, e.EventID)
				seen[e.EventID] = true
				p.want(e.RunID == id, "event %d is of the run %q, not %s", i, e.RunID, id)
				p.want(e.Type != "" && len(e.Payload) > 0 && e.Payload[0] == '{', "event %d: %.200s", i, e.doc)
				p.moment(parts(e.doc)["timestamp"], fmt.Sprintf("the time of event %d", i))
				if v, ok := parts(e.doc)["engineVersion"]; ok {
					p.want(text(v) != "", "event %d has the engineVersion %s", i, v)
				}
				if v, ok := parts(e.doc)["schemaVersion"]; ok {
					p.want(whole(v) == 1, "event %d has the schemaVersion %s", i, v)
				}
			}
		}
	}),

	must("v1.events.names", "v2 event-codemap.json", "no event has a name that only version 2 has", func(p *probe) {
		for _, log := range p.ends() {
			for _, e := range log {
				p.want(!slices.Contains(youngerNames, e.Type), "event %d is called %s", e.Sequence, e.Type)
			}
		}
	}),

	must("v1.events.one-end", v1Events, "a run that has ended has one terminal event, and it is the last", func(p *probe) {
		for how, typ := range map[string]string{"completed": "run.completed", "failed": "run.failed", "cancelled": "run.cancelled"} {
			g, _ := p.poll(p.over(how), "?timeout=1")
			n := 0
			for _, doc := range g.Events {
				if terminalType(p.event(doc).Type) {
					n++
				}
			}
			p.want(n == 1, "the %s run has %d terminal events", how, n)
			last := p.event(g.Events[len(g.Events)-1])
			p.want(last.Type == typ, "the %s run ends with %s", how, last.Type)
		}
	}),

	must("v1.events.payloads", "run-event-payloads.schema.json", "events of runs and nodes hold what their payload schemas require", func(p *probe) {
		for _, log := range p.ends() {
			for _, e := range log {
				for _, name := range required[e.Type] {
					p.want(len(e.field(name)) > 0, "%s has no %s: %.200s", e.Type, name, e.Payload)
				}
			}
			p.want(log[0].Type == "run.started", "the first event is %s", log[0].Type)
		}
	}),

	must("v1.events.asked", "v1 interrupt.md", "an approval and a clarification are told of by their own events too, in order", func(p *probe) {
		id, node := p.waiting(approval, "waiting-approval")
		p.ok(p.resolve(id, node, accept), 200, "")
		p.becomes(id, "completed")
		p.inOrder(p.log(id), "approval.requested", "node.suspended", "approval.received", "node.resumed", "node.completed", "run.completed")
		e, _ := find(p.log(id), "approval.received")
		p.want(text(e.field("action")) == "accept" && text(e.field("nodeId")) == node, "approval.received is %s", e.Payload)

		id, node = p.waiting(clarify, "waiting-input")
		p.ok(p.resolve(id, node, object{"answers": object{"q1": "blue"}}), 200, "")
		p.becomes(id, "completed")
		p.inOrder(p.log(id), "clarification.requested", "node.suspended", "clarification.resolved", "node.resumed", "run.completed")
		e, _ = find(p.log(id), "clarification.resolved")
		p.want(text(member(e.Payload, "answers", "q1")) == "blue", "clarification.resolved is %s", e.Payload)
	}),
}

// required are members of payloads that no event of the type does without.
var required = map[string][]string{
	"run.started": {"workflowId"}, "run.failed": {"error"}, "node.started": {"nodeId", "typeId"}, "node.completed": {"nodeId"}, "node.failed": {"nodeId", "error"},
	"node.suspended": {"nodeId", "interruptId"}, "node.resumed": {"nodeId"}, "approval.requested": {"nodeId", "artifactId", "artifactType", "actions"},
	"approval.received": {"nodeId", "action"},
}

// inOrder wants types in this order, whatever lies between.
func (p *probe) inOrder(log []event, want ...string) {
	i := 0
	for _, e := range log {
		if i < len(want) && e.Type == want[i] {
			i++
		}
	}
	p.want(i == len(want), "the log lacks %s in its place: %v", want[min(i, len(want)-1)], types(log))
}

const v1PollSection = "v1 rest-endpoints.md §Poll"

var v1PollChecks = []check{
	must("v1.poll.answer", v1PollSection, "a poll says which events there are, and whether more can come", func(p *probe) {
		open, _ := p.waiting(approval, "waiting-approval")
		for id, over := range map[string]bool{p.over("completed"): true, open: false} {
			_, a := p.poll(id, "?timeout=1")
			m := a.obj()
			p.want(len(m["events"]) > 0 && m["events"][0] == '[', "events is %.100s", m["events"])
			p.want(m["isComplete"] != nil && isTrue(m["isComplete"]) == over, "the run has ended: %v; isComplete is %s", over, m["isComplete"])
			if v, ok := m["isTerminal"]; ok {
				p.want(isTrue(v) == over, "the run has ended: %v; isTerminal is %s", over, v)
			}
			if v, ok := m["runStatus"]; ok {
				p.want(text(v) == p.snapshot(id).str("status"), "runStatus is %s", v)
			}
			if v, ok := m["runId"]; ok {
				p.want(text(v) == id, "runId is %s", v)
			}
			if v, ok := m["lastEventSeq"]; ok {
				log := p.log(id)
				p.want(whole(v) == log[len(log)-1].Sequence, "lastEventSeq is %s, the last event %d", v, log[len(log)-1].Sequence)
			}
		}
	}),

	must("v1.poll.cursor", v1PollSection, "lastSequence is the last event the caller has: what follows comes, and 0 leaves out event 0; since is its old name", func(p *probe) {
		id := p.over("approved")
		log := p.log(id)
		for _, name := range []string{"lastSequence", "since"} {
			for _, after := range []int{0, 1, len(log) / 2, len(log) - 1} {
				g, _ := p.poll(id, fmt.Sprintf("?timeout=1&%s=%d", name, after))
				p.want(len(g.Events) == len(log)-after-1, "%s=%d: %d events of %d", name, after, len(g.Events), len(log))
				if len(g.Events) > 0 {
					p.want(p.event(g.Events[0]).Sequence == int64(after)+1, "%s=%d begins with %d", name, after, p.event(g.Events[0]).Sequence)
				}
			}
		}
		g, _ := p.poll(id, "?timeout=1")
		p.want(len(g.Events) == len(log) && p.event(g.Events[0]).Sequence == 0, "without a cursor there are %d events of %d", len(g.Events), len(log))
	}),

	must("v1.poll.past-the-end", v1PollSection, "behind the last event there is an empty page", func(p *probe) {
		a := p.ok(p.get(at(p.over("completed"))+"/events/poll?timeout=1&lastSequence=100000"), 200, "")
		p.want(string(compact(a.obj()["events"])) == "[]", "events is %.100s", a.obj()["events"])
	}),

	must("v1.poll.refused", v1PollSection, "a cursor below 0 and a timeout outside 1 to 60 are 400 validation_error", func(p *probe) {
		id := p.over("completed")
		for _, q := range []string{"lastSequence=-1", "lastSequence=x", "since=-1", "timeout=0", "timeout=61", "timeout=x"} {
			p.refuses(p.get(at(id)+"/events/poll?"+q), []int{400}, "validation_error")
		}
	}),

	must("v1.poll.waits", v1PollSection, "a poll at the end of an open run is answered by what happens next", func(p *probe) {
		id, node := p.waiting(approval, "waiting-approval")
		log := p.log(id)
		last := log[len(log)-1].Sequence
		got := make(chan answer, 1)
		go func() {
			a, _ := p.send("GET", at(id)+fmt.Sprintf("/events/poll?timeout=60&lastSequence=%d", last), nil)
			got <- a
		}()
		p.ok(p.resolve(id, node, accept), 200, "")
		a := <-got
		var g page
		_ = json.Unmarshal(a.body, &g)
		p.want(a.status == 200 && len(g.Events) > 0 && p.event(g.Events[0]).Sequence == last+1, "the poll behind %d: %s, %.200s", last, a.brief(), a.body)
	}),
}
