package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The workflows of this section: two effects, and an end that calls for undoing them
// or does not.
const (
	undone    role = "undone"    // fails, and is undone
	unasked   role = "unasked"   // fails, and its policy names another trigger
	revoked   role = "revoked"   // runs until it is cancelled, and is undone then
	stubborn  role = "stubborn"  // fails; what undoes its last effect fails too
	reluctant role = "reluctant" // fails; what undoes it must be approved
)

// effects is a workflow whose nodes a and b can be undone, b first, and whose node
// end is of a type.
func effects(name, end string, policy, undoB object) object {
	with := func(id string, undo object) object {
		n := step(id, "core.noop", object{})
		n["compensation"] = undo
		return n
	}
	plain := object{"nodeTypeId": "core.noop"}
	if undoB == nil {
		undoB = plain
	}
	last := step("end", end, object{})
	if end == "core.delay" {
		last["config"] = object{"delayMs": 20_000}
	}
	def := flow(name, []any{with("a", plain), with("b", undoB), last}, []any{edge("a", "b"), edge("b", "end")})
	def["settings"] = object{"compensation": policy}
	return def
}

func init() {
	onFailure := object{"triggers": []any{"node-failure"}}
	definitions[undone] = func(string) object { return effects("undone", "core.fail", onFailure, nil) }
	definitions[unasked] = func(string) object {
		return effects("unasked", "core.fail", object{"triggers": []any{"run-cancel"}}, nil)
	}
	definitions[revoked] = func(string) object {
		return effects("revoked", "core.delay", object{"triggers": []any{"run-cancel"}}, nil)
	}
	definitions[stubborn] = func(string) object {
		return effects("stubborn", "core.fail", onFailure, object{
			"nodeTypeId": "core.fail", "inputMapping": object{"retryable": true}, "retry": object{"maxAttempts": 3, "backoffMs": 10},
		})
	}
	definitions[reluctant] = func(string) object {
		return effects("reluctant", "core.fail", object{"triggers": []any{"node-failure"}, "approvalScope": "all"}, nil)
	}
}

type projection struct {
	RunID  string `json:"runId"`
	Status string `json:"status"`
	Plan   []struct {
		NodeID string `json:"nodeId"`
		Order  int    `json:"order"`
	} `json:"plan"`
	Attempts []struct {
		NodeID  string `json:"nodeId"`
		Attempt int    `json:"attempt"`
		Outcome string `json:"outcome"`
	} `json:"attempts"`
}

func (j *projection) tried() []string {
	out := []string{}
	for _, a := range j.Attempts {
		out = append(out, a.NodeID+" "+a.Outcome)
	}
	return out
}

func (p *probe) compensation(id string) projection {
	a := p.ok(p.get(at(id)+"/compensation"), 200, "compensation-projection")
	var j projection
	if err := json.Unmarshal(a.body, &j); err != nil {
		p.fail("%s: %v", a.line(), err)
	}
	p.want(j.RunID == id, "the compensation of %s is that of %s", id, j.RunID)
	seen := map[string]bool{}
	for _, x := range j.Attempts {
		key := fmt.Sprintf("%s %d", x.NodeID, x.Attempt)
		p.want(!seen[key], "attempt %d of the node %s is there twice", x.Attempt, x.NodeID)
		seen[key] = true
	}
	return j
}

// settled waits until a run's compensation has come to a status.
func (p *probe) settled(id, status string) projection {
	deadline := time.Now().Add(patience)
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 200*time.Millisecond) {
		j := p.compensation(id)
		if j.Status == status {
			return j
		}
		if time.Now().After(deadline) || !p.pause(wait) {
			p.fail("the compensation did not become %s: it is %s, with %v", status, j.Status, j.tried())
		}
	}
}

// undoing starts a run that ends by itself, and waits for its end.
func (p *probe) undoing(r role, status string) string {
	id := p.start(r)
	p.await(id, status)
	return id
}

// afterEnd is what of a log lies behind the run's end.
func afterEnd(events []event) []event {
	i := slices.IndexFunc(events, func(e event) bool { return terminalType(e.Type) })
	return events[i+1:]
}

// undoes reports whether an event may follow the end of a run.
func undoes(typ string) bool {
	return strings.HasPrefix(typ, "compensation.") || strings.HasPrefix(typ, "interrupt.") ||
		typ == "log.appended" || typ == "authorization.decided"
}

