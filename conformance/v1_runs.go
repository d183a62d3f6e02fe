package conformance

import (
	"slices"
	"strings"
)

const v1Runs = "v1 rest-endpoints.md"

var v1CreateChecks = []check{
	must("v1.create.answer", v1Runs, "a created run is 201 with its bare id, its status and where its events are", func(p *probe) {
		a := p.ok(p.create(p.workflow(noop)), 201, "")
		id := a.str("runId")
		p.bare(id, "runId")
		p.want(slices.Contains(v1Statuses, a.str("status")), "status is %q", a.str("status"))
		p.want(strings.Contains(a.str("eventsUrl"), "/v1/runs/"+id+"/events"), "eventsUrl is %q", a.str("eventsUrl"))
		if s := a.str("statusUrl"); a.obj()["statusUrl"] != nil {
			p.want(strings.HasSuffix(s, "/v1/runs/"+id), "statusUrl is %q", s)
		}
		p.becomes(id, "completed")
	}),

	must("v1.create.refused", v1Runs, "a body that is none, has an unknown key or a member of a wrong type is 400 validation_error", func(p *probe) {
		wf := p.workflow(noop)
		for _, body := range []any{
			"{", "[]", object{}, object{"workflowId": 1}, object{"workflowId": wf, "conformanceUnknown": 1}, object{"workflowId": wf, "inputs": "x"},
			object{"workflowId": wf, "tags": "x"}, object{"workflowId": wf, "metadata": []string{}}, object{"workflowId": wf, "configurable": "x"},
		} {
			p.refuses(p.owned(p.post("/runs", body)), []int{400}, "validation_error")
		}
	}),

	must("v1.create.unknown-workflow", v1Runs, "a run of a workflow that is not there is 404, as hosts do, or 400", func(p *probe) {
		p.refuses(p.owned(p.post("/runs", object{"workflowId": "conformance-not-there"})), []int{404, 400}, "not_found", "workflow_not_found", "validation_error")
	}),

	must("v1.create.flat-options", "v1 run-options.md", "configurable is flat, and the snapshot shows it as it was sent, keys of the workflow's own too", func(p *probe) {
		sent := object{"recursionLimit": 7, "model": "conformance-model", "temperature": 0.5, "maxTokens": 9, "distillation.tokenBudget": 3, "conformance.own": "x"}
		a := p.create(p.workflow(noop), object{"configurable": sent})
		p.ok(a, 201, "")
		got := p.becomes(a.str("runId"), "completed").obj()["configurable"]
		for name, v := range sent {
			p.want(same(member(got, name), []byte(show(v))), "configurable.%s is %s, %s was sent", name, member(got, name), show(v))
		}
	}),

	must("v1.create.option-range", "v1 run-options.md", "an option out of its range is 400 validation_error", func(p *probe) {
		wf := p.workflow(noop)
		bad := object{"recursionLimit": 0, "temperature": 3, "maxTokens": -1, "reasoningVerbosity": "loud"}
		for name, v := range bad {
			p.refuses(p.owned(p.post("/runs", object{"workflowId": wf, "configurable": object{name: v}})), []int{400}, "validation_error")
		}
	}),

	must("v1.create.dedup", v1Runs, "under X-Dedup: enforce a second run of the same scope is 409 run_already_active, which names the first", func(p *probe) {
		wf := p.workflow(approval)
		scope := object{"scopeId": "conformance-" + nonce()}
		first := p.ok(p.createWith([]string{"X-Dedup", "enforce"}, wf, scope), 201, "").str("runId")
		a := p.refuses(p.createWith([]string{"X-Dedup", "enforce"}, wf, scope), []int{409}, "run_already_active")
		p.want(text(a.detail("activeRunId")) == first, "details.activeRunId is %s, the run is %s", a.detail("activeRunId"), first)
		p.want(slices.Contains([]string{"browser", "cloud"}, text(a.detail("activeHost"))), "details.activeHost is %s", a.detail("activeHost"))
		p.want(whole(a.detail("retryAfter")) >= 0 && a.header.Get("Retry-After") != "", "details.retryAfter is %s, Retry-After %q", a.detail("retryAfter"), a.header.Get("Retry-After"))
		p.ok(p.create(wf, scope), 201, "")
	}),

	must("v1.create.test-aids", "v1 run-options.md; version-negotiation.md", "a forced engine version and a mock provider are refused whoever may not use them, never ignored", func(p *probe) {
		wf := p.workflow(noop)
		a := p.createWith([]string{"X-Force-Engine-Version", "999999"}, wf)
		p.refuses(a, []int{403, 400}, "force_engine_version_forbidden", "unsupported_force_engine_version")
		b := p.create(wf, object{"configurable": object{"mockProvider": object{"id": "conformance-not-there"}}})
		p.refuses(b, []int{403, 400}, "mock_provider_forbidden", "unsupported_mock_provider")
	}),

	must("v1.create.labels", v1Runs, "tags and metadata come back as they were sent; more tags than 100 are refused", func(p *probe) {
		tags, meta := []string{"conformance", "b"}, object{"k": object{"v": 1}}
		id := p.start(noop, object{"tags": tags, "metadata": meta})
		s := p.snapshot(id).obj()
		p.want(same(s["tags"], []byte(show(tags))) && same(s["metadata"], []byte(show(meta))), "tags %s, metadata %s", s["tags"], s["metadata"])
		p.refuses(p.create(p.workflow(noop), object{"tags": make([]string, 101)}), []int{400}, "validation_error")
	}),
}

