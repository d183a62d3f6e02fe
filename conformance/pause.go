package conformance

import (
	"slices"
)

const (
	pauseResume = "v2-run-pause-resume"
	pauseRef    = "openwop.requirement.0170.run-pause-resume"
)

var pauseChecks = []check{
	must("pause.cycle", "runs.md §Pause and resume", "a running run pauses, refuses a second pause, and resumes; the log tells it in order", func(p *probe) {
		id := p.start(delay)
		p.await(id, "running")
		a := p.ok(p.post(at(id)+":pause", object{"reason": "conformance", "drainPolicy": "immediate"}), 202, "pause-response")
		p.want(a.str("runId") == id && a.str("status") == "paused", "the answer is %s", a.body)
		p.becomes(id, "paused")
		again := p.refused(p.post(at(id)+":pause", object{}), 409, "run_state_conflict")
		p.want(text(again.detail("runStatus")) == "paused", "details.runStatus is %s", again.detail("runStatus"))
		b := p.ok(p.post(at(id)+":resume", object{"reason": "conformance"}), 202, "resume-response")
		p.want(b.str("status") == "running", "the answer to resume has the status %q", b.str("status"))
		p.becomes(id, "running", "completed")
		events := types(p.log(id))
		paused, resumed := slices.Index(events, "run.paused"), slices.Index(events, "run.resumed")
		p.want(paused >= 0 && resumed > paused, "the log does not tell it: %v", events)
	}).floor(pauseResume, pauseRef),

	must("pause.terminal", "runs.md §Pause and resume", "a run that has ended is neither paused nor resumed: run_terminal", func(p *probe) {
		for _, how := range []string{"completed", "failed", "cancelled"} {
			id := p.over(how)
			p.refused(p.post(at(id)+":pause", object{}), 409, "run_terminal")
			p.refused(p.post(at(id)+":resume", object{}), 409, "run_terminal")
		}
	}).floor(pauseResume, pauseRef),

	must("pause.resume-unpaused", "runs.md §Pause and resume", "a run that is not paused is not resumed: run_state_conflict with its status", func(p *probe) {
		id := p.start(delay)
		status := p.await(id, "running").str("status")
		a := p.refused(p.post(at(id)+":resume", object{}), 409, "run_state_conflict")
		p.want(text(a.detail("runStatus")) == status, "details.runStatus is %s, the run is %s", a.detail("runStatus"), status)
	}).floor(pauseResume, pauseRef),

	must("pause.policy-echoed", "runs.md §Pause and resume", "run.paused records the drainPolicy that was asked for", func(p *probe) {
		for _, policy := range []string{"immediate", "drain-current-node"} {
			// A node that is over soon, so that draining it is over soon too.
			id := p.start(delay, object{"inputs": object{"delayMs": 400}})
			p.await(id, "running")
			a := p.post(at(id)+":pause", object{"drainPolicy": policy})
			if a.status == 409 {
				p.blocked("the run was over before it could be paused")
			}
			p.ok(a, 202, "pause-response")
			p.reach(id, "paused")
			e, ok := find(p.log(id), "run.paused")
			if !ok && policy == "drain-current-node" {
				continue // its only node was the last: drained, the run was over
			}
			p.want(ok, "the log has no run.paused")
			p.want(text(e.field("drainPolicy")) == policy, "asked for %s, recorded %s", policy, e.field("drainPolicy"))
		}
	}).floor(pauseResume, pauseRef),

	must("pause.immediate-cut", "runs.md §Pause and resume", "an immediate pause cuts the attempt without a terminal event, and a resumed run begins a fresh one", func(p *probe) {
		id := p.start(delay, object{"inputs": object{"delayMs": 500}})
		p.await(id, "running")
		a := p.post(at(id)+":pause", object{"drainPolicy": "immediate"})
		if a.status == 409 {
			p.blocked("the run was over before it could be paused")
		}
		p.ok(a, 202, "")
		p.becomes(id, "paused")
		p.pause(1e9) // twice as long as the node would have run
		p.want(p.snapshot(id).str("status") == "paused", "the paused run went on by itself: %s", p.snapshot(id).str("status"))
		cut := p.log(id)
		i := slices.Index(types(cut), "run.paused")
		p.want(i >= 0, "the log has no run.paused: %v", types(cut))
		for _, e := range cut {
			over := slices.Contains([]string{"node.completed", "node.failed", "node.cancelled", "node.skipped"}, e.Type)
			p.want(!over, "the attempt that was cut has a %s", e.Type)
		}
		p.ok(p.post(at(id)+":resume", object{}), 202, "")
		p.becomes(id, "completed")
		// A node that was parked and not executing had no attempt to cut: it is
		// taken up again, where one that was cut is started afresh.
		after := types(p.log(id)[i:])
		p.want(slices.Contains(after, "node.started") || slices.Contains(after, "node.resumed"), "the node completed without having been taken up again: %v", after)
	}),

	must("pause.cancel-exits", "runs.md §Pause and resume", "a paused run can be cancelled", func(p *probe) {
		id := p.start(delay)
		p.await(id, "running")
		p.ok(p.post(at(id)+":pause", object{"drainPolicy": "immediate"}), 202, "")
		p.becomes(id, "paused")
		p.cancels(id)
	}),

	must("pause.closed", "runs.md §Pause and resume", "an unknown policy or member is a validation_error, and the run goes on", func(p *probe) {
		id := p.start(delay)
		p.await(id, "running")
		p.refused(p.post(at(id)+":pause", object{"drainPolicy": "now"}), 400, "validation_error")
		p.refused(p.post(at(id)+":pause", object{"force": true}), 400, "validation_error")
		p.refused(p.post(at(id)+":resume", object{"drainPolicy": "immediate"}), 400, "validation_error")
		p.want(p.snapshot(id).str("status") == "running", "the run is %s", p.snapshot(id).str("status"))
	}),
}
