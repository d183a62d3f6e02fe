package conformance

import (
	"encoding/json"
	"slices"
)

func decode(doc json.RawMessage, into any) { _ = json.Unmarshal(doc, into) }

var v1CancelChecks = []check{
	must("v1.cancel.open", v1Runs, "a run that goes on or waits is cancelled: 200 with its id and status, and the log says why", func(p *probe) {
		const reason = "conformance: enough"
		running := p.start(delay)
		p.await(running, "running")
		waits, _ := p.waiting(approval, "waiting-approval")
		for _, id := range []string{running, waits} {
			a := p.ok(p.post(at(id)+"/cancel", object{"reason": reason}), 200, "")
			p.want(a.str("runId") == id && slices.Contains([]string{"cancelling", "cancelled"}, a.str("status")), "the answer is %s", a.body)
			p.becomes(id, "cancelled")
			e, _ := find(p.log(id), "run.cancelled")
			p.want(text(e.field("reason")) == reason, "the reason recorded is %s", e.field("reason"))
		}
	}),

	must("v1.cancel.over", v1Runs, "cancelling a run that is over is 200 with the status it has, and changes nothing", func(p *probe) {
		for _, how := range []string{"completed", "failed", "cancelled"} {
			id := p.over(how)
			n := len(p.log(id))
			for _, body := range []any{object{}, nil} {
				a := p.ok(p.post(at(id)+"/cancel", body), 200, "")
				p.want(a.str("runId") == id && a.str("status") == how, "the %s run: %s", how, a.body)
			}
			p.want(p.snapshot(id).str("status") == how && len(p.log(id)) == n, "the %s run was changed", how)
		}
	}),

	must("v1.cancel.children", v1Runs, "a cancel reaches the child, which says whose it was, by its bare id", func(p *probe) {
		child, parent := p.childRun()
		p.await(child, "waiting-approval")
		p.ok(p.post(at(parent)+"/cancel", object{}), 200, "")
		p.becomes(child, "cancelled")
		e, _ := find(p.log(child), "run.cancelled")
		p.want(text(e.field("reason")) == "parent-cancelled" && text(e.field("parentRunId")) == parent, "run.cancelled is %s", e.Payload)
	}),

	must("v1.bulk.each-alone", v1Runs, "each id is dealt with by itself, in the order of the request; cancelled already is ok", func(p *probe) {
		open, _ := p.waiting(approval, "waiting-approval")
		ids := []string{"conformance-nobody", open, p.over("completed"), p.over("cancelled")}
		a := p.ok(p.post("/runs:bulk-cancel", object{"runIds": ids, "reason": "conformance"}), 200, "")
		var got []entry
		decode(a.obj()["results"], &got)
		p.want(len(got) == len(ids), "%d ids gave %d results", len(ids), len(got))
		for i, e := range got {
			p.want(e.RunID == ids[i], "result %d is about %q, not %q", i, e.RunID, ids[i])
		}
		codes := []string{text(member(got[0].Error, "error")), text(member(got[2].Error, "error"))}
		p.want(!got[0].OK && slices.Contains([]string{"not_found", "forbidden"}, codes[0]), "the unknown run: ok %v, %s", got[0].OK, codes[0])
		p.want(!got[2].OK && codes[1] == "run_terminal", "the run that had completed: ok %v, %s", got[2].OK, codes[1])
		p.want(got[1].OK && got[3].OK, "the run that waited: ok %v; the one cancelled already: ok %v", got[1].OK, got[3].OK)
		p.becomes(open, "cancelled")
	}),

	must("v1.bulk.cap", v1Runs, "no ids are refused; more than the host takes are refused with the bound", func(p *probe) {
		p.refuses(p.post("/runs:bulk-cancel", object{"runIds": []string{}}), []int{400}, "validation_error")
		ids := slices.Repeat([]string{"conformance-nobody"}, 101)
		a := p.refuses(p.post("/runs:bulk-cancel", object{"runIds": ids}), []int{400}, "validation_error")
		most := whole(a.detail("maxRunIds"))
		p.want(most >= 1 && most <= 100, "details.maxRunIds is %s", a.detail("maxRunIds"))
	}),
}

var v1PauseChecks = []check{
	must("v1.pause.cycle", v1Runs, "a run pauses and resumes with 202; the other way round is 409, which says how the run is", func(p *probe) {
		id := p.start(delay)
		p.await(id, "running")
		p.wrongState(p.post(at(id)+":resume", object{}), "running")
		a := p.ok(p.post(at(id)+":pause", object{"reason": "conformance", "drainPolicy": "immediate"}), 202, "")
		p.want(a.str("runId") == id && a.str("status") == "paused", "the answer is %s", a.body)
		if v, ok := a.obj()["pausedAt"]; ok {
			p.moment(v, "pausedAt")
		}
		p.becomes(id, "paused")
		p.wrongState(p.post(at(id)+":pause", object{}), "paused")
		b := p.ok(p.post(at(id)+":resume", object{}), 202, "")
		p.want(b.str("runId") == id && b.str("status") == "running", "the answer is %s", b.body)
		p.becomes(id, "running", "completed")
		e, ok := find(p.log(id), "run.paused")
		p.want(ok && text(e.field("drainPolicy")) == "immediate", "run.paused is %s", e.Payload)
	}).gated("runs"),

	must("v1.pause.over", v1Runs, "a run that has ended is neither paused nor resumed: 409 run_terminal", func(p *probe) {
		for _, how := range []string{"completed", "failed", "cancelled"} {
			for _, op := range []string{":pause", ":resume"} {
				a := p.refuses(p.post(at(p.over(how))+op, object{}), []int{409}, "run_terminal")
				p.want(a.detail("runStatus") == nil || text(a.detail("runStatus")) == how, "details.runStatus is %s", a.detail("runStatus"))
			}
		}
	}).gated("runs"),

	must("v1.pause.refused", v1Runs, "an unknown policy is 400 validation_error, and the run goes on", func(p *probe) {
		id, _ := p.waiting(approval, "waiting-approval")
		p.refuses(p.post(at(id)+":pause", object{"drainPolicy": "later"}), []int{400}, "validation_error")
		p.want(p.snapshot(id).str("status") == "waiting-approval", "the run is %s", p.snapshot(id).str("status"))
	}).gated("runs"),

	must("v1.pause.repeated", v1Runs, "a pause repeated under its key is 202 again, where one without is a conflict", func(p *probe) {
		id, _ := p.waiting(approval, "waiting-approval")
		k := []string{keyHeader, key()}
		p.ok(p.post(at(id)+":pause", object{}, k...), 202, "")
		again := p.ok(p.post(at(id)+":pause", object{}, k...), 202, "")
		p.want(again.header.Get(replayed) == "true", "the repeated answer has the marker %q", again.header.Get(replayed))
		p.refuses(p.post(at(id)+":pause", object{}), []int{409})
	}).gated("runs", "idempotency"),
}

