package conformance

import "strings"

var gateChecks = []check{
	must("gates.unadvertised", "runs.md §Surface", "an operation whose capability is not advertised answers 404", func(p *probe) {
		id := at(p.over("completed"))
		for _, g := range []struct {
			family, method, path string
			body                 any
		}{
			{"replay", "POST", id + ":fork", object{"mode": "replay"}}, {"replay", "GET", manifestPath, nil},
			{"idempotency", "GET", id + "/effects", nil}, {"compensation", "GET", id + "/compensation", nil},
			{"feedback", "GET", id + "/annotations", nil}, {"feedback", "POST", id + "/annotations", object{}},
			{"multiAgent", "GET", id + "/ancestry", nil}, {"agents", "GET", id + "/eval-summary", nil},
			{"runList", "GET", "/runs", nil},
		} {
			if p.s.advertises(g.family) {
				continue
			}
			a := p.do(g.method, g.path, g.body)
			// A path that exists for another method may be refused as the method's.
			p.want(a.status == 404 || g.family == "runList" && a.status == 405, "%s answered %s; %s is not advertised", a.line(), a.brief(), g.family)
			p.refused(a, a.status, "not_found")
		}
	}),

	must("gates.webhooks", "webhooks.md §Surfaces", "without the webhooks capability there is no webhook operation", func(p *probe) {
		if p.s.advertises("webhooks") {
			p.inapplicable("webhooks are advertised")
		}
		a := p.post("/webhooks", object{"url": "https://conformance.example/", "events": []string{"run.completed"}})
		p.refused(a, 404, "not_found")
	}),

	must("gates.seams", "conformance.md §The seams profile", "without the seams profile no seam is mounted", func(p *probe) {
		if p.s.advertises("conformance") {
			p.inapplicable("a conformance block is advertised")
		}
		for _, path := range []string{seedSeam, fireSeam, retrySeam, receiveSeam} {
			a := p.post(path, object{})
			p.want(a.status == 404, "%s answered %s", a.line(), a.brief())
		}
	}),

	must("gates.no-v2-paths", "versioning.md §1.2", "there is no /v2/ path space", func(p *probe) {
		for _, path := range []string{"/v2/runs", "/v2" + at(p.over("completed"))} {
			a := p.get(path)
			p.want(a.status == 404 || !strings.HasPrefix(a.header.Get("Content-Type"), "application/json"), "%s answered %s", a.line(), a.brief())
		}
	}),

	must("gates.core-mounted", "runs.md §Surface", "every core operation is mounted", func(p *probe) {
		for _, a := range p.onRun(p.over("completed")) {
			p.want(a.status != 404 || strings.Contains(a.path, "/interrupts/"), "%s answered %s", a.line(), a.brief())
			p.want(a.status != 405 && a.status != 501, "%s answered %s", a.line(), a.brief())
		}
		a := p.post("/runs:bulk-cancel", object{})
		p.want(a.status == 400, "%s answered %s to an empty object", a.line(), a.brief())
	}),
}
