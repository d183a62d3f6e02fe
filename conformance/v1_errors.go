package conformance

import "strings"

var v1ErrorChecks = []check{
	must("v1.errors.envelope", "v1 rest-endpoints.md; error-envelope.schema.json", "every refusal is {error, message, details?} and nothing else", func(p *probe) {
		done := p.over("completed")
		for _, a := range []answer{
			p.get(at("conformance-nobody")), p.post("/runs", "{"), p.post("/runs", object{}), p.get(at(done), "Authorization", ""),
			p.post(at(done)+":pause", object{}), p.get(at(done) + "/events?streamMode=bogus"), p.get(at(done) + "/events/poll?timeout=0"),
			p.get(at(done), versionHeader, "2"), p.get("/v1/conformance-nothing"),
		} {
			p.want(a.status >= 400 && a.status < 500, "%s answered %s", a.line(), a.brief())
			p.closed(a)
		}
	}),

	must("v1.errors.unauthenticated", "v1 auth.md", "without a credential, or with a wrong one, every operation is 401 unauthenticated, and says so before anything else", func(p *probe) {
		id := p.over("completed")
		for _, key := range []string{"", "Bearer conformance-nobodys-key"} {
			for _, a := range []answer{
				p.get(at(id), "Authorization", key), p.get(at("conformance-nobody"), "Authorization", key), p.post("/runs", object{}, "Authorization", key),
				p.get(at(id)+"/events/poll", "Authorization", key), p.get(at(id)+"/events", "Authorization", key), p.post(at(id)+"/cancel", object{}, "Authorization", key),
				p.get(at(id)+"/artifacts/none", "Authorization", key),
			} {
				p.refuses(a, []int{401}, "unauthenticated")
			}
		}
	}),

	must("v1.errors.unknown-run", "v1 rest-endpoints.md", "an id that no run has is an unknown run, whatever it looks like: there is no grammar of ids", func(p *probe) {
		for _, id := range []string{"x", "conformance-nobody", strings.Repeat("y", 128), "a%20b", "conformance~2Fnobody"} {
			for _, a := range []answer{p.get("/runs/" + id), p.post("/runs/"+id+"/cancel", object{}), p.get("/runs/" + id + "/events/poll?timeout=1")} {
				p.refuses(a, []int{404, 403}, "not_found", "run_not_found", "forbidden", "run_forbidden")
			}
		}
	}),

	must("v1.errors.foreign-run", "v1 auth.md", "a run of another tenant is not shown, not told of and not touched", func(p *probe) {
		id := p.otherRun()
		for _, a := range []answer{p.get(at(id)), p.get(at(id) + "/events/poll?timeout=1"), p.post(at(id)+"/cancel", object{}), p.post(at(id)+":fork", object{"mode": "replay"})} {
			p.refuses(a, []int{404, 403, 501}, "not_found", "run_not_found", "forbidden", "run_forbidden", "capability_not_provided")
		}
	}),
}
