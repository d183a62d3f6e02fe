package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

const v1Stream = "v1 stream-modes.md"

// v1Updates are the types of the updates mode among those the suite's runs have.
func v1Updates(typ string) bool {
	for _, family := range []string{"approval.", "clarification.", "interrupt."} {
		if strings.HasPrefix(typ, family) {
			return true
		}
	}
	return slices.Contains(strings.Fields(`run.started run.completed run.failed run.cancelled run.paused run.resumed
		node.completed node.failed node.skipped node.cancelled node.suspended node.dispatched artifact.created`), typ)
}

// never are types that the updates mode does not show.
var never = []string{"node.started", "node.retried", "variable.changed", "version.pinned", "log.appended"}

// framed wants frames that are these events: numbered, named and whole.
func (p *probe) framed(fs []frame, log []event, what string) {
	p.want(len(fs) == len(log), "%s: %d frames, want %d: %v", what, len(fs), len(log), types(log))
	for i, f := range fs {
		p.want(f.seq() == log[i].Sequence && f.name == log[i].Type, "%s: frame %d is %q %q, the event %d %s", what, i, f.id, f.name, log[i].Sequence, log[i].Type)
		p.want(same(f.data, log[i].doc), "%s: frame %d holds another event than a poll: %.200s", what, i, f.data)
	}
}

func only(log []event, keep func(string) bool) []event {
	return slices.DeleteFunc(slices.Clone(log), func(e event) bool { return !keep(e.Type) })
}

