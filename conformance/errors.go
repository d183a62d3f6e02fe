package conformance

import (
	"encoding/json"
	"slices"
	"strings"
)

var errorChecks = []check{
	must("errors.envelope", "errors.md §The envelope", "every refusal is the closed envelope, as JSON", func(p *probe) {
		for _, a := range p.refusals() {
			p.want(strings.HasPrefix(a.header.Get("Content-Type"), "application/json"), "%s answered %d as %q", a.line(), a.status, a.header.Get("Content-Type"))
			p.valid("error-envelope", a.body, a.line())
		}
	}).last(),

	must("errors.registered", "errors.md §The registry", "every refusal has a registered code at its registered status", func(p *probe) {
		for _, a := range p.refusals() {
			// No code is registered at 405; the method is what was not found.
			if a.status == 405 && a.code() == "not_found" {
				continue
			}
			statuses, vendor := registered(a.code())
			p.want(vendor || len(statuses) > 0, "%s answered the code %q, which is not registered", a.line(), a.code())
			p.want(vendor || slices.Contains(statuses, a.status), "%s answered %s at %d; it belongs to %v", a.line(), a.code(), a.status, statuses)
		}
	}).last(),

	must("errors.retry-timing", "errors.md §Retry timing", "retry timing is in Retry-After only, and a 429 has it", func(p *probe) {
		for _, a := range p.refusals() {
			for _, name := range []string{"retryAfter", "retryAfterMs", "retryAfterSeconds"} {
				p.want(a.detail(name) == nil, "%s: details has %s", a.line(), name)
			}
			p.want(a.status != 429 || a.header.Get("Retry-After") != "", "%s: a 429 without Retry-After", a.line())
		}
	}).last(),

	must("errors.correlation", "errors.md §The envelope", "details.correlationId, if there, is a string that is not empty", func(p *probe) {
		for _, a := range p.refusals() {
			v := a.detail("correlationId")
			p.want(v == nil || text(v) != "", "%s: correlationId is %s", a.line(), v)
		}
	}).last(),

	must("errors.no-server-error", "errors.md", "nothing the suite sends is answered with an internal error", func(p *probe) {
		for _, a := range p.observed() {
			p.want(a.status != 500, "%s answered 500 %s", a.line(), a.code())
		}
	}).last(),

	must("errors.no-credential", "identity.md §2.1", "no operation on runs works without a credential", func(p *probe) {
		for _, a := range p.everywhere("Authorization", "") {
			p.refused(a, 401, "unauthenticated")
		}
	}),

	must("errors.bad-credential", "identity.md §2.1", "an unknown credential is refused, whatever is asked", func(p *probe) {
		for _, a := range p.everywhere("Authorization", "Bearer conformance-no-such-key-0123456789abcdef0123456789") {
			p.refused(a, 401, "unauthenticated", "identity_unverified", "identity_unresolvable", "credential_revoked", "key_revoked")
		}
	}),

	must("errors.unknown-run", "errors.md", "a run of the caller's tenant that does not exist is not_found, on every operation", func(p *probe) {
		id := p.unknownRun()
		for _, a := range p.onRun(id) {
			p.refused(a, 404, "not_found")
		}
	}),

	must("errors.unknown-operation", "errors.md §The envelope", "a path that is no operation is refused in the envelope", func(p *probe) {
		p.refused(p.get("/conformance-no-such-operation"), 404)
		a := p.do("DELETE", "/runs", nil)
		p.want(a.status == 404 || a.status == 405, "DELETE /runs answered %s", a.brief())
		p.refused(a, a.status)
	}),

	must("errors.malformed-body", "errors.md; runs.md §Create", "a body that is no JSON object is a validation_error", func(p *probe) {
		for _, body := range []string{"{", "[]", `"x"`, "null", `{"workflowId":"a"}{}`, `{"workflowId":`, "\xff\xfe"} {
			p.refused(p.owned(p.post("/runs", body)), 400, "validation_error")
		}
	}),

	should("errors.media-type", "errors.md (unsupported_media_type)", "a body that is not declared as JSON is an unsupported_media_type", func(p *probe) {
		wf := p.workflow(noop)
		p.refused(p.owned(p.post("/runs", object{"workflowId": wf}, "Content-Type", "text/plain")), 415, "unsupported_media_type")
	}),

	must("errors.body-limit", "capabilities.md § limits", "a body over the advertised size is payload_too_large, one below it is read", func(p *probe) {
		var limit int
		if !p.s.facet(&limit, "limits", "maxRequestBodyBytes") {
			p.inapplicable("discovery advertises no maxRequestBodyBytes")
		}
		if limit > 32<<20 {
			p.blocked("the limit of %d bytes is more than the suite sends", limit)
		}
		body := []byte(`{"workflowId":"conformance-no-such-workflow","inputs":{"x":"` + strings.Repeat("x", limit) + `"}}`)
		p.refused(p.post("/runs", body), 413, "payload_too_large")
		small := []byte(`{"workflowId":"conformance-no-such-workflow","inputs":{"x":"` + strings.Repeat("x", limit-200) + `"}}`)
		a := p.post("/runs", small)
		p.want(a.status != 413, "a body below the limit was refused: %s", a.brief())
	}).gated("limits"),
}