func (p *probe) wrongState(a answer, status string) {
	p.refuses(a, []int{409}, "run_state_conflict")
	p.want(text(a.detail("runStatus")) == status, "details.runStatus is %s, the run is %s", a.detail("runStatus"), status)
}

const v1Replay = "v1 replay.md"

var v1ForkChecks = []check{
	must("v1.fork.replay", v1Replay, "a replay is 201, from the first event if nothing is said, and comes to the same end", func(p *probe) {
		src := p.over("approved")
		a := p.ok(p.fork(src, object{"mode": "replay"}), 201, "")
		id := a.str("runId")
		p.bare(id, "runId")
		p.want(id != src && a.str("sourceRunId") == src && whole(a.obj()["fromSeq"]) == 0 && a.str("mode") == "replay", "the answer is %s", a.body)
		p.want(slices.Contains(v1Statuses, a.str("status")) && a.str("eventsUrl") != "", "the answer is %s", a.body)
		p.becomes(id, "completed")
	}).gated("replay"),

	must("v1.fork.branch", v1Replay, "a branch goes on from an event, with what is laid over its options", func(p *probe) {
		if !slices.Contains(stringsOf(member(p.s.doc["replay"], "modes")), "branch") {
			p.inapplicable("replay.modes lacks branch")
		}
		src := p.over("completed")
		a := p.ok(p.fork(src, object{"mode": "branch", "fromSeq": 1, "runOptionsOverlay": object{"configurable": object{"recursionLimit": 7}}}), 201, "")
		p.want(a.str("sourceRunId") == src && whole(a.obj()["fromSeq"]) == 1 && a.str("mode") == "branch", "the answer is %s", a.body)
		s := p.becomes(a.str("runId"), "completed")
		p.want(whole(member(s.obj()["configurable"], "recursionLimit")) == 7, "configurable is %s", s.obj()["configurable"])
	}).gated("replay"),

	must("v1.fork.refused", v1Replay, "a negative fromSeq, an overlay on a replay and a branch from nowhere are 400; past the end is 422", func(p *probe) {
		src := p.over("completed")
		for _, body := range []object{
			{"mode": "replay", "fromSeq": -1}, {"mode": "replay", "runOptionsOverlay": object{"tags": []string{"x"}}}, {"mode": "branch"}, {"mode": "conformance"},
		} {
			p.refuses(p.fork(src, body), []int{400})
		}
		p.refuses(p.fork(src, object{"mode": "replay", "fromSeq": 100_000}), []int{422})
		p.refuses(p.fork("conformance-nobody", object{"mode": "replay"}), []int{404, 403})
	}).gated("replay"),

	must("v1.fork.diff", v1Replay, "two runs are compared by their bare ids: a run and itself not at all different", func(p *probe) {
		a, b := p.over("completed"), p.over("failed")
		d := p.ok(p.get(at(a)+":diff?against="+b), 200, "")
		var diffs []json.RawMessage
		decode(d.obj()["eventDiffs"], &diffs)
		p.want(d.str("a") == a && d.str("b") == b && len(diffs) > 0 && whole(d.obj()["divergedAtSeq"]) >= 0, "two runs differ by %.300s", d.body)
		e := p.ok(p.get(at(a)+":diff?against="+a), 200, "")
		decode(e.obj()["eventDiffs"], &diffs)
		p.want(len(diffs) == 0, "a run differs from itself: %.300s", e.body)
		p.refuses(p.get(at(a)+":diff"), []int{400}, "validation_error")
		p.refuses(p.get(at(a)+":diff?against=conformance-nobody"), []int{404, 403})
	}).gated("replay"),

	must("v1.fork.ancestry", v1Runs, "a child's ancestry names its parent by its bare id; a run that nobody started has none", func(p *probe) {
		child, parent := p.childRun()
		a := p.get(at(child) + "/ancestry")
		if a.status == 404 && !p.s.advertises("multiAgent") {
			p.inapplicable("the host does not tell of ancestry")
		}
		p.ok(a, 200, "")
		p.want(a.str("runId") == child && text(member(a.body, "parent", "runId")) == parent, "the ancestry of %s is %s", child, a.body)
		b := p.ok(p.get(at(parent)+"/ancestry"), 200, "")
		p.want(len(parts(b.obj()["parent"])) == 0, "the ancestry of %s is %s", parent, b.body)
	}),
}
