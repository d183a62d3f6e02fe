package conformance

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// wholeSeconds is the form of Retry-After that a client need not know the date for.
var wholeSeconds = regexp.MustCompile(`^[1-9][0-9]*$`)

// bound reads one of the host's own bounds.
func (p *probe) bound(name string) (n int) {
	if !p.s.facet(&n, "extensions", "fermata.limits", name) || n <= 0 {
		p.inapplicable("discovery advertises no %s", name)
	}
	return n
}

// lent registers a workflow of the check's own, which is gone with the check.
func (p *probe) lent(purpose string, def object, use func(workflow string)) {
	id := "conformance-own-" + purpose + "-" + nonce()
	def["id"] = id
	if a := p.do("PUT", "/host/fermata/workflows/"+id, def); a.status != 200 && a.status != 201 {
		p.blocked("the host does not take the workflow that the check needs: %s", a.brief())
	}
	defer p.quietly(func(p *probe) { p.do("DELETE", "/host/fermata/workflows/"+id, nil) })
	use(id)
}

// untouched wants that what was asked of a workflow has left no run of it.
func (p *probe) untouched(ask func(workflow string)) {
	p.filter("workflowId")
	p.lent("limits", flow("limits", []any{step("noop", "core.noop", object{})}, []any{}), func(wf string) {
		ask(wf)
		l, _ := p.list("?workflowId=" + url.QueryEscape(wf))
		p.want(len(l.Runs) == 0, "what was refused has made %d runs", len(l.Runs))
	})
}

// full wants a refusal that says in whole seconds when to come again.
func (p *probe) full(a answer) {
	p.refused(a, 429)
	statuses, vendor := registered(a.code())
	p.want(vendor || slices.Contains(statuses, 429), "%s: the code %q does not belong to 429", a.line(), a.code())
	after := a.header.Get("Retry-After")
	p.want(wholeSeconds.MatchString(after), "%s: Retry-After is %q, want whole seconds", a.line(), after)
}

// nested is a create whose body has about as many containers in one another.
func nested(wf string, depth int) []byte {
	return fmt.Appendf(nil, `{"workflowId":%q,"inputs":{"x":%s1%s}}`, wf, strings.Repeat("[", depth), strings.Repeat("]", depth))
}

var limitChecks = []check{
	must("limits.body-whole", "capabilities.md § limits", "a create that is too large makes no run, whether it says its size or not", func(p *probe) {
		var limit int
		if !p.s.facet(&limit, "limits", "maxRequestBodyBytes") {
			p.inapplicable("discovery advertises no maxRequestBodyBytes")
		}
		if limit > 32<<20 {
			p.blocked("the limit of %d bytes is more than the suite sends", limit)
		}
		p.untouched(func(wf string) {
			body := fmt.Sprintf(`{"workflowId":%q,"inputs":{"x":"%s"}}`, wf, strings.Repeat("x", limit))
			p.refused(p.owned(p.post("/runs", body)), 413, "payload_too_large")
			unsized := struct{ io.Reader }{strings.NewReader(body)}
			p.refused(p.owned(p.post("/runs", unsized)), 413, "payload_too_large")
		})
	}).gated("limits", "runList"),

	must("limits.body-depth", "capabilities.md § limits (an extension's bound)", "a body nested deeper than advertised is a validation_error and makes no run, one half as deep is read", func(p *probe) {
		most := p.bound("maxBodyDepth")
		if most > 100_000 {
			p.blocked("%d containers in one another are more than the suite sends", most)
		}
		p.untouched(func(wf string) {
			p.refused(p.owned(p.post("/runs", nested(wf, most+1))), 400, "validation_error")
		})
		p.ok(p.owned(p.post("/runs", nested(p.workflow(noop), most/2))), 201, "")
	}).gated("runList"),

	must("limits.bulk", "runs.md §Bulk cancel", "as many ids as advertised are taken, and one more is refused by the same number", func(p *probe) {
		most := p.bound("maxBulkRuns")
		if most > 1000 {
			p.blocked("%d ids are more than the suite sends", most)
		}
		ids := make([]string, most+1)
		for i := range ids {
			ids[i] = fmt.Sprintf("conformance-bulk/conformance0bulk0%04d", i)
		}
		p.bulk(ids[:most]...)
		a := p.refused(p.post("/runs:bulk-cancel", object{"runIds": ids}), 400, "validation_error")
		var named int
		_ = json.Unmarshal(a.detail("maxRunIds"), &named)
		p.want(named == most, "details.maxRunIds is %s, discovery says %d", a.detail("maxRunIds"), most)
	}),

	must("limits.page", "runs.md §List", "the host's own record of the page size is the family's", func(p *probe) {
		own, most := p.bound("maxPageSize"), 0
		p.s.facet(&most, "runList", "maxPageSize")
		p.want(own == most, "fermata.limits says %d, runList %d", own, most)
	}).gated("runList"),

	must("limits.streams", "errors.md §Retry timing", "a run with all its streams open has no more of them, says when to come again, and has one again when one is closed", func(p *probe) {
		most := p.bound("runMaxStreams")
		if most > 32 {
			p.inapplicable("%d streams are more than the suite opens", most)
		}
		id, _ := p.waiting(approval, "waiting-approval")
		var open []*stream
		defer func() {
			for _, s := range open {
				s.close()
			}
		}()
		for range most {
			open = append(open, p.subscribe(id, ""))
		}
		s, a := p.streamAnswer(id, "")
		if s != nil {
			s.close()
		}
		p.full(a)
		open[0].close()
		for s, a = p.streamAnswer(id, ""); s == nil; s, a = p.streamAnswer(id, "") {
			p.want(p.pause(25e6), "a stream was closed, and another is not opened: %s", a.brief())
		}
		open[0] = s
	}),

	// A bound that one address or tenant shares is not provoked: whoever else is at
	// work from there, other checks included, would be refused with it.
	must("limits.retry-after", "errors.md §Retry timing", "whatever was refused with 429 has a code of that status, and whole seconds to wait", func(p *probe) {
		seen := 0
		for _, a := range p.refusals() {
			if a.status == 429 {
				seen++
				p.full(a)
			}
		}
		if seen == 0 {
			p.inapplicable("nothing was refused with 429, and provoking one would shut out others at the same address")
		}
	}).last(),

	should("limits.sniffing", "Fetch §X-Content-Type-Options (no requirement of the protocol)", "no browser is left to guess what a JSON answer is", func(p *probe) {
		for _, a := range p.observed() {
			json := strings.HasPrefix(a.header.Get("Content-Type"), "application/json")
			p.want(!json || strings.EqualFold(a.header.Get("X-Content-Type-Options"), "nosniff"), "%s answered %d without nosniff", a.line(), a.status)
		}
	}).last(),

	should("limits.software", "RFC 9110 §10.2.4 (no requirement of the protocol)", "no answer names the version of the software behind it", func(p *probe) {
		for _, a := range p.observed() {
			for _, name := range []string{"Server", "X-Powered-By"} {
				p.want(!strings.ContainsAny(a.header.Get(name), "0123456789"), "%s: %s is %q", a.line(), name, a.header.Get(name))
			}
		}
	}).last(),
}