var compensationChecks = []check{
	must("compensation.facet", "security-defaults.md §Compensation", "the facets name a profile version, and reverse-completion among the ordering models", func(p *probe) {
		var version string
		var models []string
		p.s.facet(&version, "compensation", "profileVersion")
		p.s.facet(&models, "compensation", "orderingModels")
		p.want(version != "", "compensation.profileVersion is empty")
		p.want(slices.Contains(models, "reverse-completion"), "compensation.orderingModels is %v", models)
	}).gated("compensation"),

	must("compensation.none", "security-defaults.md §Compensation", "of a run with nothing to undo the projection says none, with no attempt", func(p *probe) {
		for _, how := range []string{"completed", "failed"} {
			j := p.compensation(p.over(how))
			p.want(j.Status == "none" && len(j.Plan)+len(j.Attempts) == 0, "the %s run: %s, %d actions, %d attempts", how, j.Status, len(j.Plan), len(j.Attempts))
		}
	}).gated("compensation"),

	must("compensation.unknown", "security-defaults.md §Compensation", "the compensation of an unknown run is not_found, that of a foreign one refused", func(p *probe) {
		p.refused(p.get("/runs/conformance-no-such-run/compensation"), 404, "not_found")
		p.refused(p.get(at(foreignRun)+"/compensation"), 403, "id_tenant_mismatch")
	}).gated("compensation"),

	must("compensation.unwind", "compensation profile §Ordering", "what has happened is undone, the last first, each once, and the snapshot says so beside the run's own status", func(p *probe) {
		id := p.undoing(undone, "failed")
		j := p.settled(id, "completed")
		p.want(slices.Equal(j.tried(), []string{"b succeeded", "a succeeded"}), "attempts: %v", j.tried())
		p.want(len(j.Plan) == 2 && j.Plan[0].NodeID == "b" && j.Plan[1].NodeID == "a" && j.Plan[0].Order < j.Plan[1].Order, "plan: %+v", j.Plan)
		a := p.snapshot(id)
		p.want(a.str("status") == "failed" && a.str("compensationStatus") == "completed", "the run is %s, its compensation %s", a.str("status"), a.str("compensationStatus"))
	}).gated("compensation"),

	must("compensation.events", "compensation profile §Events", "the plan is announced before the first action, the end after the last; all are about one compensation, behind the run's end", func(p *probe) {
		id := p.undoing(undone, "failed")
		p.settled(id, "completed")
		var order []string
		about := ""
		log := p.log(id)
		for _, e := range log {
			if !strings.HasPrefix(e.Type, "compensation.") {
				continue
			}
			order = append(order, e.Type)
			cid := text(e.field("compensationId"))
			p.want(cid != "" && (about == "" || cid == about), "%s is about %q, an earlier event about %q", e.Type, cid, about)
			about = cid
		}
		p.want(slices.Equal(order, []string{"compensation.requested", "compensation.started", "compensation.completed"}), "the log has %v", order)
		for _, e := range afterEnd(log) {
			p.want(undoes(e.Type), "%s follows the end of the run", e.Type)
		}
	}).gated("compensation"),

	must("compensation.trigger", "compensation profile §Workflow policy", "a trigger that the policy does not name undoes nothing", func(p *probe) {
		id := p.undoing(unasked, "failed")
		j := p.compensation(id)
		p.want(j.Status == "none" && len(j.Plan)+len(j.Attempts) == 0, "%s, %d actions, %d attempts", j.Status, len(j.Plan), len(j.Attempts))
		p.want(p.snapshot(id).str("compensationStatus") == "none", "compensationStatus is %s", p.snapshot(id).str("compensationStatus"))
		for _, e := range p.log(id) {
			p.want(!strings.HasPrefix(e.Type, "compensation."), "the log has %s", e.Type)
		}
	}).gated("compensation"),

	must("compensation.cancel", "runs.md §Cancel", "a cancelled run is undone, and a second cancel does not stop that", func(p *probe) {
		id := p.start(revoked)
		p.await(id, "running")
		p.ok(p.post(at(id)+"/cancel", object{}), 200, "")
		p.becomes(id, "cancelled")
		p.refused(p.post(at(id)+"/cancel", object{}), 409, "run_terminal")
		j := p.settled(id, "completed")
		p.want(slices.Equal(j.tried(), []string{"b succeeded", "a succeeded"}), "attempts: %v", j.tried())
	}).gated("compensation"),

	must("compensation.retry", "compensation profile §Retry", "an action that fails is repeated within its bounds, is told by one effect id, and does not stop the rest", func(p *probe) {
		id := p.undoing(stubborn, "failed")
		j := p.settled(id, "partial")
		p.want(slices.Equal(j.tried(), []string{"b failed", "b failed", "b failed", "a succeeded"}), "attempts: %v", j.tried())
		log := p.log(id)
		failed, ok := find(log, "compensation.failed")
		p.want(ok && text(failed.field("reason")) == "retries-exhausted", "compensation.failed: %s", failed.doc)
		begun, _ := find(log, "compensation.started")
		p.want(text(begun.field("effectId")) != "" && text(begun.field("effectId")) == text(failed.field("effectId")),
			"one action is told by %s and by %s", begun.field("effectId"), failed.field("effectId"))
		p.want(count(log, "compensation.completed") == 0, "not all is undone, and compensation.completed says it is")
		p.want(p.snapshot(id).str("compensationStatus") == "partial", "compensationStatus is %s", p.snapshot(id).str("compensationStatus"))
	}).gated("compensation"),

	must("compensation.approval", "compensation profile §Approvals", "an action that must be approved is not done before, and a rejected one is not done at all", func(p *probe) {
		id := p.undoing(reluctant, "failed")
		j := p.compensation(id)
		p.want(len(j.Attempts) == 0 && (j.Status == "pending" || j.Status == "running"), "before any answer: %s, %v", j.Status, j.tried())
		asked, ok := find(afterEnd(p.log(id)), "interrupt.requested")
		p.want(ok && asked.NodeID == "b", "nobody is asked about b")
		p.valid("suspend-request", asked.Payload, "interrupt.requested")
		p.ok(p.resolve(id, "b", object{"action": "reject"}), 200, "")
		p.ok(p.resolve(id, "a", accept), 200, "")
		j = p.settled(id, "partial")
		done := slices.DeleteFunc(j.tried(), func(s string) bool { return !strings.HasSuffix(s, " succeeded") })
		p.want(slices.Equal(done, []string{"a succeeded"}), "attempts: %v", j.tried())
		failed, ok := find(p.log(id), "compensation.failed")
		p.want(ok && text(failed.field("reason")) == "approval-denied", "compensation.failed: %s", failed.doc)
	}).gated("compensation"),

	must("compensation.stream", "events.md §SSE frames", "a stream ends with the run's end; who resumes behind it reads how the run is undone", func(p *probe) {
		id := p.undoing(undone, "failed")
		p.settled(id, "completed")
		fs := p.frames(id, "?streamMode=debug")
		p.want(len(fs) > 0 && terminalType(fs[len(fs)-1].name), "the stream ends with %q", fs[len(fs)-1].name)
		end := fs[len(fs)-1].seq()
		rest := p.frames(id, "?streamMode=debug", "Last-Event-ID", fmt.Sprint(end))
		p.want(len(rest) > 0 && rest[0].seq() == end+1 && rest[len(rest)-1].name == "compensation.completed", "behind the end there are %d frames", len(rest))
	}).gated("compensation"),

	must("compensation.poll", "events.md §Poll", "a poll calls the run terminal with the last event there is", func(p *probe) {
		id := p.undoing(undone, "failed")
		p.settled(id, "completed")
		g, _ := p.poll(id, "?timeout=1")
		p.want(g.IsTerminal && g.Status == "failed", "isTerminal %v, status %s", g.IsTerminal, g.Status)
		p.want(len(g.Events) == int(g.LastSequence)+1, "%d events, the last is %d", len(g.Events), g.LastSequence)
		p.want(p.event(g.Events[len(g.Events)-1]).Type == "compensation.completed", "the last event is %s", p.event(g.Events[len(g.Events)-1]).Type)
	}).gated("compensation"),

	must("compensation.registration", "compensation profile §Workflow policy", "a policy that the host would not honour is refused when it is registered, and so is an unknown inverse action", func(p *probe) {
		p.workflow(undone) // the host takes definitions at all
		for name, change := range map[string]func(def, policy object){
			"an unknown trigger":        func(_, policy object) { policy["triggers"] = []any{"node-failure", "conformance-trigger"} },
			"no trigger":                func(_, policy object) { delete(policy, "triggers") },
			"an unknown ordering model": func(_, policy object) { policy["orderingModel"] = "conformance-order" },
			"another profile":           func(_, policy object) { policy["profileVersion"] = "conformance-0" },
			"an unknown member":         func(_, policy object) { policy["conformance"] = true },
			"an unknown inverse action": func(def, _ object) {
				def["nodes"].([]any)[0].(object)["compensation"] = object{"nodeTypeId": "conformance.no-such-type"}
			},
		} {
			policy := object{"triggers": []any{"node-failure"}}
			def := effects("refused", "core.fail", policy, nil)
			def["id"] = "conformance-own-refused"
			change(def, policy)
			a := p.do("PUT", "/host/fermata/workflows/conformance-own-refused", def)
			p.want(a.status == 400 || a.status == 422, "%s: %s answered %s", name, a.line(), a.brief())
			p.refused(a, a.status)
		}
	}).gated("compensation"),
}
