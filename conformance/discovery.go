package conformance

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"
)

const rootClosed = "v2-capabilities-root-closed"

var discoveryChecks = []check{
	must("discovery.document", "capabilities.md §3", "discovery is a JSON document that fits the closed v2 root", func(p *probe) {
		a := p.ok(p.get(discoveryPath), 200, "capabilities")
		p.want(strings.HasPrefix(a.header.Get("Content-Type"), "application/json"), "discovery came as %q", a.header.Get("Content-Type"))
	}).floor(rootClosed, "openwop.requirement.0169.capabilities-root-closed.valid"),

	must("discovery.root-closed", "capabilities.md §3, §4", "the root has no wrapper, no mirror, no profiles and no deleted key", func(p *probe) {
		doc := p.document()
		for _, k := range []string{"capabilities", "profiles", "contractProvenance", "supportedTransports", "grpc", "testSeams", "minimumSuiteVersion"} {
			p.want(doc[k] == nil, "the root has a member %s", k)
		}
		for k := range doc {
			p.want(!strings.Contains(k, "."), "the root has a dotted member %s", k)
		}
	}).floor(rootClosed, "openwop.requirement.0169.capabilities-root-closed.unknown-root-key"),

	must("discovery.records", "capabilities.md §2", "each family is a record with status, since and witness, and until exactly when it is not stable", func(p *probe) {
		doc := p.document()
		for _, name := range familiesOf(doc) {
			p.record(name, doc[name])
		}
	}),

	must("discovery.extensions", "capabilities.md §3.2", "extensions are named org.name, and no reserved org is used", func(p *probe) {
		var ext map[string]json.RawMessage
		if !p.s.facet(&ext, "extensions") {
			p.inapplicable("discovery has no extensions")
		}
		for name := range ext {
			p.want(extensionName.MatchString(name), "the extension %q is not named org.name", name)
			org, _, _ := strings.Cut(name, ".")
			p.want(!slices.Contains([]string{"openwop", "vendor", "effect-seams", "events"}, org), "the org %s is reserved", org)
		}
	}),

	must("discovery.etag", "capabilities.md §1.1", "discovery carries an ETag", func(p *probe) {
		p.want(p.get(discoveryPath).header.Get("ETag") != "", "discovery has no ETag")
	}),

	must("discovery.not-modified", "capabilities.md §1.1", "If-None-Match with that ETag gives 304 without a body; with another one, the document", func(p *probe) {
		tag := p.get(discoveryPath).header.Get("ETag")
		if tag == "" {
			p.blocked("discovery has no ETag to ask with")
		}
		a := p.get(discoveryPath, "If-None-Match", tag)
		p.want(a.status == 304, "If-None-Match with the host's own ETag gave %s", a.brief())
		p.want(len(a.body) == 0, "the 304 has a body of %d bytes", len(a.body))
		other := p.get(discoveryPath, "If-None-Match", `"conformance-no-such-tag"`)
		p.want(other.status == 200, "If-None-Match with a foreign ETag gave %s", other.brief())
	}),

	must("discovery.etag-tells-bytes", "capabilities.md §1.1", "the ETag stands for the document's bytes", func(p *probe) {
		a, b := p.get(discoveryPath), p.get(discoveryPath)
		equal := a.header.Get("ETag") == b.header.Get("ETag")
		p.want(equal == (string(a.body) == string(b.body)), "two reads: equal ETags %v, equal bytes %v", equal, !equal)
	}),

	must("discovery.no-old-validator", "capabilities.md §1.1", "the v2 document has no Capabilities-Etag", func(p *probe) {
		p.want(p.get(discoveryPath).header.Get("Capabilities-Etag") == "", "Capabilities-Etag is still sent")
	}),

	must("discovery.era", "versioning.md §2.2", "discovery advertises era 3, the one a v2 host writes", func(p *probe) {
		var era int
		p.want(p.s.facet(&era, "eventLogSchemaVersion"), "eventLogSchemaVersion is absent or no integer")
		p.want(era == 3, "discovery advertises era %d", era)
	}).floor("v2-era-key", "openwop.requirement.0176.era-key.discovery"),

	must("discovery.fixtures-honest", "capabilities.md §3.1", "every fixture discovery names can be started or read", func(p *probe) {
		var listed []string
		if !p.s.facet(&listed, "fixtures") || len(listed) == 0 {
			p.inapplicable("discovery names no fixtures")
		}
		for i, id := range listed {
			if i == 20 { // enough to tell, and no flood
				break
			}
			a := p.get("/workflows/" + segment(id))
			p.want(a.status == 200, "the fixture %s is not there: %s", id, a.brief())
		}
	}),
}

var (
	extensionName = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*\.[a-z][a-z0-9]*(-[a-z0-9]+)*$`)
	versionNumber = regexp.MustCompile(`^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)$`)
)

// document is discovery, read anew.
func (p *probe) document(header ...string) map[string]json.RawMessage {
	a := p.ok(p.get(discoveryPath, header...), 200, "")
	doc := a.obj()
	p.want(doc != nil, "discovery is no JSON object")
	return doc
}

func (p *probe) record(name string, raw json.RawMessage) {
	var r struct {
		Status, Since, Until, Witness string
		Supported                     *bool
	}
	if json.Unmarshal(raw, &r) != nil {
		p.fail("%s is no record: %.100s", name, raw)
	}
	p.want(r.Supported == nil, "%s has a member supported: presence is the claim", name)
	p.want(versionNumber.MatchString(r.Since), "%s.since is %q", name, r.Since)
	witnesses := []string{"witnessable-unaided", "witnessable-gated", "seam-gated", "claims-check", "negative-existence"}
	p.want(slices.Contains(witnesses, r.Witness), "%s.witness is %q", name, r.Witness)
	switch r.Status {
	case "stable":
		p.want(r.Until == "", "%s is stable and has until", name)
	case "experimental", "deprecated":
		p.want(r.Until != "", "%s is %s and has no until", name, r.Status)
		day, err := time.Parse(time.DateOnly, r.Until)
		p.want(err == nil || versionNumber.MatchString(r.Until), "%s.until is %q", name, r.Until)
		p.want(err != nil || !day.Before(time.Now().UTC().Truncate(24*time.Hour)), "%s.until has passed", name)
	default:
		p.fail("%s.status is %q", name, r.Status)
	}
}
