package fermata_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/fermata-run/fermata"
)

func TestWireStreamHeaders(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("gate"))
	id := s.run("gate")
	sub := s.subscribe(id, "", "Accept-Encoding", "gzip, br, zstd", "Accept", "text/event-stream")
	for name, want := range map[string]string{
		"Content-Type": "text/event-stream", "Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no",
		"Content-Encoding": "", "Content-Length": "", "OpenWOP-Version": "2.0",
	} {
		if got := sub.header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if f, ok := sub.next(); !ok || f.comment == "" {
		t.Errorf("the stream does not open with a comment: %+v", f)
	}
}

// ladder is a workflow of many steps.
func ladder(n int) map[string]any {
	var nodes, edges []any
	for i := range n {
		nodes = append(nodes, step(fmt.Sprint("n", i), "core.noop", nil))
		if i > 0 {
			edges = append(edges, edge(fmt.Sprint("n", i-1), fmt.Sprint("n", i)))
		}
	}
	nodes = append(nodes, step("ok", "core.approvalGate", map[string]any{"title": "?"}))
	for i := range n {
		nodes = append(nodes, step(fmt.Sprint("m", i), "core.noop", nil))
		from := "ok"
		if i > 0 {
			from = fmt.Sprint("m", i-1)
		}
		edges = append(edges, edge(from, fmt.Sprint("m", i)))
	}
	edges = append(edges, edge(fmt.Sprint("n", n-1), "ok"))
	return flow("ladder", nodes, edges)
}

// Subscribers who come at any moment, and drop and come back at every event, see
// each event once, in order, to the terminal one and not beyond it.
func TestWireStreamLive(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(ladder(15))
	id := s.run("ladder")
	var wg sync.WaitGroup
	total := make(chan int64, 64)
	for i := range 12 {
		wg.Go(func() {
			s, at := s.as(t), int64(-1)
			for {
				header := []string{}
				if at >= 0 {
					header = []string{"Last-Event-ID", strconv.FormatInt(at, 10)}
				}
				sub := s.subscribe(id, "?streamMode=debug", header...)
				for n := 0; i%3 == 0 || n < i; { // every third stays, the others leave after i events
					f, ok := sub.next()
					if !ok {
						total <- at
						return
					}
					if f.name == "" {
						continue
					}
					if e := validEvent(t, f.data); e.Sequence != at+1 || f.seq(t) != e.Sequence {
						t.Errorf("subscriber %d got %d (id %s) after %d", i, e.Sequence, f.id, at)
						return
					} else if at, n = e.Sequence, n+1; e.Type == "run.completed" {
						if f, ok := sub.next(); ok {
							t.Errorf("%q follows the terminal event", f.name)
						}
						total <- at
						return
					}
				}
				sub.close()
			}
		})
	}
	s.await(id, "waiting-approval")
	s.answer(id, "ok", map[string]any{"action": "accept"}).want(t, 200)
	wg.Wait()
	close(total)
	end := int64(len(s.docs(id)) - 1)
	n := 0
	for last := range total {
		if n++; last != end {
			t.Errorf("a stream ended at %d of %d", last, end)
		}
	}
	if n != 12 {
		t.Errorf("%d of 12 streams came to their end", n)
	}
}

// A batch does not keep anyone waiting for an event somebody must act on.
func TestWireBatchIsFlushedOnSuspension(t *testing.T) {
	t.Parallel()
	s, entered, release := holder(t)
	s.register(flow("hold-gate", []any{step("h", "test.hold", nil), step("ok", "core.approvalGate", map[string]any{"title": "?"})}, []any{edge("h", "ok")}))
	id := s.run("hold-gate")
	<-entered
	sub := s.subscribe(id, "?streamMode=debug&bufferMs=5000")
	release <- struct{}{}
	seen, batches := "", 0
	for seen != "node.suspended" && batches < 10 {
		f, ok := sub.next()
		if !ok {
			t.Fatal("the stream ended")
		}
		if f.name != "batch" {
			continue
		}
		batches++
		for _, e := range s.batch(f) {
			if seen = e.Type; seen == "node.suspended" {
				break
			}
		}
	}
	if seen != "node.suspended" {
		t.Error("no suspension")
	}
	s.do("POST", "/runs/"+seg(id)+"/cancel", nil).want(t, 200)
	frames := sub.frames() // a terminal event flushes and ends the stream
	last := s.batch(frames[len(frames)-1])
	if last[len(last)-1].Type != "run.cancelled" {
		t.Errorf("the last batch ends with %s", last[len(last)-1].Type)
	}
}

// A stopping host ends its streams in order.
func TestWireStopEndsStreams(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("gate"))
	id := s.run("gate")
	s.await(id, "waiting-approval")
	var subs []*subscription
	for _, query := range []string{"", "?streamMode=values", "?streamMode=debug&bufferMs=5000"} {
		subs = append(subs, s.subscribe(id, query))
	}
	host := s.host
	s.host = nil // the harness need not stop it again
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	if err := host.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	for _, sub := range subs {
		sub.frames() // fails if the stream breaks off
	}
	s.http.Close()
}

// Streams have a budget of their own: with all of them open, calls go through.
func TestWireStreamsDoNotTakeCalls(t *testing.T) {
	t.Parallel()
	s := start(t, withLimits(fermata.Limits{MaxStreams: 3, MaxCalls: 2}))
	s.register(gate("gate"))
	id := s.run("gate")
	s.await(id, "waiting-approval")
	subs := []*subscription{s.subscribe(id, ""), s.subscribe(id, ""), s.subscribe(id, "")}
	for _, path := range []string{"/events", "/events/poll"} {
		a := s.do("GET", "/runs/"+seg(id)+path, nil).refused(t, 429, "rate_limited")
		if a.header.Get("Retry-After") != "1" {
			t.Errorf("Retry-After %q", a.header.Get("Retry-After"))
		}
	}
	s.answer(id, "ok", map[string]any{"action": "accept"}).want(t, 200)
	for _, sub := range subs {
		frames := sub.frames()
		if frames[len(frames)-1].name != "run.completed" {
			t.Error("a stream ended early")
		}
	}
	deadline := time.Now().Add(hang)
	for s.do("GET", "/runs/"+seg(id)+"/events/poll", nil).status != 200 {
		if time.Now().After(deadline) {
			t.Fatal("the budget of streams was not given back")
		}
	}
}
