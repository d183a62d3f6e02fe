package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	testRun = "acme/01hzzzzzzzzzzzzzzzzzzzzzzz"
	testKey = "fermata_0123456789abcdef0123456789abcdef"
)

// instant records the waits a client asks for instead of waiting.
type instant struct {
	mu    sync.Mutex
	waits []time.Duration
}

func (i *instant) sleep(ctx context.Context, d time.Duration) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.waits = append(i.waits, d)
	return ctx.Err()
}

// dial makes a client of a handler that never really waits.
func dial(t *testing.T, h http.Handler, opts ...Option) (*Client, *instant) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return dialURL(t, s.URL, opts...)
}

func dialURL(t *testing.T, url string, opts ...Option) (*Client, *instant) {
	t.Helper()
	c, err := New(url, testKey, opts...)
	if err != nil {
		t.Fatal(err)
	}
	i := &instant{}
	c.sleep, c.random = i.sleep, func() float64 { return 1 }
	t.Cleanup(c.http.CloseIdleConnections)
	return c, i
}

func answerJSON(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprint(w, body)
}

func doc(seq int, typ string) string {
	return fmt.Sprintf(`{"eventId":"e-%d","runId":%q,"sequence":%d,"type":%q,"timestamp":"2026-11-30T12:00:00.000Z","schemaVersion":1,"engineVersion":1,"payload":{"n":12345678901234567890.5}}`, seq, testRun, seq, typ)
}

// logServer serves one run's log as the host does, and cuts connections as the
// test says.
type logServer struct {
	types []string // of the events; the index is the sequence
	only  func(typ string) bool
	batch bool

	// cut is asked after each frame written: whether to end the connection, and
	// whether abruptly.
	cut func(conn, frames int) (end, abrupt bool)
	// torn writes half a frame before an abrupt end.
	torn bool

	mu    sync.Mutex
	conns int
	heads []*http.Request
}

func (s *logServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/events") {
		answerJSON(w, 200, fmt.Sprintf(`{"runId":%q,"workflowId":"w","status":"completed","eventLogSchemaVersion":3,"engineVersion":1}`, testRun))
		return
	}
	s.mu.Lock()
	conn := s.conns
	s.conns++
	s.heads = append(s.heads, r.Clone(context.Background()))
	s.mu.Unlock()
	after := -1
	if v := r.Header.Get("Last-Event-ID"); v != "" {
		after, _ = strconv.Atoi(v)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, ": open\n\n")
	w.(http.Flusher).Flush()
	if s.batch {
		s.sendBatches(w, conn, after)
		return
	}
	for seq, frames := after+1, 0; seq < len(s.types); seq++ {
		if s.only != nil && !s.only(s.types[seq]) {
			continue
		}
		fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", seq, s.types[seq], doc(seq, s.types[seq]))
		frames++
		if s.ended(w, conn, frames, seq) {
			return
		}
	}
}

func (s *logServer) ended(w http.ResponseWriter, conn, frames, seq int) bool {
	w.(http.Flusher).Flush()
	if s.cut == nil {
		return false
	}
	end, abrupt := s.cut(conn, frames)
	if end && abrupt {
		if s.torn {
			next := doc(seq+1, "node.completed")
			fmt.Fprintf(w, "id: %d\nevent: node.completed\ndata: %s", seq+1, next[:len(next)/2])
			w.(http.Flusher).Flush()
		}
		panic(http.ErrAbortHandler)
	}
	return end
}

func (s *logServer) sendBatches(w http.ResponseWriter, conn, after int) {
	frames := 0
	for seq := after + 1; seq < len(s.types); seq += 3 {
		var docs []json.RawMessage
		last := min(seq+2, len(s.types)-1)
		for i := seq; i <= last; i++ {
			docs = append(docs, json.RawMessage(doc(i, s.types[i])))
		}
		b, _ := json.Marshal(docs)
		fmt.Fprintf(w, "id: %d\nevent: batch\ndata: %s\n\n", last, b)
		frames++
		if s.ended(w, conn, frames, last) {
			return
		}
	}
}

func aLog(n int) []string {
	types := []string{"run.started"}
	for len(types) < n-1 {
		types = append(types, "node.completed")
	}
	return append(types, "run.completed")
}

// collect reads a stream to its end.
func collect(t *testing.T, c *Client, o StreamOptions) ([]int64, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var got []int64
	for ev, err := range c.Stream(ctx, testRun, o) {
		if err != nil {
			return got, err
		}
		got = append(got, ev.Sequence)
	}
	return got, nil
}

func sequences(from, to int) []int64 {
	var out []int64
	for i := from; i <= to; i++ {
		out = append(out, int64(i))
	}
	return out
}
