package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestStreamResumesAtEveryPosition(t *testing.T) {
	const n = 12
	for _, abrupt := range []bool{true, false} {
		for _, torn := range []bool{false, true} {
			for start := -1; start < n-1; start++ {
				t.Run(fmt.Sprintf("abrupt=%v,torn=%v,after=%d", abrupt, torn, start), func(t *testing.T) {
					s := &logServer{types: aLog(n), torn: torn, cut: func(int, int) (bool, bool) { return true, abrupt }}
					c, _ := dial(t, s)
					o := StreamOptions{Mode: "debug"}
					if start >= 0 {
						o.After = new(int64(start))
					}
					got, err := collect(t, c, o)
					if err != nil {
						t.Fatal(err)
					}
					if want := sequences(start+1, n-1); !slices.Equal(got, want) {
						t.Errorf("got %v, want %v", got, want)
					}
					for i, r := range s.heads {
						if r.URL.RawQuery != "streamMode=debug" {
							t.Errorf("connection %d has the query %q", i, r.URL.RawQuery)
						}
						want := ""
						if at := start + i; at >= 0 {
							want = fmt.Sprint(at)
						}
						if v := r.Header.Get("Last-Event-ID"); v != want {
							t.Errorf("connection %d resumes behind %q, want %q", i, v, want)
						}
					}
				})
			}
		}
	}
}

func TestStreamTakesBatchesApart(t *testing.T) {
	s := &logServer{types: aLog(11), batch: true, cut: func(_, frames int) (bool, bool) { return frames == 2, true }}
	c, _ := dial(t, s)
	got, err := collect(t, c, StreamOptions{Buffer: 250 * time.Millisecond})
	if err != nil || !slices.Equal(got, sequences(0, 10)) {
		t.Errorf("got %v, %v", got, err)
	}
	if q := s.heads[0].URL.RawQuery; q != "bufferMs=250" {
		t.Errorf("query %q", q)
	}
}

// A host that repeats itself, as one behind a careless proxy might, is listened
// to once.
func TestStreamDeliversNothingTwice(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, seq := range []int{0, 1, 1, 0, 2} {
			fmt.Fprintf(w, "id: %d\r\nevent: x\r\ndata: %s\r\n\r\n", seq, doc(seq, "node.completed"))
		}
		fmt.Fprintf(w, "event: batch\nid: 3\ndata: [%s,%s]\n\n", doc(2, "node.completed"), doc(3, "run.failed"))
	})
	c, _ := dial(t, h)
	got, err := collect(t, c, StreamOptions{})
	if err != nil || !slices.Equal(got, sequences(0, 3)) {
		t.Errorf("got %v, %v", got, err)
	}
}

// Modes that do not show how a run ends still end: once the run is known to be
// over, one more connection shows whatever was left.
func TestStreamEndsWithoutATerminalEvent(t *testing.T) {
	s := &logServer{types: aLog(6), only: func(typ string) bool { return typ == "run.started" }}
	c, _ := dial(t, s)
	got, err := collect(t, c, StreamOptions{Mode: "messages"})
	if err != nil || !slices.Equal(got, []int64{0}) {
		t.Errorf("got %v, %v", got, err)
	}
	if s.conns != 2 {
		t.Errorf("%d connections, want 2", s.conns)
	}
}

func TestStreamBehindTheEndIsEmpty(t *testing.T) {
	c, _ := dial(t, &logServer{types: aLog(6)})
	got, err := collect(t, c, StreamOptions{After: new(int64(5))})
	if err != nil || len(got) != 0 {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestStreamOfMessages(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "id: 3\nevent: ai.message.chunk\ndata: {\"nodeId\":\"a\",\"chunk\":\"hi\",\"meta\":{\"n\":1e400}}\n\n")
		fmt.Fprint(w, "id: 4\nevent: messages\ndata: {\"nodeId\":\"b\",\"chunk\":\"ho\"}\n\n")
		fmt.Fprintf(w, "id: 5\nevent: messages\ndata: %s\n\n", doc(5, "output.chunk"))
		fmt.Fprintf(w, "id: 6\nevent: updates\ndata: %s\n\n", doc(6, "run.cancelled"))
	})
	c, _ := dial(t, h)
	var got []string
	for ev, err := range c.Stream(t.Context(), testRun, StreamOptions{Mode: "updates,messages"}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%d %s %s %s", ev.Sequence, ev.Type, ev.NodeID, ev.RunID))
		if ev.Sequence == 3 && !strings.Contains(string(ev.Payload), "1e400") {
			t.Errorf("the payload was changed: %s", ev.Payload)
		}
	}
	want := []string{"3 output.chunk a " + testRun, "4 output.chunk b " + testRun, "5 output.chunk  " + testRun, "6 run.cancelled  " + testRun}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestStreamOfValues(t *testing.T) {
	var conns atomic.Int32
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn := conns.Add(1)
		w.Header().Set("Content-Type", "text/event-stream")
		snap := func(status string) string { return `{"runId":"` + testRun + `","status":"` + status + `"}` }
		// A resumed stream first repeats the state, without an id.
		if r.Header.Get("Last-Event-ID") != "" {
			fmt.Fprintf(w, "event: state.snapshot\ndata: %s\n\n", snap("running"))
		}
		if conn == 1 {
			fmt.Fprintf(w, "id: 4\nevent: state.snapshot\ndata: %s\n\n", snap("running"))
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
		fmt.Fprintf(w, "id: 7\nevent: state.snapshot\ndata: %s\n\n", snap("failed"))
	})
	c, _ := dial(t, h)
	got, err := collect(t, c, StreamOptions{Mode: "values", After: new(int64(2))})
	if err != nil || !slices.Equal(got, []int64{-1, 4, 7}) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestStreamLeftByTheCaller(t *testing.T) {
	gone := make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "id: 0\ndata: %s\n\n", doc(0, "run.started"))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(gone)
	})
	c, _ := dial(t, h)
	for range c.Stream(t.Context(), testRun, StreamOptions{}) {
		break
	}
	<-gone
}

