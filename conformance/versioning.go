package conformance

import (
	"encoding/json"
	"slices"
	"strings"
)

const (
	preferredDefault = "v2-preferred-version-default"
	headerHonored    = "v2-version-header-honored"
	honoredRef       = "openwop.requirement.0172.version-header-honored"
)

var versioningChecks = []check{
	must("versioning.grammar", "versioning.md §1.1", "every advertised version is major.minor", func(p *probe) {
		vs := p.s.host.ProtocolVersions
		p.want(len(vs) > 0, "protocolVersions is absent or empty")
		for _, v := range append(slices.Clone(vs), p.s.host.PreferredVersion) {
			p.want(versionNumber.MatchString(v), "%q is no version", v)
		}
	}).floor(preferredDefault, "openwop.requirement.0172.preferred-version-default.member"),

	must("versioning.preferred", "versioning.md §1.1", "preferredVersion is one of protocolVersions, a 1.x one while any is listed, and the only one where there is one", func(p *probe) {
		vs, preferred := p.s.host.ProtocolVersions, p.s.host.PreferredVersion
		p.want(slices.Contains(vs, preferred), "preferredVersion %q is not in %v", preferred, vs)
		if slices.Contains(majors(vs), "1") {
			p.want(strings.HasPrefix(preferred, "1."), "a 1.x version is listed, yet %s is preferred", preferred)
		}
		var old string
		if p.s.facet(&old, "protocolVersion") && len(majors(vs)) == 1 {
			p.want(old == preferred, "protocolVersion %s differs from preferredVersion %s", old, preferred)
		}
	}).floor(preferredDefault, "openwop.requirement.0172.preferred-version-default.member"),

	must("versioning.headerless", "versioning.md §1.3", "without OpenWOP-Version discovery is in the major of preferredVersion", func(p *probe) {
		a := p.ok(p.get(discoveryPath, versionHeader, ""), 200, "")
		major, _, _ := strings.Cut(p.s.host.PreferredVersion, ".")
		got, _, _ := strings.Cut(a.header.Get(versionHeader), ".")
		p.want(got == major, "the answer is in version %q, %s is preferred", a.header.Get(versionHeader), p.s.host.PreferredVersion)
		if major == "2" {
			p.valid("capabilities", a.body, a.line())
			return
		}
		doc := a.obj()
		p.want(doc["protocolVersion"] != nil && doc["protocolVersions"] != nil && doc["preferredVersion"] != nil,
			"the v1 document does not name the versions")
	}).floor(preferredDefault, "openwop.requirement.0172.preferred-version-default.headerless"),

	must("versioning.both-spellings", "versioning.md §1.3", "2 and 2.0 select the same major", func(p *probe) {
		id := p.over("completed")
		for _, path := range []string{discoveryPath, at(id)} {
			a, b := p.get(path, versionHeader, "2"), p.get(path, versionHeader, "2.0")
			p.want(a.status == 200 && b.status == 200, "%s: 2 gave %s, 2.0 gave %s", path, a.brief(), b.brief())
			p.want(string(a.body) == string(b.body), "%s: 2 and 2.0 gave different answers", path)
		}
	}).floor(headerHonored, honoredRef),

	must("versioning.unserved-refused", "versioning.md §1.3", "a major that is not served is refused with 406, which names those that are", func(p *probe) {
		p.unserved(p.get(discoveryPath, versionHeader, p.unservedMajor()))
	}).floor(headerHonored, honoredRef),

	must("versioning.unserved-everywhere", "versioning.md §1.3", "every operation refuses a major that is not served, and does nothing", func(p *probe) {
		id, wf := p.over("completed"), p.workflow(noop)
		v := p.unservedMajor()
		p.unserved(p.get(at(id), versionHeader, v))
		p.unserved(p.get(at(id)+"/events", versionHeader, v))
		p.unserved(p.get(at(id)+"/events/poll", versionHeader, v))
		p.unserved(p.post(at(id)+"/cancel", object{}, versionHeader, v))
		p.unserved(p.owned(p.post("/runs", object{"workflowId": wf}, versionHeader, v)))
	}).floor(headerHonored, honoredRef),

	must("versioning.two-majors", "versioning.md §1.3; capabilities.md §1", "a host that lists two majors has two discovery documents", func(p *probe) {
		if m := majors(p.s.host.ProtocolVersions); !slices.Contains(m, "1") || !slices.Contains(m, "2") {
			p.inapplicable("the host lists one major")
		}
		bare, asked := p.get(discoveryPath, versionHeader, ""), p.get(discoveryPath)
		p.want(asked.status == 200, "major 2 is listed and refused: %s", asked.brief())
		p.want(string(bare.body) != string(asked.body), "both majors give the same bytes")
	}).floor(headerHonored, honoredRef),

	must("versioning.response-header", "versioning.md §1.4", "every protocol answer names the version used", func(p *probe) {
		for _, a := range p.observed() {
			if !protocolPath(a.path) {
				continue
			}
			v := a.header.Get(versionHeader)
			p.want(versionNumber.MatchString(v), "%s answered %s with OpenWOP-Version %q", a.line(), a.brief(), v)
			p.want(slices.Contains(p.s.host.ProtocolVersions, v), "%s answered in version %s, which is not advertised", a.line(), v)
		}
	}).last(),

	must("versioning.minimum-client", "versioning.md §1.5", "minClientVersion is a version, and a client at it is served", func(p *probe) {
		var least string
		if !p.s.facet(&least, "minClientVersion") {
			p.inapplicable("discovery has no minClientVersion")
		}
		p.want(versionNumber.MatchString(least), "minClientVersion is %q", least)
		a := p.get(discoveryPath, "OpenWOP-Client-Version", least)
		p.want(a.status == 200, "a client at minClientVersion got %s", a.brief())
	}),
}

func majors(versions []string) []string {
	var out []string
	for _, v := range versions {
		if m, _, _ := strings.Cut(v, "."); !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}

func (p *probe) unservedMajor() string {
	for _, m := range []string{"1", "9", "97"} {
		if !slices.Contains(majors(p.s.host.ProtocolVersions), m) {
			return m
		}
	}
	p.inapplicable("the host lists every major the suite could ask for")
	return ""
}

func (p *probe) unserved(a answer) {
	p.refused(a, 406, "protocol_version_unsupported")
	var echoed []string
	if json.Unmarshal(a.detail("protocolVersions"), &echoed) != nil {
		p.fail("%s: the 406 does not list protocolVersions in its details", a.line())
	}
	listed := slices.Sorted(slices.Values(p.s.host.ProtocolVersions))
	slices.Sort(echoed)
	p.want(slices.Equal(echoed, listed), "%s: the 406 lists %v, discovery %v", a.line(), echoed, listed)
}

// protocolPath reports whether a path is the protocol's, and not the host's own
// or one of the seams (spec v2 versioning.md §1.4).
func protocolPath(path string) bool {
	path, _, _ = strings.Cut(path, "?")
	for _, prefix := range []string{discoveryPath, "/runs", "/workflows", "/webhooks", "/interrupts", "/host/effect-seams"} {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}
