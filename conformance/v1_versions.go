package conformance

import (
	"slices"
	"strings"
)

var v1VersionChecks = []check{
	must("v1.versions.advertised", "v1 capabilities.md; version-negotiation.md", "protocolVersion is 1.<minor>; protocolVersions holds it, and a 1.x is preferred while there is one", func(p *probe) {
		var one, preferred string
		p.s.facet(&one, "protocolVersion")
		p.want(versionNumber.MatchString(one) && strings.HasPrefix(one, "1."), "protocolVersion is %q", one)
		if list := p.s.host.ProtocolVersions; len(list) > 0 {
			p.want(slices.Contains(list, one), "protocolVersions %v does not hold %s", list, one)
		}
		if p.s.facet(&preferred, "preferredVersion") {
			p.want(strings.HasPrefix(preferred, "1.") && slices.Contains(p.s.host.ProtocolVersions, preferred), "preferredVersion is %q of %v", preferred, p.s.host.ProtocolVersions)
		}
	}),

	must("v1.versions.headerless", "v1 version-negotiation.md; v2 versioning.md §1.3", "discovery without OpenWOP-Version, or with any 1.x, is the document of version 1", func(p *probe) {
		for _, v := range []string{"", "1", "1.0", "1.9"} {
			a := p.ok(p.get(discoveryPath, versionHeader, v), 200, "")
			p.want(a.obj()["limits"] != nil && strings.HasPrefix(a.str("protocolVersion"), "1."), "as %q: no document of version 1", v)
			p.want(strings.HasPrefix(a.header.Get(versionHeader), "1."), "as %q: answered in version %q", v, a.header.Get(versionHeader))
		}
	}),

	must("v1.versions.both-documents", "v2 versioning.md §5", "a host of two majors has two documents, with a validator each", func(p *probe) {
		p.younger()
		old, now := p.get(discoveryPath), p.get(discoveryPath, versionHeader, "2")
		p.want(now.status == 200 && strings.HasPrefix(now.header.Get(versionHeader), "2."), "version 2 is listed, and asked for it is %s in version %q", now.brief(), now.header.Get(versionHeader))
		p.want(string(old.body) != string(now.body) && old.header.Get("ETag") != now.header.Get("ETag"), "both majors have one document or one validator")
	}),

	must("v1.versions.unlisted", "v2 versioning.md §1.3", "discovery in a major that is not listed is 406 protocol_version_unsupported, which names those that are", func(p *probe) {
		for _, v := range []string{"97", "9.0"} {
			a := p.refuses(p.get(discoveryPath, versionHeader, v), []int{406}, "protocol_version_unsupported")
			listed := stringsOf(a.detail("protocolVersions"))
			p.want(len(listed) > 0 && slices.Equal(listed, p.s.host.ProtocolVersions), "details.protocolVersions is %v", listed)
		}
	}),

	must("v1.versions.any-minor", "v1 version-negotiation.md", "on /v1 the header is absent or any 1.x", func(p *probe) {
		id := p.over("completed")
		for _, v := range []string{"", "1", "1.0", "1.7"} {
			p.ok(p.get(at(id), versionHeader, v), 200, "")
		}
	}),

	must("v1.versions.mismatch", "v2 versioning.md §1.3", "on /v1 any other version is 400 protocol_version_mismatch, and nothing is done", func(p *probe) {
		id, _ := p.waiting(approval, "waiting-approval")
		wf := p.workflow(noop)
		for _, v := range []string{"2", "2.0", "9", "x"} {
			for _, a := range []answer{
				p.get(at(id), versionHeader, v), p.get(at(id)+"/events", versionHeader, v), p.get(at(id)+"/events/poll?timeout=1", versionHeader, v),
				p.post(at(id)+"/cancel", object{}, versionHeader, v), p.owned(p.post("/runs", object{"workflowId": wf}, versionHeader, v)),
			} {
				p.refuses(a, []int{400}, "protocol_version_mismatch")
			}
		}
		p.want(p.snapshot(id).str("status") == "waiting-approval", "a refused cancel did something")
	}),

	must("v1.versions.response-header", "v1 version-negotiation.md", "every answer under /v1 names its version, one of those listed: refusals and streams too", func(p *probe) {
		id := p.over("completed")
		p.get(at(id))
		p.get(at("conformance-nobody"))
		p.get(at(id), "Authorization", "")
		p.post("/runs", "{")
		p.post(at(id)+"/cancel", object{})
		p.get(at(id) + "/events/poll?timeout=1")
		p.frames(id, "")
		p.s.mu.Lock()
		seen := slices.Clone(p.s.seen)
		p.s.mu.Unlock()
		for _, a := range seen {
			if !strings.HasPrefix(a.path, "/v1/") {
				continue
			}
			v := a.header.Get(versionHeader)
			p.want(strings.HasPrefix(v, "1.") && (len(p.s.host.ProtocolVersions) == 0 || slices.Contains(p.s.host.ProtocolVersions, v)), "%s answered %s with OpenWOP-Version %q", a.line(), a.brief(), v)
		}
	}).last(),

	must("v1.versions.one-run", "v2 versioning.md §5; identity.md §5", "either major reads and acts on any run: bare here, bound to its tenant there", func(p *probe) {
		now := p.younger()
		id, _ := p.waiting(approval, "waiting-approval")
		a := now.get("/runs/" + segment(id))
		p.want(a.status == 200 && strings.HasSuffix(a.str("runId"), "/"+id), "by its bare id under version 2 the run is %s %q", a.brief(), a.str("runId"))
		bound := a.str("runId")
		p.want(now.get(at(bound)).str("runId") == bound, "by its bound id it is not found")
		p.ok(now.post(at(bound)+"/cancel", object{}), 200, "")
		p.becomes(id, "cancelled")
		made := now.post("/runs", object{"workflowId": p.workflow(noop)})
		p.want(made.status == 201, "%s answered %s", made.line(), made.brief())
		_, opaque, _ := strings.Cut(made.str("runId"), "/")
		p.becomes(opaque, "completed")
	}),
}