func TestStreamRefusals(t *testing.T) {
	for name, tc := range map[string]struct {
		status int
		calls  int
		code   string
	}{
		"unknown run":   {404, 1, "not_found"},
		"unknown mode":  {400, 1, "unsupported_stream_mode"},
		"not signed in": {401, 1, "unauthenticated"},
		"at capacity":   {429, 4, "rate_limited"},
		"unavailable":   {503, 4, "service_unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			c, waits := dial(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				calls.Add(1)
				w.Header().Set("Retry-After", "7")
				answerJSON(w, tc.status, `{"error":"`+tc.code+`","message":"No."}`)
			}), WithStreamRetries(3))
			_, err := collect(t, c, StreamOptions{})
			if !IsCode(err, tc.code) || int(calls.Load()) != tc.calls {
				t.Errorf("%v after %d calls", err, calls.Load())
			}
			for _, w := range waits.waits {
				if w < 7*time.Second {
					t.Errorf("waited %v, though the host asked for 7s", w)
				}
			}
		})
	}
}

func TestStreamGivesUpOnlyWhenNothingComes(t *testing.T) {
	// Each connection brings one event, so far more are made than may fail in a row.
	s := &logServer{types: aLog(40), cut: func(int, int) (bool, bool) { return true, true }}
	c, _ := dial(t, s, WithStreamRetries(2))
	if got, err := collect(t, c, StreamOptions{}); err != nil || len(got) != 40 {
		t.Errorf("%d events, %v", len(got), err)
	}
}

func TestStreamEndsWithItsContext(t *testing.T) {
	c, _ := dial(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	go cancel(why)
	for _, err := range c.Stream(ctx, testRun, StreamOptions{}) {
		if !errors.Is(err, why) {
			t.Errorf("got %v", err)
		}
		return
	}
	t.Error("the stream ended without an error")
}

func TestStreamThatFallsSilentIsMadeAnew(t *testing.T) {
	conns := make(chan int, 8)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conns <- 1
		w.Header().Set("Content-Type", "text/event-stream")
		if len(conns) < 2 {
			fmt.Fprint(w, ": open\n\n")
			w.(http.Flusher).Flush()
			<-r.Context().Done() // says nothing more
			return
		}
		fmt.Fprintf(w, "id: 0\ndata: %s\n\n", doc(0, "run.completed"))
	})
	c, _ := dial(t, h, WithIdleTimeout(20*time.Millisecond))
	got, err := collect(t, c, StreamOptions{})
	if err != nil || !slices.Equal(got, []int64{0}) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestFrames(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	in := ": hello\n\nid: 1\ndata: a\ndata:b\n\n\nretry: 1500\nevent: e\n\nid:2\r\nevent:n\r\ndata: " + long + "\r\n\r\ndata: torn"
	f := newFrames(strings.NewReader(in), func() {})
	var got []frame
	for {
		fr, err := f.next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			break
		}
		got = append(got, fr)
	}
	if len(got) != 2 || string(got[0].data) != "a\nb" || got[1].name != "n" || got[1].id != "2" || string(got[1].data) != long {
		t.Errorf("got %d frames: %.80v", len(got), got)
	}
	if f.retry != 1500*time.Millisecond {
		t.Errorf("retry %v", f.retry)
	}
}

func FuzzFrames(f *testing.F) {
	f.Add("id: 1\nevent: batch\ndata: [{}]\n\n")
	f.Add("id: x\ndata: {}\n\n")
	f.Add("event: state.snapshot\ndata: {\"status\":1}\n\n")
	f.Fuzz(func(t *testing.T, s string) {
		r := newFrames(strings.NewReader(s), func() {})
		for {
			fr, err := r.next()
			if err != nil {
				return
			}
			events, err := eventsOf(fr, testRun)
			if err != nil {
				continue
			}
			for _, e := range events {
				if e.Raw != nil && !json.Valid(e.Raw) {
					t.Errorf("an event of broken JSON: %q", e.Raw)
				}
				e.Terminal()
			}
		}
	})
}
