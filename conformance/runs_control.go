package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
)

const (
	runCancel  = "v2-run-cancel"
	cancelRef  = "openwop.requirement.0170.run-cancel"
	bulkCancel = "v2-run-bulk-cancel"
	bulkRef    = "openwop.requirement.0170.run-bulk-cancel"
)

var cancelChecks = []check{
	must("cancel.running", "runs.md §Cancel", "a running run is cancelled: the answer, the log and the snapshot say so", func(p *probe) {
		id := p.start(delay)
		p.await(id, "running")
		p.cancels(id)
	}).floor(runCancel, cancelRef),

	must("cancel.waiting", "runs.md §Cancel", "a run that waits for people is cancelled too", func(p *probe) {
		id, _ := p.waiting(approval, "waiting-approval")
		p.cancels(id)
	}).floor(runCancel, cancelRef),

	must("cancel.terminal", "runs.md §Cancel", "a run that has ended is not cancelled: run_terminal, whatever its end", func(p *probe) {
		for _, how := range []string{"completed", "failed", "cancelled"} {
			id := p.over(how)
			before := p.snapshot(id).body
			p.refused(p.post(at(id)+"/cancel", object{}), 409, "run_terminal")
			p.want(same(before, p.snapshot(id).body), "the refused cancel changed the %s run", how)
		}
	}).floor(runCancel, cancelRef),

	must("cancel.reason", "events.md §Payloads", "run.cancelled carries the reason that was given", func(p *probe) {
		id, _ := p.waiting(approval, "waiting-approval")
		const reason = "conformance: enough"
		p.ok(p.post(at(id)+"/cancel", object{"reason": reason}), 200, "")
		p.becomes(id, "cancelled")
		e, _ := find(p.log(id), "run.cancelled")
		p.want(text(e.field("reason")) == reason, "the reason recorded is %s", e.field("reason"))
	}),

	must("cancel.nothing-after", "runs.md §Cancel; events.md §SSE frames", "nothing happens in a run after it has been cancelled", func(p *probe) {
		id := p.start(delay, object{"inputs": object{"delayMs": 300}})
		p.await(id, "running")
		p.post(at(id)+"/cancel", object{})
		p.await(id, "cancelled", "completed")
		n := len(p.log(id))
		p.pause(600e6) // longer than the node would have run
		after := p.log(id)
		p.want(len(after) == n, "%d events came after the end: %v", len(after)-n, types(after[n:]))
	}),

	must("cancel.closed", "runs.md §Cancel", "an unknown member of the body is a validation_error, and the run goes on", func(p *probe) {
		id, _ := p.waiting(approval, "waiting-approval")
		p.refused(p.post(at(id)+"/cancel", object{"because": "x"}), 400, "validation_error")
		p.want(p.snapshot(id).str("status") == "waiting-approval", "the run is %s", p.snapshot(id).str("status"))
	}),

	must("cancel.cascade", "runs.md §Cancel", "a cancel reaches the child, which records whose it was", func(p *probe) {
		child, parent := p.childRun()
		p.await(child, "waiting-approval")
		p.ok(p.post(at(parent)+"/cancel", object{}), 200, "cancel-response")
		p.becomes(child, "cancelled")
		p.becomes(parent, "cancelled")
		e, _ := find(p.log(child), "run.cancelled")
		p.want(text(e.field("reason")) == "parent-cancelled", "the child's reason is %s", e.field("reason"))
		p.want(text(e.field("parentRunId")) == parent, "the child's parentRunId is %s", e.field("parentRunId"))
	}).gated("subWorkflow"),
}

func (p *probe) cancels(id string) {
	a := p.ok(p.post(at(id)+"/cancel", object{"reason": "conformance"}), 200, "cancel-response")
	p.want(a.str("runId") == id, "the answer is about the run %q", a.str("runId"))
	p.want(slices.Contains([]string{"cancelling", "cancelled"}, a.str("status")), "the answer has the status %q", a.str("status"))
	p.becomes(id, "cancelled")
	events := p.log(id)
	p.want(count(events, "run.cancelled") == 1, "the log has %d run.cancelled: %v", count(events, "run.cancelled"), types(events))
}

// entry is one result of a bulk cancel.
type entry struct {
	RunID  string          `json:"runId"`
	OK     bool            `json:"ok"`
	Status string          `json:"status"`
	Error  json.RawMessage `json:"error"`
}

func (p *probe) bulk(ids ...string) []entry {
	a := p.ok(p.post("/runs:bulk-cancel", object{"runIds": ids, "reason": "conformance"}), 200, "bulk-cancel-response")
	var r struct{ Results []entry }
	_ = json.Unmarshal(a.body, &r)
	p.want(len(r.Results) == len(ids), "%d ids gave %d results", len(ids), len(r.Results))
	for i, e := range r.Results {
		p.want(e.RunID == ids[i], "result %d is about %q, not %q", i, e.RunID, ids[i])
		if !e.OK {
			p.valid("error-envelope", e.Error, fmt.Sprintf("result %d", i))
		}
	}
	return r.Results
}

var bulkChecks = []check{
	must("bulk.cap", "runs.md §Bulk cancel", "more ids than the host takes are a validation_error that names the bound", func(p *probe) {
		ids := make([]string, 101)
		for i := range ids {
			ids[i] = fmt.Sprintf("conformance-bulk/conformance0bulk0%03d", i)
		}
		a := p.refused(p.post("/runs:bulk-cancel", object{"runIds": ids}), 400, "validation_error")
		var most int
		_ = json.Unmarshal(a.detail("maxRunIds"), &most)
		p.want(most >= 1 && most <= 100, "details.maxRunIds is %s", a.detail("maxRunIds"))
	}).floor(bulkCancel, bulkRef),

	must("bulk.each-alone", "runs.md §Bulk cancel; identity.md §5", "each id is dealt with by itself, in request order, and a foreign one fails in its own entry", func(p *probe) {
		one, _ := p.waiting(approval, "waiting-approval")
		two, _ := p.waiting(approval, "waiting-approval")
		r := p.bulk(one, foreignRun, p.over("completed"), two)
		for _, i := range []int{0, 3} {
			p.want(r[i].OK && slices.Contains([]string{"cancelling", "cancelled"}, r[i].Status), "a run that waited: ok %v, status %q", r[i].OK, r[i].Status)
		}
		code := text(member(r[1].Error, "error"))
		p.want(!r[1].OK && (code == "id_tenant_mismatch" || code == "not_found"), "the foreign id: ok %v, %s", r[1].OK, code)
		code = text(member(r[2].Error, "error"))
		p.want(!r[2].OK && code == "run_terminal", "the run that had ended: ok %v, %s", r[2].OK, code)
		p.becomes(one, "cancelled")
		p.becomes(two, "cancelled")
	}).floor(bulkCancel, bulkRef),

	must("bulk.all-fail", "runs.md §Bulk cancel", "the answer is 200 even if every id failed", func(p *probe) {
		for _, e := range p.bulk(foreignRun, p.over("failed"), p.unknownRun()) {
			p.want(!e.OK, "%s was reported as cancelled", e.RunID)
		}
	}).floor(bulkCancel, bulkRef),

	must("bulk.closed", "runs.md §Bulk cancel", "no ids, no list, or an unknown member is a validation_error", func(p *probe) {
		for _, body := range []any{object{}, object{"runIds": []string{}}, object{"runIds": "x"}, object{"runIds": []string{foreignRun}, "force": true}} {
			p.refused(p.post("/runs:bulk-cancel", body), 400, "validation_error")
		}
	}),
}
