package conformance

import (
	"encoding/json"
	"slices"
)

var readChecks = []check{
	must("read.snapshot", "runs.md §Snapshot", "a snapshot is the closed shape, in every state of a run", func(p *probe) {
		for _, how := range []string{"completed", "approved", "failed", "cancelled"} {
			a := p.ok(p.get(at(p.over(how))), 200, "run-snapshot")
			p.want(a.str("runId") == p.over(how), "the snapshot is of the run %q", a.str("runId"))
		}
		id, _ := p.waiting(approval, "waiting-approval")
		p.ok(p.get(at(id)), 200, "run-snapshot")
	}),

	must("read.status", "runs.md §Snapshot", "the status a snapshot shows is that of the log's last word", func(p *probe) {
		for how, want := range map[string]string{"completed": "completed", "approved": "completed", "failed": "failed", "cancelled": "cancelled"} {
			id := p.over(how)
			events := p.log(id)
			p.want(len(events) > 0 && events[len(events)-1].Type == "run."+want, "the log of a %s run ends with %v", how, types(events))
			p.want(p.snapshot(id).str("status") == want, "the snapshot says %s", p.snapshot(id).str("status"))
		}
	}),

	must("read.error", "runs.md §Snapshot", "a failed run shows its error, a completed one none", func(p *probe) {
		e := p.snapshot(p.over("failed")).obj()["error"]
		code, message := text(member(e, "code")), text(member(e, "message"))
		p.want(code != "" && message != "", "the error is %s", e)
		statuses, vendor := registered(code)
		p.want(vendor || len(statuses) > 0, "the error code %q is not registered", code)
		p.want(p.snapshot(p.over("completed")).obj()["error"] == nil, "a completed run shows an error")
	}),

	must("read.current-node", "runs.md §Snapshot", "currentNodeId is set while suspended, and only then", func(p *probe) {
		id, node := p.waiting(approval, "waiting-approval")
		e, ok := find(p.log(id), "node.suspended")
		p.want(ok && e.NodeID == node, "the node %s is suspended, and currentNodeId is %s", e.NodeID, node)
		p.want(p.snapshot(p.over("approved")).str("currentNodeId") == "", "a completed run has a currentNodeId")
	}),

	must("read.compensation", "runs.md §Snapshot", "compensationStatus is there exactly if compensation is advertised", func(p *probe) {
		v := p.snapshot(p.over("completed")).obj()["compensationStatus"]
		on := p.s.advertises("compensation")
		p.want((v != nil) == on, "compensation advertised: %v, compensationStatus: %q", on, v)
		p.want(!on || text(v) == "none", "a run nothing was undone of has the status %s", v)
	}),

	must("read.engine-version", "versioning.md §2.1", "engineVersion is an integer, at the root, in snapshots and in events", func(p *probe) {
		id := p.over("completed")
		values := []json.RawMessage{p.document()["engineVersion"], p.snapshot(id).obj()["engineVersion"]}
		for _, e := range p.log(id) {
			values = append(values, member(e.doc, "engineVersion"))
		}
		for _, v := range values {
			var n int64
			p.want(v == nil || json.Unmarshal(v, &n) == nil && n >= 0, "engineVersion is %s", v)
		}
	}),

	should("read.etag", "runs.md §Caching and encoding", "a snapshot carries a strong ETag", func(p *probe) {
		tag := p.get(at(p.over("completed"))).header.Get("ETag")
		p.want(len(tag) > 1 && tag[0] == '"', "the ETag is %q", tag)
	}),

	must("read.etag-stable", "runs.md §Caching and encoding", "the ETag of a run that does not change does not change", func(p *probe) {
		id, _ := p.waiting(approval, "waiting-approval")
		first := p.etag(id)
		p.want(first == p.etag(id), "two reads of a run that waits give two ETags")
	}),

	must("read.etag-changes", "runs.md §Caching and encoding", "the ETag changes with every transition", func(p *probe) {
		id, node := p.waiting(approval, "waiting-approval")
		tags := []string{p.etag(id)}
		if a := p.resolve(id, node, accept); a.status != 200 {
			p.blocked("the run could not be moved on: %s", a.brief())
		}
		p.await(id, "completed")
		tags = append(tags, p.etag(id))
		p.want(tags[0] != tags[1], "a completed run has the ETag it had while it waited")
		a := p.get(at(id), "If-None-Match", tags[0])
		p.want(a.status == 200, "a run that has changed since answered %s to its old ETag", a.brief())
	}),

	must("read.not-modified", "runs.md §Caching and encoding; headers.md", "If-None-Match with the ETag gives 304 without a body, with the version", func(p *probe) {
		id := p.over("completed")
		a := p.get(at(id), "If-None-Match", p.etag(id))
		p.want(a.status == 304, "If-None-Match with the host's own ETag gave %s", a.brief())
		p.want(len(a.body) == 0, "the 304 has a body of %d bytes", len(a.body))
		p.want(a.header.Get(versionHeader) != "", "the 304 names no version")
		b := p.get(at(id), "If-None-Match", `"conformance-no-such-tag"`)
		p.want(b.status == 200, "If-None-Match with a foreign ETag gave %s", b.brief())
	}),

	must("read.workflow", "runs.md §Validation and persistence", "getWorkflow shows the definition of a workflow that runs", func(p *probe) {
		wf := p.workflow(noop)
		a := p.ok(p.get("/workflows/"+segment(wf)), 200, "")
		p.want(a.str("id") == wf, "the definition is of %q", a.str("id"))
		p.refused(p.get("/workflows/conformance-no-such-workflow"), 404, "not_found")
	}),
}

// etag blocks checks that need one: sending it is a SHOULD of its own.
func (p *probe) etag(id string) string {
	tag := p.get(at(id)).header.Get("ETag")
	if tag == "" {
		p.inapplicable("the host sends no ETag with snapshots")
	}
	return tag
}

// list is the answer of listRuns.
type list struct {
	Runs       []json.RawMessage `json:"runs"`
	NextCursor string            `json:"nextCursor"`
}

func (p *probe) list(query string) (list, answer) {
	a := p.ok(p.get("/runs"+query), 200, "")
	var l list
	if err := json.Unmarshal(a.body, &l); err != nil {
		p.fail("%s: not a page of runs: %v", a.line(), err)
	}
	return l, a
}

func (l list) ids() []string {
	out := make([]string, len(l.Runs))
	for i, r := range l.Runs {
		out[i] = text(member(r, "runId"))
	}
	return out
}

// walk reads pages until it has seen the wanted runs, within a bound.
func (p *probe) walk(query string, wanted ...string) []string {
	var seen []string
	cursor := ""
	for range 200 {
		q := query
		if cursor != "" {
			q += "&cursor=" + cursor
		}
		l, _ := p.list("?" + q)
		seen = append(seen, l.ids()...)
		missing := slices.ContainsFunc(wanted, func(id string) bool { return !slices.Contains(seen, id) })
		if cursor = l.NextCursor; cursor == "" || !missing && len(wanted) > 0 {
			return seen
		}
	}
	return seen
}
