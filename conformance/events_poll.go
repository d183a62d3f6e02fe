package conformance

import (
	"fmt"
	"slices"
	"time"
)

const (
	pollCursor = "v2-poll-cursor-v2"
	pollRef    = "openwop.requirement.0171.poll-cursor-v2."
)

var pollChecks = []check{
	must("poll.shape", "events.md §Poll", "a poll answers with the closed shape, about the run that was asked for", func(p *probe) {
		for _, how := range every {
			g, a := p.poll(p.over(how), "?timeout=1")
			p.valid("poll-response", a.body, a.line())
			p.want(g.RunID == p.over(how), "the poll is about %q", g.RunID)
			p.want(len(g.Events) > 0, "the poll holds no events of a run that has ended")
		}
	}).floor(pollCursor, pollRef+"shape"),

	must("poll.from-first", "events.md §Poll", "without a cursor a poll begins at sequence 0", func(p *probe) {
		g, _ := p.poll(p.over("completed"), "?timeout=1")
		p.want(len(g.Events) > 0 && p.event(g.Events[0]).Sequence == 0, "the first of %d events is not number 0", len(g.Events))
	}).floor(pollCursor, pollRef+"from-first"),

	must("poll.every-position", "events.md §Poll", "afterSequence=N gives exactly what lies behind N, from each N", func(p *probe) {
		id := p.over("approved")
		last := len(p.log(id)) - 1
		for n := range last + 1 {
			g, _ := p.poll(id, fmt.Sprintf("?timeout=1&afterSequence=%d", n))
			var got []int64
			for _, doc := range g.Events {
				got = append(got, p.event(doc).Sequence)
			}
			p.want(slices.Equal(got, upTo(last)[n+1:]), "behind %d: %v", n, got)
			p.want(g.LastSequence == int64(last), "behind %d lastSequence is %d, the log ends at %d", n, g.LastSequence, last)
		}
	}).floor(pollCursor, pollRef+"after-sequence"),

	must("poll.past-end", "events.md §Poll", "a cursor past the end gives 200 with an empty array", func(p *probe) {
		id := p.over("completed")
		g, a := p.poll(id, "?timeout=1&afterSequence=100000")
		p.valid("poll-response", a.body, a.line())
		p.want(g.Events != nil && len(g.Events) == 0, "%d events came", len(g.Events))
		p.want(g.LastSequence == int64(len(p.log(id))-1), "lastSequence is %d", g.LastSequence)
	}).floor(pollCursor, pollRef+"past-end"),

	must("poll.terminal", "events.md §Poll", "isTerminal and status tell what the snapshot tells, and never before the last event is readable", func(p *probe) {
		for _, how := range every {
			id := p.over(how)
			g, _ := p.poll(id, "?timeout=1")
			p.want(g.IsTerminal, "the %s run is not called terminal", how)
			p.want(g.Status == p.snapshot(id).str("status"), "status is %s, the snapshot's %s", g.Status, p.snapshot(id).str("status"))
		}
		id, _ := p.waiting(approval, "waiting-approval")
		g, _ := p.poll(id, "?timeout=1")
		p.want(!g.IsTerminal && g.Status == "waiting-approval", "a run that waits: isTerminal %v, status %s", g.IsTerminal, g.Status)
	}),

	must("poll.never-early", "events.md §Poll", "a poller that stops at isTerminal has read the terminal event", func(p *probe) {
		id := p.start(chain)
		var got []event
		for after := int64(-1); ; {
			query := "?timeout=5"
			if after >= 0 {
				query += fmt.Sprintf("&afterSequence=%d", after)
			}
			g, _ := p.poll(id, query)
			for _, doc := range g.Events {
				got = append(got, p.event(doc))
			}
			if len(got) > 0 {
				after = got[len(got)-1].Sequence
			}
			if g.IsTerminal {
				break
			}
			p.want(p.ctx.Err() == nil, "the run was never called terminal")
		}
		p.want(len(got) > 0 && terminalType(got[len(got)-1].Type), "isTerminal, and the events read are %v", types(got))
	}),

	must("poll.waits", "events.md §Poll", "a poll behind the end of a run that goes on waits, and answers when something happens", func(p *probe) {
		id, node := p.waiting(approval, "waiting-approval")
		last := len(p.log(id)) - 1
		g, _ := p.poll(id, fmt.Sprintf("?timeout=1&afterSequence=%d", last))
		p.want(len(g.Events) == 0 && !g.IsTerminal, "nothing has happened, yet the poll has %d events, isTerminal %v", len(g.Events), g.IsTerminal)
		type outcome struct {
			a   answer
			err error
		}
		done := make(chan outcome, 1)
		go func() {
			a, err := p.send("GET", at(id)+fmt.Sprintf("/events/poll?timeout=20&afterSequence=%d", last), nil)
			done <- outcome{a, err}
		}()
		select {
		case o := <-done:
			p.fail("the poll did not wait: %s %v", o.a.brief(), o.err)
		case <-time.After(300 * time.Millisecond):
		}
		p.ok(p.resolve(id, node, accept), 200, "")
		select {
		case o := <-done:
			p.want(o.err == nil && o.a.status == 200, "the poll that waited answered %s %v", o.a.brief(), o.err)
			p.want(len(member(o.a.body, "events")) > 2, "the poll that waited came back empty")
		case <-time.After(15 * time.Second):
			p.fail("the poll still waits although the run went on")
		}
	}),

	must("poll.parameters", "events.md §Poll", "a cursor or a timeout out of range is a validation_error", func(p *probe) {
		id := p.over("completed")
		for _, q := range []string{"afterSequence=-1", "afterSequence=x", "afterSequence=1.5", "timeout=0", "timeout=61", "timeout=soon"} {
			p.refused(p.get(at(id)+"/events/poll?"+q), 400, "validation_error")
		}
	}),

	must("poll.no-old-cursor", "events.md §Poll", "lastSequence and since are no cursors", func(p *probe) {
		id := p.over("completed")
		for _, q := range []string{"lastSequence=1", "since=1"} {
			a := p.get(at(id) + "/events/poll?timeout=1&" + q)
			if a.status == 400 {
				continue // refused is not honoured either
			}
			g, _ := p.poll(id, "?timeout=1&"+q)
			p.want(len(g.Events) > 0 && p.event(g.Events[0]).Sequence == 0, "%s was taken for a cursor", q)
		}
	}),
}
