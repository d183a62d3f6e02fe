package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	lastEventID = "v2-sse-last-event-id"
	lastRef     = "openwop.requirement.0171.sse-last-event-id"
)

var streamChecks = []check{
	must("stream.complete", "events.md §SSE frames", "the debug stream of a run that has ended is its whole log, in order, and then the host closes", func(p *probe) {
		for _, how := range every {
			id := p.over(how)
			log, frames := p.log(id), p.frames(id, "?streamMode=debug")
			p.want(len(log) == len(frames), "the log of the %s run has %d events, the stream %d frames", how, len(log), len(frames))
			for i, f := range frames {
				p.want(f.seq() == log[i].Sequence, "frame %d has the id %q, the event the sequence %d", i, f.id, log[i].Sequence)
			}
		}
	}).floor(lastEventID, lastRef),

	must("stream.content-type", "events.md §SSE frames", "a stream is text/event-stream", func(p *probe) {
		s := p.subscribe(p.over("completed"), "")
		defer s.close()
		p.want(strings.HasPrefix(s.header.Get("Content-Type"), "text/event-stream"), "the stream came as %q", s.header.Get("Content-Type"))
	}),

	must("stream.frames", "events.md §SSE frames", "a frame's id is the sequence, its name the type, its data the event", func(p *probe) {
		for _, f := range p.frames(p.over("approved"), "?streamMode=debug") {
			p.valid("run-event", f.data, "frame "+f.id)
			e := p.event(f.data)
			p.want(f.id == fmt.Sprint(e.Sequence), "the frame of event %d has the id %q", e.Sequence, f.id)
			p.want(f.name == e.Type, "the frame of a %s is called %q", e.Type, f.name)
		}
	}),

	must("stream.same-bytes", "events.md §Payloads", "an event is the same, byte for byte, in the stream and in a poll", func(p *probe) {
		id := p.over("approved")
		log := p.log(id)
		for i, f := range p.frames(id, "?streamMode=debug") {
			p.want(i < len(log), "the stream has more than the log")
			p.want(string(compact(f.data)) == string(compact(log[i].doc)), "event %d: stream %s, poll %s", i, f.data, log[i].doc)
		}
	}),

	must("stream.default", "events.md §The events channel", "without streamMode a stream is in the mode updates", func(p *probe) {
		id := p.over("approved")
		bare, named := p.frames(id, ""), p.frames(id, "?streamMode=updates")
		p.want(slices.Equal(sequences(bare), sequences(named)), "without a mode: %v, with updates: %v", sequences(bare), sequences(named))
	}),

	must("stream.updates", "events.md §The events channel", "updates shows the transitions of the run and of its nodes, and nothing that is for debug", func(p *probe) {
		got := map[string]bool{}
		for _, f := range p.frames(p.over("approved"), "?streamMode=updates") {
			typ := p.event(f.data).Type
			got[typ] = true
			private := slices.Contains([]string{"log.appended", "variable.changed", "version.pinned", "node.retried"}, typ) || strings.HasPrefix(typ, "lease.")
			p.want(!private && !vendorType(typ), "updates shows a %s", typ)
		}
		for _, typ := range []string{"run.started", "run.completed", "node.completed", "node.suspended", "interrupt.requested", "interrupt.resolved"} {
			p.want(got[typ], "updates does not show the %s", typ)
		}
	}),

	should("stream.all-modes", "events.md §The events channel", "all four modes are served", func(p *probe) {
		id := p.over("completed")
		for _, mode := range []string{"updates", "values", "messages", "debug"} {
			s, a := p.streamAnswer(id, "?streamMode="+mode)
			p.want(s != nil, "the mode %s: %s", mode, a.brief())
			s.close()
		}
	}),

	must("stream.values", "events.md §The events channel", "values sends snapshots only, the last of them that of the ended run", func(p *probe) {
		p.serves("values")
		id := p.over("approved")
		frames := p.frames(id, "?streamMode=values")
		p.want(len(frames) > 0, "the stream is empty")
		for _, f := range frames {
			p.want(f.name == "state.snapshot", "a frame is called %q", f.name)
			p.valid("run-snapshot", f.data, "state.snapshot")
		}
		status := text(member(frames[len(frames)-1].data, "status"))
		p.want(status == "completed", "the last snapshot is %s", status)
		waited := slices.ContainsFunc(frames, func(f frame) bool { return text(member(f.data, "status")) == "waiting-approval" })
		p.want(waited, "no snapshot shows that the run waited")
	}),

	must("stream.mixed", "events.md §The events channel", "a mixed mode is the union in log order", func(p *probe) {
		id := p.over("approved")
		p.serves("debug")
		mixed, debug := sequences(p.frames(id, "?streamMode=updates,debug")), sequences(p.frames(id, "?streamMode=debug"))
		p.want(slices.IsSorted(mixed), "the frames are out of order: %v", mixed)
		p.want(slices.Equal(slices.Compact(mixed), debug), "updates,debug gives %v, debug alone %v", mixed, debug)
	}),

	must("stream.unsupported-mode", "events.md §The events channel", "a mode outside the pattern is unsupported_stream_mode, which lists the modes", func(p *probe) {
		id := p.over("completed")
		for _, mode := range []string{"bogus", "UPDATES", "values,updates", "updates,values", "updates,", ",updates", "updates%3Bdebug", "updates%20"} {
			s, a := p.streamAnswer(id, "?streamMode="+mode)
			if s != nil {
				s.close()
				p.fail("streamMode=%s was served", mode)
			}
			p.refused(a, 400, "unsupported_stream_mode")
			modes := p.modes(a)
			p.want(slices.Contains(modes, "updates"), "details.supported is %v", modes)
			for _, m := range modes {
				p.want(!strings.Contains(m, ","), "details.supported lists the combination %q", m)
			}
		}
	}),

	must("stream.validated-first", "events.md §The events channel", "the mode is looked at before what the client accepts", func(p *probe) {
		for _, accept := range []string{"text/event-stream", "application/json", "image/png", "*/*"} {
			_, a := p.streamAnswer(p.over("completed"), "?streamMode=bogus", "Accept", accept)
			p.refused(a, 400, "unsupported_stream_mode")
		}
	}),

	must("stream.live", "events.md §SSE frames", "a subscriber who was there first sees everything once, as it happens, to the end", func(p *probe) {
		id, node := p.waiting(approval, "waiting-approval")
		s := p.subscribe(id, "?streamMode=debug").until(15 * time.Second)
		defer s.close()
		var got []int64
		for {
			f, ok := s.next()
			p.want(ok, "the stream ended while the run waited")
			got = append(got, f.seq())
			if f.name == "node.suspended" {
				break
			}
		}
		p.ok(p.resolve(id, node, accept), 200, "")
		last := ""
		for {
			f, ok := s.next()
			if !ok {
				break
			}
			p.want(!terminalType(last), "a %s follows the end of the run", f.name)
			got, last = append(got, f.seq()), f.name
		}
		p.want(terminalType(last), "the stream ended with a %s", last)
		p.want(slices.Equal(got, upTo(len(got)-1)), "the frames have the ids %v", got)
		p.want(len(got) == len(p.log(id)), "the stream had %d frames, the log has %d events", len(got), len(p.log(id)))
	}),

	must("stream.many", "events.md §SSE frames", "ten subscribers of one run are all served", func(p *probe) {
		id := p.over("completed")
		for range 10 {
			s := p.subscribe(id, "?streamMode=debug")
			defer s.close()
		}
	}),

	must("stream.keepalive", "events.md §SSE frames", "a quiet stream sends a comment at least every 30 seconds", func(p *probe) {
		id, _ := p.waiting(approval, "waiting-approval")
		s := p.subscribe(id, "?streamMode=debug").until(34 * time.Second)
		for {
			f, ok := s.next()
			p.want(ok, "the stream ended while the run waited")
			if f.name == "node.suspended" {
				break
			}
		}
		p.want(s.comment(), "34 seconds went by without a comment")
	}).long(),
}

func upTo(last int) []int64 {
	out := make([]int64, 0, last+1)
	for i := range last + 1 {
		out = append(out, int64(i))
	}
	return out
}

// modes reads the modes a refusal lists.
func (p *probe) modes(a answer) []string {
	var out []string
	_ = json.Unmarshal(a.detail("supported"), &out)
	return out
}

// serves makes a check inapplicable if the host does not serve a mode, which it
// says when asked for one that does not exist.
func (p *probe) serves(mode string) {
	_, a := p.streamAnswer(p.over("completed"), "?streamMode=bogus")
	if !slices.Contains(p.modes(a), mode) {
		p.inapplicable("the host does not serve the mode %s", mode)
	}
}
