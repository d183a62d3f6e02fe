package conformance

var v1FamilyChecks = []check{
	must("v1.families.not-provided", v1Runs, "annotations, prompts and trigger subscriptions that are not offered are 501 capability_not_provided", func(p *probe) {
		id := at(p.over("completed"))
		for _, g := range []struct{ family, method, path string }{
			{"feedback", "GET", id + "/annotations"}, {"feedback", "POST", id + "/annotations"}, {"prompts", "POST", "/v1/prompts:render"},
			{"triggers", "POST", "/v1/trigger-subscriptions"},
		} {
			if !p.s.advertises(g.family) {
				var body any
				if g.method == "POST" {
					body = object{}
				}
				p.refuses(p.do(g.method, g.path, body), []int{501}, "capability_not_provided")
			}
		}
	}),

	must("v1.families.absent", v1Runs, "tools, the roster and the org chart that are not offered are 404", func(p *probe) {
		for family, path := range map[string]string{"tools": "/v1/tools", "roster": "/v1/agents/roster", "orgChart": "/v1/agents/org-chart"} {
			if !p.s.advertises(family) && !p.s.advertises("agents") {
				p.refuses(p.get(path), []int{404}, "not_found")
			}
		}
		id := p.over("completed")
		p.refuses(p.get(at(id)+"/artifacts/conformance-none"), []int{404}, "not_found")
		p.refuses(p.get(at(id)+"/eval-summary"), []int{404, 501})
	}),

	must("v1.families.younger", "v2 path-manifest.json", "what only version 2 has is not under /v1", func(p *probe) {
		id := at(p.over("completed"))
		for _, path := range []string{"/v1/runs", "/v1" + id + "/compensation", "/v1" + id + "/effects", "/v1/host/events", "/v1/host/effect-seams", "/v1/webhooks/conformance/dead-letters"} {
			p.refuses(p.get(path), []int{404, 405})
		}
		p.refuses(p.post("/v1/webhooks/conformance/rotate-secret", object{}), []int{404, 405})
	}),

	must("v1.families.older", "v2 versioning.md §5", "there is no /v2/: version 2 has no path space of its own", func(p *probe) {
		p.want(p.get("/v2"+at(p.over("completed"))).status == 404, "there is a /v2/")
	}),

	must("v1.families.honest", v1Capabilities, "what discovery offers is there: bundles, forks, webhooks, the audit log", func(p *probe) {
		id := at(p.over("completed"))
		for family, ask := range map[string]func() answer{
			"debugBundle": func() answer { return p.get(id + "/debug-bundle") },
			"replay":      func() answer { return p.owned(p.post(id+":fork", object{"mode": "replay"})) },
			"webhooks":    func() answer { return p.post("/webhooks", object{}) },
			"feedback":    func() answer { return p.get(id + "/annotations") },
		} {
			if !p.s.advertises(family) {
				continue
			}
			a := ask()
			p.want(a.status != 404 && a.status != 501 && a.status != 405, "%s is offered, and %s answered %s", family, a.line(), a.brief())
		}
		if v := member(p.s.doc["auth"], "auditLogIntegrity"); isTrue(v) || len(parts(v)) > 0 && string(member(v, "supported")) != "false" {
			a := p.ok(p.get("/v1/audit/verify"), 200, "")
			p.want(isTrue(a.obj()["chainValid"]), "chainValid is %s", a.obj()["chainValid"])
		}
	}),
}
