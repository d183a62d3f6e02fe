package conformance

import (
	"net/url"
	"slices"
	"strings"
)

var listChecks = []check{
	must("list.page", "runs.md §List", "a page of runs is the closed shape, no larger than advertised", func(p *probe) {
		var most int
		p.s.facet(&most, "runList", "maxPageSize")
		for _, query := range []string{"", "?limit=100000"} {
			l, a := p.list(query)
			p.valid("run-list-response", a.body, a.line())
			p.want(most == 0 || len(l.Runs) <= most, "%s gave %d runs; maxPageSize is %d", a.line(), len(l.Runs), most)
		}
	}).gated("runList"),

	must("list.own", "runs.md §List", "a run the caller has created is in the list, under its bound id", func(p *probe) {
		id := p.start(noop)
		seen := p.walk("limit=100", id)
		p.want(slices.Contains(seen, id), "the run %s is not among %d listed", id, len(seen))
		tenant, _, _ := strings.Cut(id, "/")
		for _, x := range seen {
			p.want(boundID.MatchString(x) && strings.HasPrefix(x, tenant+"/"), "the list shows the id %q", x)
		}
	}).gated("runList"),

	must("list.newest-first", "runs.md §List", "the newest run comes first", func(p *probe) {
		wf := p.workflow(chain)
		var made []string
		for range 4 {
			made = append(made, p.startOf(wf))
		}
		seen := p.walk("limit=100", made...)
		before := len(seen)
		for _, id := range made {
			i := slices.Index(seen, id)
			p.want(i >= 0, "the run %s is not listed", id)
			p.want(i < before, "the run %s, created later, is listed further down", id)
			before = i
		}
	}).gated("runList"),

	must("list.pages", "runs.md §List", "pages follow one another without gap or repetition", func(p *probe) {
		wf := p.workflow(chain)
		var made []string
		for range 5 {
			made = append(made, p.startOf(wf))
		}
		l, _ := p.list("?limit=2")
		if l.NextCursor == "" {
			p.inapplicable("the host gave everything in one page")
		}
		seen := p.walk("limit=2", made...)
		for _, id := range made {
			p.want(slices.Contains(seen, id), "the run %s is on no page", id)
		}
		unique := slices.Compact(slices.Sorted(slices.Values(seen)))
		p.want(len(unique) == len(seen), "%d runs are on more than one page", len(seen)-len(unique))
	}).gated("runList"),

	must("list.foreign-cursor", "runs.md §List", "a cursor the host did not mint is a validation_error", func(p *probe) {
		for _, c := range []string{"conformance-no-such-cursor", "AAAAAAAAAAAAAAAAAAAAAAAA", "0", "%00"} {
			p.refused(p.get("/runs?cursor="+url.QueryEscape(c)), 400, "validation_error")
		}
	}).gated("runList"),

	must("list.filter-workflow", "runs.md §List", "workflowId filters exactly, where it is advertised", func(p *probe) {
		p.filter("workflowId")
		wf := p.workflow(failing)
		id := p.over("failed")
		l, _ := p.list("?workflowId=" + url.QueryEscape(wf) + "&limit=50")
		p.want(len(l.Runs) > 0, "the filter leaves nothing, yet %s is a run of %s", id, wf)
		for _, r := range l.Runs {
			p.want(text(member(r, "workflowId")) == wf, "the list for %s shows a run of %s", wf, member(r, "workflowId"))
		}
		none, _ := p.list("?workflowId=" + url.QueryEscape(wf+"x"))
		p.want(len(none.Runs) == 0, "a longer workflow id matches too")
	}).gated("runList"),

	must("list.filter-status", "runs.md §List", "status filters exactly, where it is advertised", func(p *probe) {
		p.filter("status")
		p.over("cancelled")
		for _, status := range []string{"cancelled", "completed"} {
			l, _ := p.list("?status=" + status + "&limit=50")
			p.want(status != "cancelled" || len(l.Runs) > 0, "the filter leaves nothing, yet there is a cancelled run")
			for _, r := range l.Runs {
				p.want(text(member(r, "status")) == status, "the list of %s runs shows one that is %s", status, member(r, "status"))
			}
		}
	}).gated("runList"),

	must("list.other-filter", "runs.md §List", "a filter that is not advertised is ignored", func(p *probe) {
		id := p.start(noop)
		seen := p.walk("limit=100&conformanceNoSuchFilter=x", id)
		p.want(slices.Contains(seen, id), "an unknown filter hides the run %s", id)
	}).gated("runList"),

	should("list.summary", "runs.md §List", "an entry says of a run what its snapshot says", func(p *probe) {
		id := p.over("failed")
		l, _ := p.list("?limit=100")
		for _, r := range l.Runs {
			if text(member(r, "runId")) != id {
				continue
			}
			snap := p.snapshot(id).body
			for _, name := range []string{"workflowId", "status", "owner", "eventLogSchemaVersion"} {
				p.want(same(member(r, name), member(snap, name)), "%s is %s in the list, %s in the snapshot", name, member(r, name), member(snap, name))
			}
			return
		}
		p.blocked("the run was not on the first page")
	}).gated("runList"),
}

func (p *probe) filter(name string) {
	var filters []string
	p.s.facet(&filters, "runList", "filters")
	if !slices.Contains(filters, name) {
		p.inapplicable("discovery does not advertise the filter %s", name)
	}
}