var v1StreamChecks = []check{
	must("v1.stream.updates", v1Stream, "the default mode is updates: what changes the run, ends a node or asks somebody, in frames named by the type", func(p *probe) {
		for _, how := range []string{"approved", "failed", "cancelled"} {
			id := p.over(how)
			want := only(p.log(id), v1Updates)
			p.framed(p.frames(id, ""), want, "no mode")
			p.framed(p.frames(id, "?streamMode=updates"), want, "updates")
		}
	}),

	must("v1.stream.no-starts", v1Stream, "updates has no node.started, node.retried, variable.changed", func(p *probe) {
		for _, f := range p.frames(p.over("approved"), "?streamMode=updates") {
			p.want(!slices.Contains(never, f.name), "updates has a frame %s", f.name)
		}
	}),

	must("v1.stream.debug", v1Stream, "debug is every event", func(p *probe) {
		id := p.over("approved")
		p.framed(p.frames(id, "?streamMode=debug"), p.log(id), "debug")
	}),

	must("v1.stream.values", v1Stream, "values is snapshots alone, the last one as the run is; whoever comes back gets one first", func(p *probe) {
		id := p.over("completed")
		now := p.snapshot(id)
		for _, after := range []string{"", "1"} {
			fs := p.frames(id, "?streamMode=values", "Last-Event-ID", after)
			p.want(len(fs) > 0, "there is no frame")
			for _, f := range fs {
				p.want(f.name == "state.snapshot" && text(member(f.data, "runId")) == id, "a frame %q: %.200s", f.name, f.data)
			}
			p.want(text(member(fs[len(fs)-1].data, "status")) == now.str("status"), "the last snapshot says %s", member(fs[len(fs)-1].data, "status"))
		}
		end := p.log(id)
		fs := p.frames(id, "?streamMode=values", "Last-Event-ID", fmt.Sprint(end[len(end)-1].Sequence))
		p.want(len(fs) == 1 && fs[0].name == "state.snapshot", "whoever comes back at the end gets %d frames", len(fs))
	}),

	must("v1.stream.messages", v1Stream, "messages is ai.message.chunk alone", func(p *probe) {
		id := p.over("approved")
		n := count(p.log(id), "output.chunk")
		fs := p.frames(id, "?streamMode=messages")
		p.want(len(fs) == n, "%d frames for %d chunks", len(fs), n)
		for _, f := range fs {
			p.want(f.name == "ai.message.chunk", "a frame %q", f.name)
		}
	}),

	must("v1.stream.union", v1Stream, "a list of modes shows what any of them does, named by the type and not by the mode", func(p *probe) {
		id := p.over("approved")
		log := p.log(id)
		p.framed(p.frames(id, "?streamMode=updates,messages"), only(log, v1Updates), "updates,messages")
		p.framed(p.frames(id, "?streamMode=updates,debug"), log, "updates,debug")
	}),

	must("v1.stream.unsupported", v1Stream, "an unknown mode, or values beside another, is 400 unsupported_stream_mode with those there are, whatever is accepted", func(p *probe) {
		id := p.over("completed")
		for _, accept := range []string{"text/event-stream", "application/json"} {
			for _, mode := range []string{"conformance", "values,updates", "updates,conformance"} {
				a := p.refuses(p.get(at(id)+"/events?streamMode="+mode, "Accept", accept), []int{400}, "unsupported_stream_mode")
				p.want(slices.Contains(stringsOf(a.detail("supported")), "updates"), "details.supported is %s", a.detail("supported"))
			}
		}
	}),

	must("v1.stream.batches", v1Stream, "with bufferMs events come in batches, whose id is the highest sequence in them", func(p *probe) {
		id := p.over("approved")
		log := p.log(id)
		for _, ms := range []string{"1", "5000"} {
			var docs []json.RawMessage
			for _, f := range p.frames(id, "?streamMode=debug&bufferMs="+ms) {
				var batch []json.RawMessage
				p.want(f.name == "batch" && json.Unmarshal(f.data, &batch) == nil && len(batch) > 0, "a frame %q: %.200s", f.name, f.data)
				docs = append(docs, batch...)
				p.want(f.seq() == p.event(batch[len(batch)-1]).Sequence, "a batch up to %d has the id %s", p.event(batch[len(batch)-1]).Sequence, f.id)
			}
			p.want(len(docs) == len(log), "bufferMs=%s: %d events, want %d", ms, len(docs), len(log))
			for i, d := range docs {
				p.want(same(d, log[i].doc), "event %d of the batches is %.200s", i, d)
			}
		}
	}),

	must("v1.stream.buffer-range", v1Stream, "a bufferMs outside 0 to 5000 is 400 validation_error, and not cut to fit", func(p *probe) {
		for _, ms := range []string{"5001", "99999", "-1", "x"} {
			p.refuses(p.get(at(p.over("completed"))+"/events?bufferMs="+ms, "Accept", "text/event-stream"), []int{400}, "validation_error")
		}
	}),

	must("v1.stream.resume", v1Stream, "a stream goes on behind Last-Event-ID, and repeats nothing", func(p *probe) {
		id := p.over("approved")
		log := p.log(id)
		for _, after := range []int{0, 2, len(log) - 2, len(log) - 1} {
			p.framed(p.frames(id, "?streamMode=debug", "Last-Event-ID", fmt.Sprint(after)), log[after+1:], fmt.Sprint("behind ", after))
		}
	}),

	must("v1.stream.live", v1Stream, "a stream of an open run shows what there is, then what happens, and ends with the run", func(p *probe) {
		id, node := p.waiting(approval, "waiting-approval")
		s := p.subscribe(id, "")
		defer s.close()
		first, ok := s.next()
		p.want(ok && first.name == "run.started" && first.seq() == 0, "the first frame is %q %q", first.id, first.name)
		p.ok(p.resolve(id, node, accept), 200, "")
		fs := s.rest()
		p.want(len(fs) > 0 && fs[len(fs)-1].name == "run.completed", "the stream of a run that completed ends with %v", len(fs))
	}),

	must("v1.stream.as-json", v1Stream, "whoever accepts JSON is answered at once, with the events and whether they are all", func(p *probe) {
		open, _ := p.waiting(approval, "waiting-approval")
		for id, over := range map[string]bool{p.over("completed"): true, open: false} {
			a := p.ok(p.get(at(id)+"/events", "Accept", "application/json"), 200, "")
			var g struct {
				Events     []json.RawMessage
				IsComplete *bool
			}
			p.want(json.Unmarshal(a.body, &g) == nil && g.IsComplete != nil && *g.IsComplete == over, "the run has ended: %v; the answer is %.200s", over, a.body)
			log := p.log(id)
			p.want(len(g.Events) == len(log), "%d events, want %d", len(g.Events), len(log))
		}
	}),
}
