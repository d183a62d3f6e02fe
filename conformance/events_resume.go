package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

const (
	lastCursor = "v2-sse-last-event-id-cursor"
	cursorRef  = "openwop.requirement.0213.last-event-id-exclusive-cursor"
)

var resumeChecks = []check{
	must("resume.every-position", "events.md §SSE frames", "Last-Event-ID goes on at the next sequence, from each position, in each mode of events", func(p *probe) {
		id := p.over("approved")
		for _, mode := range []string{"debug", "updates", "updates,debug"} {
			full := sequences(p.frames(id, "?streamMode="+mode))
			for _, from := range upTo(len(p.log(id)) - 1) {
				got := sequences(p.frames(id, "?streamMode="+mode, "Last-Event-ID", fmt.Sprint(from)))
				want := slices.DeleteFunc(slices.Clone(full), func(n int64) bool { return n <= from })
				p.want(slices.Equal(got, want), "%s behind %d: %v, want %v", mode, from, got, want)
			}
		}
	}).floor(lastEventID, lastRef),

	must("resume.at-end", "events.md §SSE frames", "behind the last event there is nothing, and the host closes", func(p *probe) {
		id := p.over("completed")
		got := p.frames(id, "?streamMode=debug", "Last-Event-ID", fmt.Sprint(len(p.log(id))-1))
		p.want(len(got) == 0, "%d frames came behind the last one", len(got))
	}).floor(lastEventID, lastRef),

	must("resume.values", "events.md §SSE frames", "in the mode values a resumed stream begins with a state.snapshot", func(p *probe) {
		p.serves("values")
		got := p.frames(p.over("approved"), "?streamMode=values", "Last-Event-ID", "1")
		p.want(len(got) > 0 && got[0].name == "state.snapshot", "%d frames, not a state.snapshot first", len(got))
	}).floor(lastEventID, lastRef),

	must("resume.past-end", "events.md §SSE frames", "a Last-Event-ID behind the log is a cursor like any other: nothing comes, and the host closes", func(p *probe) {
		id := p.over("completed")
		s, a := p.streamAnswer(id, "?streamMode=debug", "Last-Event-ID", fmt.Sprint(len(p.log(id))+1000))
		p.want(s != nil, "the cursor was refused: %s", a.brief())
		got := s.until(10 * time.Second).rest()
		p.want(len(got) == 0, "%d frames came", len(got))
	}).floor(lastCursor, cursorRef),

	must("resume.past-end-live", "events.md §SSE frames", "on a run that goes on, such a cursor is served too", func(p *probe) {
		id, _ := p.waiting(approval, "waiting-approval")
		s, a := p.streamAnswer(id, "?streamMode=debug", "Last-Event-ID", "100000")
		p.want(s != nil, "the cursor was refused: %s", a.brief())
		s.close()
	}).floor(lastCursor, cursorRef),

	should("resume.malformed", "events.md §SSE frames", "a Last-Event-ID that is no sequence is a validation_error", func(p *probe) {
		for _, v := range []string{"abc", "-1", "1.5", "0x1"} {
			s, a := p.streamAnswer(p.over("completed"), "?streamMode=debug", "Last-Event-ID", v)
			if s != nil {
				s.close()
				p.fail("Last-Event-ID: %s was served", v)
			}
			p.refused(a, 400, "validation_error")
		}
	}).floor(lastCursor, "openwop.requirement.0213.last-event-id-malformed"),

	must("resume.after-authorization", "events.md §SSE frames", "for a run the caller cannot read, the cursor changes nothing", func(p *probe) {
		runs := []string{p.unknownRun(), foreignRun}
		if p.s.cfg.OtherAPIKey != "" {
			runs = append(runs, p.otherRun())
		}
		for _, id := range runs {
			_, bare := p.streamAnswer(id, "?streamMode=debug")
			p.want(bare.status != 200, "a run that cannot be read is streamed")
			for _, cursor := range []string{"0", "100000", "abc"} {
				_, a := p.streamAnswer(id, "?streamMode=debug", "Last-Event-ID", cursor)
				p.want(a.status == bare.status && a.code() == bare.code(), "without a cursor %s, with %s %s", bare.brief(), cursor, a.brief())
			}
		}
	}).floor(lastCursor, "openwop.requirement.0213.last-event-id-after-authorization"),
}

var batchChecks = []check{
	must("batch.frames", "events.md §SSE frames", "with bufferMs events come as batches, none lost, and a batch goes out with the end of the run", func(p *probe) {
		id := p.over("approved")
		var got []int64
		for _, f := range p.frames(id, "?streamMode=debug&bufferMs=5000") {
			for _, e := range p.batch(f) {
				got = append(got, e.Sequence)
			}
		}
		p.want(slices.Equal(got, upTo(len(p.log(id))-1)), "the batches hold the events %v", got)
	}),

	should("batch.id", "events.md §SSE frames", "a batch's id is its highest sequence", func(p *probe) {
		for _, f := range p.frames(p.over("approved"), "?streamMode=debug&bufferMs=1000") {
			events := p.batch(f)
			p.want(len(events) > 0 && f.seq() == events[len(events)-1].Sequence, "a batch of %d events has the id %q", len(events), f.id)
		}
	}),

	must("batch.resume", "events.md §SSE frames", "the id of a batch can be resumed from", func(p *probe) {
		id := p.over("approved")
		frames := p.frames(id, "?streamMode=debug&bufferMs=1000")
		p.want(len(frames) > 0, "the stream is empty")
		f := frames[0]
		events := p.batch(f)
		if f.id == "" || len(events) == 0 {
			p.blocked("the batch has no id to resume from")
		}
		got := sequences(p.frames(id, "?streamMode=debug", "Last-Event-ID", f.id))
		want := upTo(len(p.log(id)) - 1)[events[len(events)-1].Sequence+1:]
		p.want(slices.Equal(got, want), "behind the batch %s: %v, want %v", f.id, got, want)
	}),

	must("batch.suspended", "events.md §SSE frames", "a batch goes out with a node.suspended, and does not wait for the buffer", func(p *probe) {
		wf := p.workflow(approval)
		id := p.startOf(wf)
		// The guard is shorter than the buffer: what comes within it was flushed.
		s := p.subscribe(id, "?streamMode=debug&bufferMs=5000").until(4500 * time.Millisecond)
		defer s.close()
		for {
			f, ok := s.next()
			p.want(ok, "the stream ended while the run waited")
			for _, e := range p.batch(f) {
				if e.Type == "node.suspended" {
					return
				}
			}
		}
	}),

	should("batch.range", "events.md §SSE frames", "a bufferMs outside 0 to 5000 is a validation_error", func(p *probe) {
		for _, v := range []string{"-1", "5001", "soon"} {
			_, a := p.streamAnswer(p.over("completed"), "?bufferMs="+v)
			p.refused(a, 400, "validation_error")
		}
	}),
}

// batch reads the events of a frame; one that came by itself is a batch of one.
func (p *probe) batch(f frame) []event {
	if f.name != "batch" {
		return []event{p.event(f.data)}
	}
	var docs []json.RawMessage
	if err := json.Unmarshal(f.data, &docs); err != nil {
		p.fail("a batch is no array: %.100s", f.data)
	}
	out := make([]event, len(docs))
	for i, d := range docs {
		out[i] = p.event(d)
	}
	return out
}
