package conformance

import (
	"net/url"
	"slices"
	"strings"
)

var createChecks = []check{
	must("create.response", "runs.md §Response", "a create answers 201 with the closed shape and a status a new run may have", func(p *probe) {
		a := p.ok(p.create(p.workflow(noop)), 201, "create-run-response")
		allowed := []string{"pending", "running", "waiting-approval", "waiting-input", "waiting-external"}
		p.want(slices.Contains(allowed, a.str("status")), "the status is %q", a.str("status"))
	}),

	must("create.links", "runs.md §Response", "its links stay on the origin and keep the scheme", func(p *probe) {
		a := p.ok(p.create(p.workflow(noop)), 201, "")
		base, _ := url.Parse(p.s.cfg.BaseURL)
		for _, name := range []string{"eventsUrl", "statusUrl"} {
			if a.obj()[name] == nil {
				continue
			}
			link, err := base.Parse(a.str(name))
			p.want(err == nil && link.Host == base.Host && link.Scheme == base.Scheme, "%s is %q", name, a.str(name))
			p.await(a.str("runId"), "completed")
			relative := strings.TrimPrefix(link.String(), p.s.cfg.BaseURL)
			got := p.get(relative, "Accept", "*/*")
			p.want(got.status == 200, "%s answered %s", name, got.brief())
		}
	}),

	must("create.resolvable", "runs.md §Response", "the base that minted a run resolves it", func(p *probe) {
		id := p.start(noop)
		for _, path := range []string{"", "/events/poll?timeout=1"} {
			a := p.get("/runs/" + url.PathEscape(id) + path)
			p.want(a.status == 200, "%s answered %s", a.line(), a.brief())
		}
	}),

	must("create.closed", "runs.md §Create", "an unknown member of the body is a validation_error", func(p *probe) {
		p.refused(p.create(p.workflow(noop), object{"conformanceUnknownMember": 1}), 400, "validation_error")
	}).floor(optionsLimits, optionsRef),

	must("create.workflow-required", "runs.md §Create", "a body without workflowId is a validation_error", func(p *probe) {
		p.refused(p.post("/runs", object{}), 400, "validation_error")
		p.refused(p.post("/runs", object{"inputs": object{}}), 400, "validation_error")
	}),

	must("create.unknown-workflow", "errors.md", "an unknown workflow is refused, and there is no run", func(p *probe) {
		a := p.owned(p.post("/runs", object{"workflowId": "conformance-no-such-workflow"}))
		p.want(a.status >= 400 && a.status < 500, "an unknown workflow: %s", a.brief())
		p.refused(a, a.status)
	}),

	must("create.start-event", "runs.md §The start event", "run.started comes first and records the transport", func(p *probe) {
		events := p.log(p.over("completed"))
		p.want(len(events) > 0 && events[0].Type == "run.started", "the log begins with %v", types(events[:min(1, len(events))]))
		transport := text(events[0].field("transport"))
		p.want(transport == "rest", "a run created over HTTP has the transport %q", transport)
	}),

	must("create.era", "versioning.md §2.2; persistence.md §The era key", "a new run carries era 3, the one discovery advertises", func(p *probe) {
		snap := p.snapshot(p.start(noop)).obj()
		p.want(string(snap["eventLogSchemaVersion"]) == "3", "the snapshot has era %s", snap["eventLogSchemaVersion"])
		p.want(string(p.document()["eventLogSchemaVersion"]) == "3", "discovery advertises era %s", p.document()["eventLogSchemaVersion"])
	}).floor("v2-era-key", "openwop.requirement.0176.era-key"),

	must("create.era-universal", "persistence.md §The era key", "every way a run comes into being stamps the advertised era", func(p *probe) {
		era := string(p.document()["eventLogSchemaVersion"])
		if era == "" {
			p.inapplicable("discovery advertises no era")
		}
		for _, how := range []string{"completed", "failed", "cancelled"} {
			id := p.over(how)
			p.want(string(p.snapshot(id).obj()["eventLogSchemaVersion"]) == era, "a %s run has era %s", how, p.snapshot(id).obj()["eventLogSchemaVersion"])
		}
	}).floor("v2-era-stamp-universal", "openwop.requirement.0176.era-stamp-universal"),

	must("create.child-era", "persistence.md §The era key", "a child run carries the advertised era too", func(p *probe) {
		child, _ := p.childRun()
		got := p.snapshot(child).obj()["eventLogSchemaVersion"]
		p.want(string(got) == string(p.document()["eventLogSchemaVersion"]), "a child has era %s", got)
	}).gated("subWorkflow").floor("v2-era-stamp-universal", "openwop.requirement.0176.era-stamp-universal"),

	must("create.engine-version-forced", "runs.md §Request headers", "OpenWOP-Force-Engine-Version is refused on a production credential", func(p *probe) {
		if p.s.facet(new(any), "testing", "forceEngineVersionRange") {
			p.inapplicable("discovery advertises a range that may be forced, and the key may be a test key")
		}
		p.refused(p.createWith([]string{"OpenWOP-Force-Engine-Version", "1"}, p.workflow(noop)), 403, "force_engine_version_forbidden")
	}),

	must("create.dedup", "runs.md §Request headers", "OpenWOP-Dedup refuses a second run of one scope while the first is active", func(p *probe) {
		scope := object{"scopeId": "conformance-" + nonce()}
		dedup := []string{"OpenWOP-Dedup", "enforce"}
		wf := p.workflow(approval)
		p.ok(p.createWith(dedup, wf, scope), 201, "")
		a := p.refused(p.createWith(dedup, wf, scope), 409, "run_already_active")
		p.want(a.header.Get("Retry-After") != "", "the 409 has no Retry-After")
	}),

	must("create.residency", "runs.md §Refusals", "a region that is not offered is refused, and there is no run", func(p *probe) {
		p.refused(p.create(p.workflow(noop), object{"residency": object{"region": "conformance-nowhere"}}), 422, "residency_unavailable")
	}).gated("dataResidency"),

	must("create.callback-refused", "runs.md §Create", "a callbackUrl that cannot be used is a validation_error that names the field", func(p *probe) {
		a := p.refused(p.create(p.workflow(noop), object{"callbackUrl": "ftp://conformance.invalid/x"}), 400, "validation_error")
		p.want(text(a.detail("field")) == "callbackUrl", "details.field is %s", a.detail("field"))
	}),

	must("create.eval", "runs.md §Refusals", "mode eval needs its members, and the capability", func(p *probe) {
		a := p.owned(p.post("/runs", object{"mode": "eval"}))
		p.want(a.status >= 400 && a.status < 500, "mode eval without its members: %s", a.brief())
		if p.s.facet(new(any), "agents", "evalSuite") {
			return
		}
		b := p.owned(p.post("/runs", object{"mode": "eval", "evalSuiteRef": "conformance", "agentId": "conformance"}))
		p.want(b.status >= 400 && b.status < 500, "mode eval on a host that does not advertise agents.evalSuite: %s", b.brief())
	}),
}

// childRun starts a parent and finds the child it waits for.
func (p *probe) childRun() (child, parent string) {
	parent = p.start(family)
	snap := p.await(parent, "waiting-approval", "waiting-external", "waiting-input", "running")
	for range 100 {
		for _, e := range p.log(parent) {
			if id := text(e.field("childRunId")); id != "" {
				return id, parent
			}
		}
		if id := childOf(snap.obj()["nodeStates"]); id != "" {
			return id, parent
		}
		if !p.pause(50e6) {
			break
		}
		snap = p.snapshot(parent)
	}
	p.blocked("neither the log nor the snapshot of the parent names its child")
	return "", ""
}
