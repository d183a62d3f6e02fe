package conformance

import (
	"net/http"
	"strings"
)

var headerChecks = []check{
	must("headers.closed-set", "headers.md §Response headers", "an OpenWOP-… response header is one of the listed", func(p *probe) {
		for _, a := range p.observed() {
			if !protocolPath(a.path) {
				continue
			}
			for name := range a.header {
				own := strings.HasPrefix(name, "Openwop-")
				listed := name == "Openwop-Version" || name == "Openwop-Idempotent-Replay"
				p.want(!own || listed, "%s sent the header %s", a.line(), name)
			}
		}
	}).last(),

	must("headers.removed", "headers.md §Removed in v2", "headers of v1 that were removed are not sent", func(p *probe) {
		for _, a := range p.observed() {
			if strings.HasPrefix(a.header.Get(versionHeader), "1.") {
				continue // an answer of the older major, through the overlap
			}
			for name := range a.header {
				gone := strings.HasPrefix(name, "X-Openwop-") || name == "Capabilities-Etag" || name == "X-Dedup" || name == "X-Pack-Sha256"
				p.want(!gone || !protocolPath(a.path), "%s sent the header %s", a.line(), name)
			}
		}
	}).last(),

	must("headers.client-version-malformed", "headers.md §Request headers", "a malformed OpenWOP-Client-Version is taken for an absent one", func(p *probe) {
		id := p.over("completed")
		for _, v := range []string{"two", "2", "2.0.0", "-1.0", "2.x"} {
			for _, path := range []string{discoveryPath, at(id)} {
				a := p.get(path, "OpenWOP-Client-Version", v)
				p.want(a.status == 200, "OpenWOP-Client-Version: %s gave %s", v, a.brief())
			}
		}
	}),

	must("headers.client-version-selects-nothing", "headers.md §Request headers", "OpenWOP-Client-Version never selects a contract", func(p *probe) {
		a, b := p.get(discoveryPath), p.get(discoveryPath, "OpenWOP-Client-Version", "97.0")
		p.want(b.status != 200 || a.header.Get(versionHeader) == b.header.Get(versionHeader), "the answer is in another version for a client of 97.0")
	}),

	must("headers.preflight", "headers.md §Cross-origin preflight", "a granted preflight admits the operation's method and headers", func(p *probe) {
		const asked = "authorization, content-type, idempotency-key, openwop-version"
		a := p.do("OPTIONS", "/runs", nil, "Authorization", "", versionHeader, "", "Origin", "https://conformance.example",
			"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", asked)
		if a.header.Get("Access-Control-Allow-Origin") == "" {
			p.inapplicable("the host grants no preflight to a foreign origin")
		}
		methods := strings.ToUpper(a.header.Get("Access-Control-Allow-Methods"))
		p.want(strings.Contains(methods, "POST") || methods == "*", "the method POST is not admitted: %q", methods)
		allowed := strings.ToLower(a.header.Get("Access-Control-Allow-Headers"))
		for h := range strings.SplitSeq(asked, ", ") {
			// A star stands for every header but Authorization.
			p.want(strings.Contains(allowed, h) || allowed == "*" && h != "authorization", "the header %s is not admitted: %q", h, allowed)
		}
	}),

	must("headers.foreign-origin", "headers.md §Cross-origin preflight", "no origin is granted together with the credentials of a browser just because it asks", func(p *probe) {
		const origin = "https://conformance-nobody-knows.example"
		for _, a := range []answer{
			p.get("/runs", "Origin", origin),
			p.do("OPTIONS", "/runs", nil, "Authorization", "", "Origin", origin, "Access-Control-Request-Method", "POST"),
		} {
			granted, with := a.header.Get("Access-Control-Allow-Origin"), a.header.Get("Access-Control-Allow-Credentials")
			p.want(granted == "" || with != "true", "%s: %s is granted with credentials", a.line(), granted)
		}
	}),

	must("headers.encoding", "runs.md §Caching and encoding", "a compressed answer says so, varies by Accept-Encoding and holds the same bytes", func(p *probe) {
		id := p.over("completed")
		a := p.get(at(id), "Accept-Encoding", "gzip")
		switch a.header.Get("Content-Encoding") {
		case "":
			p.inapplicable("the host did not compress the answer")
		case "gzip":
		default:
			p.fail("gzip was accepted, and %q was sent", a.header.Get("Content-Encoding"))
		}
		p.want(headerHas(a.header, "Vary", "accept-encoding"), "a compressed answer lacks Vary: Accept-Encoding")
		p.want(string(gunzip(a.body)) == string(p.get(at(id)).body), "the decoded body differs from the plain one")
	}),

	should("headers.challenge", "identity.md §2.5", "a 401 carries a Bearer challenge", func(p *probe) {
		a := p.get("/runs/"+segment(foreignRun), "Authorization", "")
		p.want(a.status == 401, "without a credential: %s", a.brief())
		p.want(strings.HasPrefix(a.header.Get("WWW-Authenticate"), "Bearer"), "WWW-Authenticate is %q", a.header.Get("WWW-Authenticate"))
	}),

	must("headers.no-challenge-on-404", "identity.md §2.5", "a 404 carries no challenge", func(p *probe) {
		for _, a := range p.observed() {
			p.want(a.status != 404 || a.header.Get("WWW-Authenticate") == "", "%s answered 404 with a challenge", a.line())
		}
	}).last(),
}

// headerHas reports whether a list-valued header names a token.
func headerHas(h http.Header, name, token string) bool {
	for _, line := range h.Values(name) {
		for t := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(t), token) {
				return true
			}
		}
	}
	return false
}