var v1SnapshotChecks = []check{
	must("v1.snapshot.shape", "run-snapshot.schema.json", "a snapshot has the run's bare id, its workflow and one of the ten statuses", func(p *probe) {
		for _, how := range []string{"completed", "failed", "cancelled"} {
			id := p.over(how)
			s := p.snapshot(id)
			p.want(s.str("runId") == id && s.str("workflowId") != "", "the snapshot is of %q, a run of %q", s.str("runId"), s.str("workflowId"))
			p.want(s.str("status") == how && slices.Contains(v1Statuses, how), "the run is %q", s.str("status"))
			for _, name := range []string{"startedAt", "completedAt"} {
				if v, ok := s.obj()[name]; ok {
					p.moment(v, name)
				}
			}
			if v, ok := s.obj()["eventLogSchemaVersion"]; ok {
				p.want(whole(v) == 2, "eventLogSchemaVersion is %s", v)
			}
		}
	}),

	must("v1.snapshot.waiting", "v1 interrupt.md", "an approval is waiting-approval, a clarification waiting-input, an event from outside waiting-external", func(p *probe) {
		waits := map[role]string{approval: "waiting-approval", clarify: "waiting-input", external: "waiting-external"}
		for r, want := range waits {
			id := p.start(r)
			p.becomes(id, want)
		}
	}),

	must("v1.snapshot.interrupt", "v1 interrupt.md", "while a run waits, its snapshot says for what and where; afterwards it does not", func(p *probe) {
		id, node := p.waiting(approval, "waiting-approval")
		i := p.snapshot(id).obj()["interrupt"]
		p.want(text(member(i, "kind")) == "approval" && text(member(i, "nodeId")) == node, "interrupt is %.300s", i)
		p.want(text(member(i, "interruptToken")) != "" && strings.Contains(text(member(i, "callbackUrl")), text(member(i, "interruptToken"))), "interruptToken and callbackUrl are %.300s", i)
		for _, name := range []string{"artifactId", "artifactType", "title", "actions"} {
			p.want(member(i, "data", name) != nil, "interrupt.data has no %s: %.300s", name, i)
		}
		p.ok(p.resolve(id, node, accept), 200, "")
		p.want(len(parts(p.becomes(id, "completed").obj()["interrupt"])) == 0, "a run that has ended waits")
	}),

	must("v1.snapshot.inputs", v1Runs, "the inputs are in the snapshot, and among its variables", func(p *probe) {
		in := object{"payload": object{"n": "conformance-7"}}
		id := p.start(echo, object{"inputs": in})
		s := p.becomes(id, "completed").obj()
		p.want(same(member(s["inputs"], "payload"), []byte(show(in["payload"]))), "inputs is %.200s", s["inputs"])
		p.want(same(member(s["variables"], "payload"), []byte(show(in["payload"]))), "variables is %.200s", s["variables"])
	}),

	must("v1.snapshot.error", "run-snapshot.schema.json", "a failed run says why: code, message and nothing but details", func(p *probe) {
		e := p.snapshot(p.over("failed")).obj()["error"]
		p.want(text(member(e, "code")) != "" && text(member(e, "message")) != "", "error is %.200s", e)
		for name := range parts(e) {
			p.want(name == "code" || name == "message" || name == "details", "error has the member %q", name)
		}
	}),

	must("v1.snapshot.not-modified", v1Runs, "what has not changed is not sent again", func(p *probe) {
		id := p.over("completed")
		tag := p.snapshot(id).header.Get("ETag")
		if tag == "" {
			p.inapplicable("the snapshot has no ETag")
		}
		p.want(p.get(at(id), "If-None-Match", tag).status == 304, "the host's own validator is not known to it")
	}),

	must("v1.snapshot.mapped", "v1 node-packs.md", "inputMapping fills a variable of the child from one of the parent; one that is not set is left out, and not null", func(p *probe) {
		parent := p.start(mapped, object{"inputs": object{"ours": "conformance-7"}})
		p.becomes(parent, "completed")
		e, _ := find(p.log(parent), "node.dispatched")
		child := text(e.field("childRunId"))
		p.bare(child, "childRunId")
		vars := parts(p.becomes(child, "completed").obj()["variables"])
		p.want(text(vars["theirs"]) == "conformance-7", "the child's variables are %s", show(vars))
		p.want(vars["ours"] == nil && vars["unset"] == nil, "the child's variables are %s", show(vars))
	}),

	must("v1.snapshot.family", "v1 node-packs.md", "a parent lists its children by their bare ids, and a child names its parent and the node", func(p *probe) {
		child, parent := p.childRun()
		p.bare(child, "childRunId")
		p.await(child, "waiting-approval")
		p.becomes(parent, "waiting-approval")
		s := p.snapshot(child)
		p.want(s.str("parentRunId") == parent && s.str("parentNodeId") != "", "the child names the parent %q and the node %q", s.str("parentRunId"), s.str("parentNodeId"))
		var kids []struct{ RunID, Status string }
		decode(p.snapshot(parent).obj()["childRuns"], &kids)
		p.want(len(kids) == 1 && kids[0].RunID == child && kids[0].Status == "waiting-approval", "childRuns is %v", kids)
	}),
}
