package sse

import (
	"net/http"
	"strconv"
	"time"

	"github.com/fermata-run/fermata/internal/event"
)

// Keepalive is the longest silence on a stream: proxies cut quieter ones.
const Keepalive = 15 * time.Second

// writeTimeout bounds one write to a subscriber that does not read. It hurts
// only itself: nobody else waits for it.
const writeTimeout = 30 * time.Second

// Writer writes frames to one subscriber.
type Writer struct {
	w    http.ResponseWriter
	rc   *http.ResponseController
	mode Mode
	wire *Wire
	buf  []byte
	err  error // of a frame that was sent ahead; Flush returns it

	// Clean, if set, takes out of a frame's data what is not to be shown.
	Clean func([]byte) []byte
}

// Begin answers with an event stream of a wire.
func Begin(w http.ResponseWriter, mode Mode, wire *Wire) (*Writer, error) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	h.Del("Content-Length")
	w.WriteHeader(http.StatusOK)
	s := &Writer{w: w, rc: http.NewResponseController(w), mode: mode, wire: wire}
	return s, s.Comment("open")
}

// Comment sends a line that says nothing but that the stream is alive.
func (s *Writer) Comment(text string) error {
	s.buf = append(s.buf, ": "...)
	s.buf = append(s.buf, text...)
	s.buf = append(s.buf, "\n\n"...)
	return s.Flush()
}

// Add appends an event's frame to what Flush will send, if the mode admits it.
func (s *Writer) Add(e *event.Event) {
	if name := s.mode.admits(s.wire, e.Type); name != "" {
		s.frame(e.Seq, name, s.wire.data(s.mode, e))
	}
}

// Admits reports whether the mode shows an event.
func (s *Writer) Admits(e *event.Event) bool { return s.mode.admits(s.wire, e.Type) != "" }

// Batch appends one frame that holds several events. Its id is the highest
// sequence it stands for.
func (s *Writer) Batch(events []event.Event) {
	n := 0
	b := []byte{'['}
	for i := range events {
		if !s.Admits(&events[i]) {
			continue
		}
		if n++; n > 1 {
			b = append(b, ',')
		}
		b = append(b, s.wire.Doc(&events[i])...)
	}
	if n > 0 {
		s.frame(events[len(events)-1].Seq, "batch", append(b, ']'))
	}
}

// Snapshot appends a state.snapshot frame. With a negative seq it has no id: it
// repeats a state the subscriber has an id for.
func (s *Writer) Snapshot(seq int64, snapshot []byte) { s.frame(seq, "state.snapshot", snapshot) }

func (s *Writer) frame(id int64, name string, data []byte) {
	if s.Clean != nil {
		data = s.Clean(data)
	}
	if id >= 0 {
		s.buf = append(s.buf, "id: "...)
		s.buf = strconv.AppendInt(s.buf, id, 10)
		s.buf = append(s.buf, '\n')
	}
	s.buf = append(s.buf, "event: "...)
	s.buf = append(s.buf, name...)
	s.buf = append(s.buf, "\ndata: "...)
	s.buf = append(s.buf, data...) // JSON without line breaks: one data line
	s.buf = append(s.buf, "\n\n"...)
	if len(s.buf) >= sendAhead {
		_ = s.Flush() // kept in s.err
	}
}

// sendAhead is how much is gathered at most before it is sent: a subscriber's
// buffer stays small however many large frames are added at once.
const sendAhead = 512 << 10

// Pending reports whether there is something to flush.
func (s *Writer) Pending() bool { return len(s.buf) > 0 }

// keepBuffer is the largest buffer a quiet stream holds on to.
const keepBuffer = 16 << 10

// Flush sends what has been added. After a failure nothing is sent any more.
func (s *Writer) Flush() error {
	if len(s.buf) == 0 || s.err != nil {
		s.buf = s.buf[:0]
		return s.err
	}
	// A writer that cannot have deadlines (a test's recorder) goes without.
	_ = s.rc.SetWriteDeadline(time.Now().Add(writeTimeout))
	_, s.err = s.w.Write(s.buf)
	if cap(s.buf) > keepBuffer {
		s.buf = nil
	} else {
		s.buf = s.buf[:0]
	}
	if s.err == nil {
		s.err = s.rc.Flush()
	}
	return s.err
}
