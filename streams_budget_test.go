package fermata_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/fermata-run/fermata"
)

// open has n streams on one run, each at the events there are so far.
func open(t *testing.T, s *server, id string, n int) []*tap {
	t.Helper()
	client := crowd(t)
	taps := make([]*tap, n)
	for i := range taps {
		taps[i] = &tap{}
		if err := taps[i].open(client, s, id); err != nil {
			t.Fatalf("stream %d: %v", i, err)
		}
		t.Cleanup(func() { taps[i].body.Close() })
	}
	return taps
}

func ends(t *testing.T, taps []*tap, how func(*tap) error) {
	t.Helper()
	errs := make(chan error, len(taps))
	for _, p := range taps {
		go func() { errs <- how(p) }()
	}
	for range taps {
		select {
		case err := <-errs:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(hang):
			t.Fatal("a stream does not end")
		}
	}
}

func TestIdleStreamsDoNotUseUpCalls(t *testing.T) {
	n := long(1000, 5000)
	needFiles(t, uint64(2*n+500))
	s := start(t, withLimits(fermata.Limits{MaxCalls: 2}))
	s.register(gate("gated"))
	id := s.run("gated")
	taps := open(t, s, id, n)
	s.answer(id, "ok", map[string]any{"action": "accept"}).want(t, 200)
	s.await(id, "completed")
	ends(t, taps, (*tap).toEnd)
}

func TestStreamPastTheBudgetIsRefused(t *testing.T) {
	s := start(t, withLimits(fermata.Limits{MaxStreams: 3}))
	s.register(gate("gated"))
	id := s.run("gated")
	taps := open(t, s, id, 3)
	a := s.do("GET", "/runs/"+seg(id)+"/events", nil).refused(t, 429, "rate_limited")
	if a.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	s.snapshot(id) // calls go through
	taps[0].body.Close()
	var late tap
	for tries := 0; ; tries++ { // the host notices in its own time
		err := late.open(crowd(t), s, id)
		if err == nil {
			break
		}
		if tries == 2000 {
			t.Fatalf("a stream that was closed still counts: %v", err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	s.answer(id, "ok", map[string]any{"action": "accept"}).want(t, 200)
	ends(t, append(taps[1:], &late), (*tap).toEnd)
}

func TestStopEndsOpenStreams(t *testing.T) {
	s := start(t)
	s.register(gate("gated"))
	id := s.run("gated")
	taps := open(t, s, id, 50)
	wanted := int64(len(s.events(id)))
	for _, p := range taps { // until each waits for what comes
		for p.next < wanted {
			if err := p.step(); err != nil {
				t.Fatal(err)
			}
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	if err := s.host.Stop(ctx); err != nil || ctx.Err() != nil {
		t.Fatalf("the host did not stop: %v", err)
	}
	ends(t, taps, func(p *tap) error {
		for {
			if err := p.step(); err != nil {
				return unless(err, io.EOF)
			}
		}
	})
	s.http.Close()
	s.host = nil
	s.up()
	client := crowd(t)
	for _, p := range taps {
		if p.next != wanted {
			t.Fatalf("a stream ended behind event %d of %d", p.next-1, wanted)
		}
		if err := p.open(client, s, id); err != nil {
			t.Fatal(err)
		}
	}
	s.answer(id, "ok", map[string]any{"action": "accept"}).want(t, 200)
	ends(t, taps, (*tap).toEnd)
}

func unless(err, ignored error) error {
	if errors.Is(err, ignored) {
		return nil
	}
	return err
}
