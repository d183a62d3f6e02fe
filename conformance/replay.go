package conformance

import (
	"encoding/json"
	"slices"
)

const (
	seamManifest = "v2-effect-seam-manifest"
	manifestRef  = "openwop.requirement.0173.effect-seam-manifest"
	manifestPath = "/host/effect-seams"
)

var replayChecks = []check{
	must("replay.facet", "replay.md §The surface", "the replay facet names its modes and the one address of the manifest", func(p *probe) {
		var path string
		p.s.facet(&path, "replay", "effectSeamsManifest")
		p.want(path == manifestPath, "replay.effectSeamsManifest is %q", path)
		m := p.forkModes()
		p.want(len(m) > 0, "replay.modes is empty")
		for _, x := range m {
			p.want(x == "replay" || x == "branch", "replay.modes lists %q", x)
		}
	}).gated("replay").floor(seamManifest, manifestRef+".facet"),

	must("replay.manifest", "replay.md §The effect-seam manifest", "every seam is listed, of a known kind, guarded, and by what", func(p *probe) {
		a := p.ok(p.get(manifestPath), 200, "")
		p.want(a.str("manifestVersion") == "1", "manifestVersion is %s", a.obj()["manifestVersion"])
		rows := p.seams()
		p.want(len(rows) > 0, "the manifest lists nothing")
		kinds := []string{"http", "smtp", "queue", "storage", "provider-sdk", "webhook-fanout", "other"}
		for _, r := range rows {
			p.want(r.Seam != "" && r.Guarded && r.GuardedBy != "", "the seam %q: guarded %v by %q", r.Seam, r.Guarded, r.GuardedBy)
			p.want(slices.Contains(kinds, r.Kind), "the seam %s is of the kind %q", r.Seam, r.Kind)
			p.want(r.Kind != "other" || r.Note != "", "the seam %s is of another kind, and no note says which", r.Seam)
			p.want(!r.BranchReFires || slices.Contains(p.forkModes(), "branch"), "the seam %s speaks of a mode the host does not offer", r.Seam)
		}
	}).gated("replay").floor(seamManifest, manifestRef),

	must("fork.replay", "runs.md §Fork; replay.md §Modes", "a replay of a completed run makes a new run with a log of its own that ends the same", func(p *probe) {
		p.offers("replay")
		src := p.over("completed") // nothing was asked in it: a replay does not ask again
		before := p.log(src)
		a := p.ok(p.fork(src, object{"mode": "replay"}), 201, "fork-response")
		id := a.str("runId")
		p.want(id != src && a.str("sourceRunId") == src && a.str("mode") == "replay", "the answer is %s", a.body)
		p.becomes(id, "completed")
		forked := p.log(id)
		p.want(slices.Equal(kept(types(forked)), kept(types(before))), "the source: %v, its replay: %v", types(before), types(forked))
		for _, e := range forked {
			p.want(e.RunID == id, "the fork's log holds an event of %s", e.RunID)
		}
		after := p.log(src)
		p.want(len(after) == len(before), "the source's log has changed")
	}).gated("replay"),

	must("fork.owner", "identity.md §1.3", "a fork has the owner of its source, verbatim", func(p *probe) {
		p.offers("replay")
		src := p.over("completed")
		id := p.ok(p.fork(src, object{"mode": "replay"}), 201, "").str("runId")
		want, got := p.snapshot(src).obj()["owner"], p.snapshot(id).obj()["owner"]
		p.want(same(want, got), "the source is owned by %s, the fork by %s", want, got)
	}).gated("replay"),

	must("fork.prefix", "replay.md §Byte-equivalence of the prefix", "what lies before fromSeq is the source's, type and payload, at the same sequence", func(p *probe) {
		for _, mode := range p.forkModes() {
			src := p.over("approved")
			log := p.log(src)
			from := len(log) - 2
			id := p.ok(p.fork(src, object{"mode": mode, "fromSeq": from}), 201, "fork-response").str("runId")
			p.ended(id)
			forked := p.log(id)
			p.want(len(forked) >= from, "the fork has %d events, the prefix %d", len(forked), from)
			for i := range from {
				same := forked[i].Type == log[i].Type && forked[i].NodeID == log[i].NodeID && forked[i].Sequence == log[i].Sequence
				p.want(same, "event %d: the source has %s of %q, the %s %s of %q", i, log[i].Type, log[i].NodeID, mode, forked[i].Type, forked[i].NodeID)
			}
		}
	}).gated("replay"),

	must("fork.interrupt-answered", "replay.md §Determinism caveats", "a replay is not asked again what its source was asked", func(p *probe) {
		p.offers("replay")
		id := p.ok(p.fork(p.over("approved"), object{"mode": "replay"}), 201, "").str("runId")
		p.becomes(id, "completed")
	}).gated("replay"),

	must("fork.refusals", "runs.md §Fork; replay.md §The surface", "what cannot be forked is refused, each with its code", func(p *probe) {
		src := p.over("completed")
		p.refused(p.fork(src, object{"mode": "branch"}), 400, "validation_error")
		p.refused(p.fork(src, object{"mode": "again"}), 400, "validation_error")
		p.refused(p.fork(src, object{}), 400, "validation_error")
		p.refused(p.fork(src, object{"mode": "replay", "fromSeq": -1}), 400, "validation_error")
		p.refused(p.fork(src, object{"mode": "replay", "fromSeq": 0.5}), 400, "validation_error")
		p.refused(p.fork(src, object{"mode": "replay", "fromSeq": 100_000}), 422, "fork_point_invalid")
		p.refused(p.fork(src, object{"mode": "replay", "runOptionsOverlay": object{"tags": []string{"x"}}}), 400)
		p.refused(p.fork(src, object{"mode": "replay", "unknown": 1}), 400, "validation_error")
		p.refused(p.fork(foreignRun, object{"mode": "replay"}), 403, "id_tenant_mismatch")
		p.refused(p.fork(p.unknownRun(), object{"mode": "replay"}), 404, "not_found")
	}).gated("replay"),

	must("fork.branch-overlay", "replay.md §Modes", "a branch takes the options it is given", func(p *probe) {
		p.offers("branch")
		a := p.ok(p.fork(p.over("completed"), object{"mode": "branch", "fromSeq": 1, "runOptionsOverlay": object{"tags": []string{"branched"}}}), 201, "fork-response")
		tags := p.snapshot(a.str("runId")).obj()["tags"]
		p.want(same(tags, []byte(`["branched"]`)), "the branch has the tags %s", tags)
	}).gated("replay"),
}

