package conformance

import (
	"encoding/json"
	"slices"
	"strings"
)

const v1Capabilities = "v1 capabilities.md"

var v1Limits = []string{
	"clarificationRounds", "schemaRounds", "envelopesPerTurn", "maxNodeExecutions", "maxRunDurationMs", "maxLoopIterations",
	"maxBudgetTokens", "maxBudgetCostUsd", "maxRequestBodyBytes",
}

func parts(doc json.RawMessage) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	_ = json.Unmarshal(doc, &m)
	return m
}

var v1DiscoveryChecks = []check{
	must("v1.discovery.required", v1Capabilities, "the root has supportedEnvelopes, schemaVersions and limits", func(p *probe) {
		a := p.ok(p.get(discoveryPath), 200, "")
		doc := a.obj()
		var envelopes []string
		p.want(json.Unmarshal(doc["supportedEnvelopes"], &envelopes) == nil && envelopes != nil, "supportedEnvelopes is %s", doc["supportedEnvelopes"])
		var versions map[string]int
		p.want(json.Unmarshal(doc["schemaVersions"], &versions) == nil && versions != nil, "schemaVersions is %s", doc["schemaVersions"])
		for _, name := range v1Limits[:3] {
			p.want(whole(member(doc["limits"], name)) >= 0, "limits.%s is %s", name, member(doc["limits"], name))
		}
	}),

	must("v1.discovery.limits", v1Capabilities, "limits is closed, and holds numbers", func(p *probe) {
		var limits map[string]json.RawMessage
		p.want(p.s.facet(&limits, "limits"), "there is no limits")
		for name, v := range limits {
			p.want(slices.Contains(v1Limits, name), "limits has the member %q", name)
			var n float64
			p.want(json.Unmarshal(v, &n) == nil && n >= 0, "limits.%s is %s", name, v)
		}
	}),

	must("v1.discovery.at-root", v1Capabilities, "a family is at the root, whatever stands in the old mirror below capabilities", func(p *probe) {
		for _, name := range []string{"protocolVersion", "limits", "supportedEnvelopes"} {
			p.want(p.s.doc[name] != nil, "%s is not at the root", name)
		}
		for name := range parts(p.s.doc["capabilities"]) {
			p.want(p.s.doc[name] != nil, "%s is below capabilities and not at the root", name)
		}
	}),

	must("v1.discovery.era", "v2 persistence.md", "the log of version 1 has the schema version 2", func(p *probe) {
		v, ok := p.s.doc["eventLogSchemaVersion"]
		p.want(!ok || whole(v) == 2, "eventLogSchemaVersion is %s", v)
	}),

	must("v1.discovery.types", v1Capabilities, "what names the host, and whether a family is supported, has the type it should", func(p *probe) {
		doc := p.s.doc
		if v, ok := doc["engineVersion"]; ok {
			p.want(whole(v) >= 0, "engineVersion is %s", v)
		}
		for _, name := range []string{"name", "version"} {
			if doc["implementation"] != nil {
				p.want(text(member(doc["implementation"], name)) != "", "implementation.%s is %s", name, member(doc["implementation"], name))
			}
		}
		for _, t := range stringsOf(doc["supportedTransports"]) {
			p.want(slices.Contains([]string{"rest", "mcp", "a2a", "grpc"}, t), "supportedTransports has %q", t)
		}
		for name, block := range doc {
			if v, ok := parts(block)["supported"]; ok {
				listed := len(v) > 0 && v[0] == '[' // aiProviders lists what it supports
				p.want(isTrue(v) || string(v) == "false" || listed, "%s.supported is %s", name, v)
			}
		}
		for _, mode := range stringsOf(member(doc["replay"], "modes")) {
			p.want(mode == "replay" || mode == "branch", "replay.modes has %q", mode)
		}
		if p.s.advertises("idempotency") {
			p.want(whole(member(doc["idempotency"], "layer1RetentionSeconds")) >= 24*60*60, "idempotency.layer1RetentionSeconds is %s", member(doc["idempotency"], "layer1RetentionSeconds"))
		}
	}),

	must("v1.discovery.validator", v1Capabilities, "the document has a validator, by which it is not sent again", func(p *probe) {
		a := p.ok(p.get(discoveryPath), 200, "")
		tag := a.header.Get("ETag")
		p.want(tag != "", "there is no ETag")
		p.want(p.get(discoveryPath, "If-None-Match", tag).status == 304, "the host's own validator is not known to it")
	}),

	should("v1.discovery.cache", v1Capabilities, "the document may be kept for five minutes, and has its older validator too", func(p *probe) {
		h := p.ok(p.get(discoveryPath), 200, "").header
		p.want(strings.Contains(h.Get("Cache-Control"), "max-age=300"), "Cache-Control is %q", h.Get("Cache-Control"))
		p.want(h.Get("Capabilities-Etag") == h.Get("ETag"), "Capabilities-Etag is %q, ETag %q", h.Get("Capabilities-Etag"), h.Get("ETag"))
	}),

	must("v1.discovery.public", v1Capabilities, "discovery and the OpenAPI document need no credential", func(p *probe) {
		p.ok(p.get(discoveryPath, "Authorization", ""), 200, "")
		a := p.ok(p.get("/v1/openapi.json", "Authorization", ""), 200, "")
		p.want(strings.HasPrefix(a.str("openapi"), "3.") && len(parts(a.obj()["paths"])) > 0, "/v1/openapi.json is no OpenAPI document")
	}),

	must("v1.discovery.workflow", "v1 rest-endpoints.md", "a workflow's definition is read by its id; one that is not there is 404", func(p *probe) {
		id := p.workflow(noop)
		a := p.ok(p.get("/workflows/"+id), 200, "")
		p.want(a.str("id") == id && a.obj()["nodes"] != nil, "the definition of %s is one of %q", id, a.str("id"))
		p.refuses(p.get("/workflows/conformance-not-there"), []int{404}, "not_found", "workflow_not_found")
	}),
}