// onRun asks every core operation on a run.
func (p *probe) onRun(id string, header ...string) []answer {
	var out []answer
	for _, path := range []string{"", "/events", "/events/poll"} {
		out = append(out, p.get(at(id)+path, header...))
	}
	for _, path := range []string{"/cancel", ":pause", ":resume"} {
		out = append(out, p.post(at(id)+path, object{}, header...))
	}
	return append(out, p.post(at(id)+"/interrupts/gate", object{"resumeValue": accept}, header...))
}

// everywhere asks every core operation, with a run that is there.
func (p *probe) everywhere(header ...string) []answer {
	id, wf := p.over("completed"), p.workflow(noop)
	out := p.onRun(id, header...)
	out = append(out, p.owned(p.post("/runs", object{"workflowId": wf}, header...)))
	return append(out, p.post("/runs:bulk-cancel", object{"runIds": []string{id}}, header...))
}

// unknownRun is an id in the caller's tenant that no run has.
func (p *probe) unknownRun() string {
	tenant, _, ok := strings.Cut(p.over("completed"), "/")
	if !ok {
		p.blocked("run ids have no tenant segment")
	}
	return tenant + "/conformance0unknown0run"
}

// observed is every answer of the run so far, with a survey of the operations
// so that a filtered run has something to look at too.
func (p *probe) observed() []answer {
	p.s.surveyed.Do(func() {
		for _, step := range survey {
			p.quietly(step)
		}
	})
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return slices.Clone(p.s.seen)
}

// survey touches every core operation, right and wrong.
var survey = []func(*probe){
	func(p *probe) { p.get(discoveryPath) },
	func(p *probe) { p.get(discoveryPath, versionHeader, "97") },
	func(p *probe) { p.do("DELETE", "/runs", nil) },
	func(p *probe) { p.get("/runs/"+segment(foreignRun), "Authorization", "") },
	func(p *probe) { p.onRun(foreignRun) },
	func(p *probe) { p.post("/runs", "{") },
	func(p *probe) { p.get("/runs") },
	func(p *probe) { p.onRun(p.unknownRun()) },
	func(p *probe) { p.onRun(p.over("approved")) },
	func(p *probe) {
		id := at(p.over("approved"))
		p.get(id, "If-None-Match", p.get(id).header.Get("ETag"))
	},
}

// quietly does something whose own outcome is another check's business.
func (p *probe) quietly(step func(*probe)) {
	defer func() {
		if end := recover(); end != nil {
			if _, ok := end.(stop); !ok {
				panic(end)
			}
		}
	}()
	step(p)
}

// refusals are the observed answers from 400 on. HEAD has no body to look at.
func (p *probe) refusals() []answer {
	return slices.DeleteFunc(p.observed(), func(a answer) bool {
		return a.status < 400 || a.method == "HEAD" || !protocolPath(a.path)
	})
}

// member reads a path of members from JSON.
func member(doc []byte, path ...string) json.RawMessage {
	for _, name := range path {
		var m map[string]json.RawMessage
		if json.Unmarshal(doc, &m) != nil {
			return nil
		}
		doc = m[name]
	}
	return doc
}