// seam is a row of the effect-seam manifest.
type seam struct {
	Seam, Kind, GuardedBy, Note string
	Guarded, BranchReFires      bool
}

func (p *probe) seams() []seam {
	var rows []seam
	a := p.get(manifestPath)
	if json.Unmarshal(a.obj()["seams"], &rows) != nil {
		p.fail("%s answered %s without seams", a.line(), a.brief())
	}
	return rows
}

func (p *probe) forkModes() []string {
	var m []string
	p.s.facet(&m, "replay", "modes")
	return m
}

func (p *probe) offers(mode string) {
	if !slices.Contains(p.forkModes(), mode) {
		p.inapplicable("replay.modes does not offer %s", mode)
	}
}

func (p *probe) fork(id string, body object) answer { return p.owned(p.post(at(id)+":fork", body)) }

// kept leaves out what a replay is free to say or not to say.
func kept(types []string) []string {
	return slices.DeleteFunc(slices.Clone(types), func(t string) bool {
		return t == "log.appended" || t == "version.pinned" || t == "replay.diverged"
	})
}

var diffChecks = []check{
	must("diff.served-or-absent", "runs.md §Surface", "a diff is served, or it is not there: 404", func(p *probe) {
		id := p.over("completed")
		a := p.get(at(id) + ":diff?against=" + segment(id))
		p.want(a.status == 200 || a.status == 404, "%s answered %s", a.line(), a.brief())
	}),

	must("diff.identical", "runs.md §Diff and ancestry", "a run does not differ from itself", func(p *probe) {
		id := p.over("completed")
		a := p.diff(id, id)
		p.want(string(a.obj()["divergedAtSeq"]) == "null", "divergedAtSeq is %s", a.obj()["divergedAtSeq"])
		p.want(string(compact(a.obj()["eventDiffs"])) == "[]", "eventDiffs is %.200s", a.obj()["eventDiffs"])
	}),

	must("diff.pure", "runs.md §Diff and ancestry", "two runs of one workflow with one outcome do not differ", func(p *probe) {
		other := p.start(chain)
		p.await(other, "completed")
		a := p.diff(p.over("completed"), other)
		p.want(string(a.obj()["divergedAtSeq"]) == "null", "divergedAtSeq is %s: %.300s", a.obj()["divergedAtSeq"], a.body)
	}),

	must("diff.different", "runs.md §Diff and ancestry", "two different runs differ, and the diff says where", func(p *probe) {
		a := p.diff(p.over("completed"), p.over("failed"))
		p.want(string(a.obj()["divergedAtSeq"]) != "null", "a completed and a failed run do not differ")
	}),

	must("diff.truncated", "runs.md §Diff and ancestry", "a diff with a run that goes on is marked as truncated", func(p *probe) {
		id, _ := p.waiting(approval, "waiting-approval")
		p.want(string(p.diff(id, p.over("approved")).obj()["truncated"]) == "true", "the diff with a run that waits is not truncated")
	}),

	must("diff.foreign", "runs.md §Diff and ancestry", "a diff against a run the caller may not read is refused", func(p *probe) {
		id := p.over("completed")
		p.diff(id, id)
		p.refused(p.get(at(id)+":diff?against="+segment(foreignRun)), 403)
	}),
}

// diff asks for a diff; the operation is optional.
func (p *probe) diff(id, against string) answer {
	self := p.get(at(id) + ":diff?against=" + segment(id))
	if self.status != 200 {
		p.inapplicable("the host does not serve diffs, which are optional: %s", self.brief())
	}
	return p.ok(p.get(at(id)+":diff?against="+segment(against)), 200, "")
}
