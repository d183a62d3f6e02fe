package conformance

import (
	"encoding/json"
	"fmt"
	"sync"
)

var interruptChecks = []check{
	must("interrupt.requested", "interrupt.md §Events", "a suspended run shows interrupt.requested with the closed payload, and names the node", func(p *probe) {
		for r, status := range map[role]string{approval: "waiting-approval", clarify: "waiting-input", external: "waiting-external"} {
			id, node := p.waiting(r, status)
			events := p.log(id)
			e, ok := find(events, "interrupt.requested")
			p.want(ok, "the log has no interrupt.requested: %v", types(events))
			p.valid("suspend-request", e.Payload, "interrupt.requested")
			p.want(e.NodeID == node, "interrupt.requested is of the node %s, the run waits at %s", e.NodeID, node)
		}
	}),

	must("interrupt.status", "runs.md §Snapshot; interrupt.md §Payload", "the status tells the kind of the wait", func(p *probe) {
		for r, status := range map[role]string{approval: "waiting-approval", clarify: "waiting-input", external: "waiting-external"} {
			id := p.start(r)
			a := p.becomes(id, status)
			p.want(a.str("currentNodeId") != "", "a run that is %s names no node", status)
		}
	}),

	must("interrupt.resolve", "interrupt.md §Resolve surfaces", "an answer lets the run go on, and is in the log", func(p *probe) {
		id, node := p.waiting(approval, "waiting-approval")
		p.ok(p.resolve(id, node, accept), 200, "interrupt-resolve-response")
		p.becomes(id, "completed")
		e, ok := find(p.log(id), "interrupt.resolved")
		p.want(ok, "the log has no interrupt.resolved")
		p.want(text(e.field("nodeId")) == node, "interrupt.resolved is of the node %s", e.field("nodeId"))
		p.want(boundID.MatchString(text(e.field("interruptId"))), "interruptId is %s", e.field("interruptId"))
	}),

	must("interrupt.external", "interrupt.md §Payload", "an external event lets the run go on", func(p *probe) {
		id, node := p.waiting(external, "waiting-external")
		p.ok(p.resolve(id, node, object{"orderId": "fixture-order-1", "status": "completed"}), 200, "interrupt-resolve-response")
		p.becomes(id, "completed")
	}),

	must("interrupt.clarification", "interrupt.md §Payload", "an answered question lets the run go on", func(p *probe) {
		id, node := p.waiting(clarify, "waiting-input")
		p.ok(p.resolve(id, node, object{"answers": object{"q1": "blue"}}), 200, "interrupt-resolve-response")
		p.becomes(id, "completed")
	}),

	must("interrupt.closed", "interrupt.md §Resolve surfaces", "a body without resumeValue, or with more, is a validation_error, and the run still waits", func(p *probe) {
		id, node := p.waiting(approval, "waiting-approval")
		for _, body := range []any{object{}, object{"resumeValue": accept, "by": "me"}, object{"value": accept}, "[]"} {
			p.refused(p.post(at(id)+"/interrupts/"+node, body), 400, "validation_error")
		}
		p.stillWaits(id)
	}),

	must("interrupt.schema", "interrupt.md §Payload", "an answer that fails the resumeSchema is a validation_error; one that fits is taken", func(p *probe) {
		id, node := p.anyWait(custom)
		for _, v := range []any{object{}, object{"n": "1"}, object{"n": 1.5}, 1, nil} {
			p.refused(p.resolve(id, node, v), 400, "validation_error")
		}
		p.ok(p.resolve(id, node, object{"n": 7}), 200, "interrupt-resolve-response")
		p.becomes(id, "completed")
	}),

	must("interrupt.once", "interrupt.md §Resolve surfaces", "a second answer is interrupt_already_resolved", func(p *probe) {
		id, node := p.waiting(approval, "waiting-approval")
		p.ok(p.resolve(id, node, accept), 200, "")
		p.refused(p.resolve(id, node, accept), 409, "interrupt_already_resolved")
		p.becomes(id, "completed")
		p.refused(p.resolve(id, node, object{"action": "reject"}), 409, "interrupt_already_resolved")
	}),

	must("interrupt.concurrent", "interrupt.md §Resolve surfaces", "of answers given at the same time exactly one is taken", func(p *probe) {
		id, node := p.waiting(approval, "waiting-approval")
		answers := p.atOnce(8, func() (answer, error) {
			return p.send("POST", at(id)+"/interrupts/"+node, object{"resumeValue": accept})
		})
		taken := 0
		for _, a := range answers {
			if a.status == 200 {
				taken++
				continue
			}
			p.refused(a, 409, "interrupt_already_resolved")
		}
		p.want(taken == 1, "%d of %d answers were taken", taken, len(answers))
		p.becomes(id, "completed")
		p.want(count(p.log(id), "interrupt.resolved") == 1, "the log has %d interrupt.resolved", count(p.log(id), "interrupt.resolved"))
	}),

	must("interrupt.run-over", "interrupt.md §Resolve surfaces; errors.md §One code per state", "an answer to a cancelled or completed run is interrupt_already_resolved", func(p *probe) {
		id, node := p.waiting(approval, "waiting-approval")
		p.ok(p.post(at(id)+"/cancel", object{}), 200, "")
		p.becomes(id, "cancelled")
		p.refused(p.resolve(id, node, accept), 409, "interrupt_already_resolved")
	}),

	must("interrupt.nobody-waits", "interrupt.md §Resolve surfaces", "an unknown node is not_found", func(p *probe) {
		id, _ := p.waiting(approval, "waiting-approval")
		p.refused(p.resolve(id, "conformance-no-such-node", accept), 404, "not_found", "interrupt_not_found")
		p.stillWaits(id)
	}),

	must("interrupt.parallel", "interrupt.md §Payload", "two waits in one run are two interrupts, and an answer to one leaves the other", func(p *probe) {
		id := p.start(pair)
		p.await(id, "waiting-approval")
		keys, ids := map[string]bool{}, map[string]bool{}
		var nodes []string
		for range 40 {
			clear(keys)
			clear(ids)
			nodes = nil
			for _, e := range p.log(id) {
				switch e.Type {
				case "interrupt.requested":
					keys[text(e.field("key"))] = true
					nodes = append(nodes, e.NodeID)
				case "node.suspended":
					ids[text(e.field("interruptId"))] = true
				}
			}
			if len(nodes) == 2 || !p.pause(25e6) {
				break
			}
		}
		p.want(len(nodes) == 2 && len(keys) == 2 && len(ids) == 2, "%d waits have %d keys and %d ids", len(nodes), len(keys), len(ids))
		p.ok(p.resolve(id, nodes[0], accept), 200, "")
		p.refused(p.resolve(id, nodes[0], accept), 409, "interrupt_already_resolved")
		p.becomes(id, "waiting-approval")
		p.ok(p.resolve(id, nodes[1], accept), 200, "")
		p.becomes(id, "completed")
	}),

	must("interrupt.key-once", "interrupt.md §Payload", "no key is asked twice in a run", func(p *probe) {
		seen := map[string]bool{}
		for _, e := range p.log(p.over("approved")) {
			if e.Type == "interrupt.requested" {
				key := text(e.field("key"))
				p.want(key != "" && !seen[key], "the key %q is empty or asked twice", key)
				seen[key] = true
			}
		}
		p.want(len(seen) == 1, "an approved run has %d interrupts", len(seen))
	}),

	must("interrupt.timeout", "interrupt.md §Payload", "an interrupt's timeoutMs ends its wait, and a later answer is too late", func(p *probe) {
		id := p.start(brief)
		p.becomes(id, "completed", "failed")
		p.refused(p.resolve(id, "gate", accept), 409, "interrupt_already_resolved")
	}),
}

// anyWait starts a run that suspends in whatever way.
func (p *probe) anyWait(r role) (id, node string) {
	id = p.start(r)
	a := p.await(id, "waiting-external", "waiting-input", "waiting-approval")
	return id, a.str("currentNodeId")
}

func (p *probe) stillWaits(id string) {
	a := p.snapshot(id)
	p.want(a.str("status") == "waiting-approval", "the run is %s", a.str("status"))
	p.want(count(p.log(id), "interrupt.resolved") == 0, "the log has an interrupt.resolved")
}

// atOnce does one thing n times at the same moment.
func (p *probe) atOnce(n int, ask func() (answer, error)) []answer {
	out := make([]answer, n)
	errs := make([]error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			out[i], errs[i] = ask()
		})
	}
	close(start)
	wg.Wait()
	for i, err := range errs {
		p.want(err == nil, "request %d of %d at once: no answer: %v", i+1, n, err)
	}
	return out
}

// show writes a value for a message.
func show(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}
