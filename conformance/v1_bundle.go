package conformance

import (
	"encoding/json"
	"slices"
)

const v1Bundle = "v1 debug-bundle.md"

// bundleStatuses is what a bundle may say of a run: fewer than a snapshot may.
var bundleStatuses = []string{"pending", "running", "waiting-approval", "waiting-clarification", "completed", "failed", "cancelled"}

var v1BundleChecks = []check{
	must("v1.bundle.shape", v1Bundle, "a bundle says of which host and run it is, how it was masked, and is kept nowhere", func(p *probe) {
		id := p.over("approved")
		a := p.ok(p.get(at(id)+"/debug-bundle"), 200, "")
		m := a.obj()
		p.want(a.str("bundleVersion") == "1.0", "bundleVersion is %s", m["bundleVersion"])
		p.moment(m["generatedAt"], "generatedAt")
		for name, v := range parts(m["host"]) {
			p.want(slices.Contains([]string{"name", "version", "vendor"}, name), "host has the member %q", name)
			p.want(text(v) != "", "host.%s is %s", name, v)
		}
		p.want(text(member(m["host"], "name")) != "" && text(member(m["host"], "version")) != "", "host is %s", m["host"])
		p.want(text(member(m["run"], "runId")) == id && text(member(m["run"], "workflowId")) != "" && text(member(m["run"], "status")) == "completed", "run is %.300s", m["run"])
		mode := text(m["redactionMode"])
		p.want(slices.Contains([]string{"mask", "omit", "hash", "passthrough"}, mode), "redactionMode is %q", mode)
		p.want(m["redactionApplied"] != nil && isTrue(m["redactionApplied"]) != (mode == "passthrough"), "redactionApplied is %s, the mode %q", m["redactionApplied"], mode)
		p.want(a.header.Get("Cache-Control") == "no-store", "Cache-Control is %q", a.header.Get("Cache-Control"))
	}).gated("debugBundle"),

	must("v1.bundle.events", v1Bundle, "a bundle holds the log, each event under its older names too, and counts what it holds", func(p *probe) {
		id := p.over("approved")
		m := p.ok(p.get(at(id)+"/debug-bundle"), 200, "").obj()
		var got []json.RawMessage
		decode(m["events"], &got)
		log := p.log(id)
		p.want(len(got) == len(log), "%d events, the run has %d", len(got), len(log))
		for i, doc := range got {
			e := parts(doc)
			p.want(whole(e["sequence"]) == log[i].Sequence && whole(e["seq"]) == log[i].Sequence && text(e["type"]) == log[i].Type, "event %d is %.200s", i, doc)
			p.want(!slices.Contains(youngerNames, text(e["type"])), "event %d is called %s", i, e["type"])
			p.want(len(e["data"]) > 0 && same(e["data"], e["payload"]), "event %d: data and payload differ: %.200s", i, doc)
		}
		if n, ok := parts(m["metrics"])["eventCount"]; ok {
			p.want(whole(n) == int64(len(got)), "metrics.eventCount is %s of %d", n, len(got))
		}
	}).gated("debugBundle"),

	must("v1.bundle.status", v1Bundle, "a bundle says of a run that waits for an answer that it waits for a clarification: its list of statuses is the older one", func(p *probe) {
		for r, want := range map[role][2]string{clarify: {"waiting-input", "waiting-clarification"}, external: {"waiting-external", "waiting-approval"}} {
			id, _ := p.waiting(r, want[0])
			got := text(member(p.ok(p.get(at(id)+"/debug-bundle"), 200, "").body, "run", "status"))
			p.want(got == want[1] && slices.Contains(bundleStatuses, got), "a run that is %s is %q in the bundle", want[0], got)
		}
	}).gated("debugBundle"),

	must("v1.bundle.secrecy", v1Bundle, "what was sent as an input that nobody declared, and the caller's credential, are not in a bundle", func(p *probe) {
		c := canary()
		id := p.start(noop, object{"inputs": object{"userField": c}})
		p.await(id, "completed")
		a := p.ok(p.get(at(id)+"/debug-bundle"), 200, "")
		p.want(!containsText(a.body, c), "the bundle repeats an input")
		p.want(p.s.cfg.APIKey == "" || !containsText(a.body, p.s.cfg.APIKey), "the bundle holds the credential")
	}).gated("debugBundle"),
}
