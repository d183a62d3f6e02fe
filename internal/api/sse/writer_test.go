package sse

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/go-json-experiment/json/jsontext"
)

func ev(seq int64, typ event.Type, payload string) *event.Event {
	return &event.Event{
		Run: ids.Run{Tenant: "t", Opaque: "0123456789abcdef"}, Seq: seq, Type: typ, Time: time.Unix(0, 0), Causation: -1,
		Payload: jsontext.Value(payload),
	}
}

// begin opens a stream and drops what it opens with.
func begin(t *testing.T, mode string) (*Writer, *httptest.ResponseRecorder) {
	t.Helper()
	m, err := ParseMode(mode, true)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	s, err := Begin(w, m, Current)
	if err != nil || !w.Flushed || w.Body.String() != ": open\n\n" {
		t.Fatalf("%v, flushed %v, %q", err, w.Flushed, w.Body)
	}
	w.Body.Reset()
	return s, w
}

func TestFrames(t *testing.T) {
	s, w := begin(t, "debug")
	events := []*event.Event{ev(0, event.RunStarted, `{"s":"a\nb"}`), ev(1, event.OutputChunk, `{"chunk":"x"}`), ev(2, event.RunCompleted, `{}`)}
	for _, e := range events {
		s.Add(e)
	}
	if w.Body.Len() > 0 || !s.Pending() {
		t.Error("sent before Flush")
	}
	if err := s.Flush(); err != nil || s.Pending() {
		t.Error(err)
	}
	want := "id: 0\nevent: run.started\ndata: " + string(events[0].Doc()) + "\n\n" +
		"id: 1\nevent: output.chunk\ndata: " + string(events[1].Doc()) + "\n\n" +
		"id: 2\nevent: run.completed\ndata: " + string(events[2].Doc()) + "\n\n"
	if got := w.Body.String(); got != want {
		t.Errorf("%q\nwant\n%q", got, want)
	}
}

func TestBatchFrame(t *testing.T) {
	s, w := begin(t, "updates")
	hidden, shown := ev(1, event.NodeStarted, `{}`), ev(0, event.RunStarted, `{}`)
	s.Batch([]event.Event{*hidden})
	if s.Pending() {
		t.Error("a batch of nothing")
	}
	s.Batch([]event.Event{*shown, *hidden})
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	if want := "id: 1\nevent: batch\ndata: [" + string(shown.Doc()) + "]\n\n"; w.Body.String() != want {
		t.Errorf("%q\nwant\n%q", w.Body, want)
	}
}

// A synthetic frame has no id, so that it moves no cursor.
func TestSnapshotFrame(t *testing.T) {
	s, w := begin(t, "values")
	s.Snapshot(-1, []byte(`{"a":1}`))
	s.Snapshot(0, []byte(`{"a":2}`))
	if err := s.Comment("alive"); err != nil {
		t.Fatal(err)
	}
	want := "event: state.snapshot\ndata: {\"a\":1}\n\nid: 0\nevent: state.snapshot\ndata: {\"a\":2}\n\n: alive\n\n"
	if w.Body.String() != want {
		t.Errorf("%q", w.Body)
	}
}

// No frame that a payload could write breaks out of its data line.
func TestFramesHoldOneLineOfData(t *testing.T) {
	s, w := begin(t, "debug")
	s.Add(ev(0, event.RunStarted, `{"s":"\n\ndata: x\n\nid: 9\r\revent: run.completed"}`))
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(w.Body.String(), "\n"); len(lines) != 5 || strings.Contains(w.Body.String(), "\r") {
		t.Errorf("%q", lines)
	}
}

type broken struct{ *httptest.ResponseRecorder }

func (broken) Write([]byte) (int, error) { return 0, errors.New("gone") }

func TestWriteErrorIsReported(t *testing.T) {
	if _, err := Begin(broken{httptest.NewRecorder()}, Mode{Updates: true}, Current); err == nil {
		t.Error("nobody is there and no error")
	}
}

// A quiet stream does not hold on to the buffer of its largest frame.
func TestBufferIsGivenBack(t *testing.T) {
	s, _ := begin(t, "debug")
	s.Add(ev(0, event.RunStarted, `{"s":"`+strings.Repeat("x", 4*keepBuffer)+`"}`))
	if err := s.Flush(); err != nil || cap(s.buf) > keepBuffer {
		t.Errorf("%v, %d bytes kept", err, cap(s.buf))
	}
}
