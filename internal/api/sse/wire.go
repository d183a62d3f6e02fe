package sse

import "github.com/fermata-run/fermata/internal/event"

// Wire is how a major of the protocol shows events on a stream.
type Wire struct {
	Name      func(event.Type) string
	Doc       func(*event.Event) []byte
	Payload   func(*event.Event) []byte
	InUpdates func(event.Type) bool

	// ByMode names the frames of a combined mode by the mode that admitted the
	// event, and not by the event's type.
	ByMode bool
}

// Current is the wire of this major (spec v2 events.md §SSE frames).
var Current = &Wire{
	Name:      func(t event.Type) string { return string(t) },
	Doc:       (*event.Event).Doc,
	Payload:   func(e *event.Event) []byte { return e.Payload },
	InUpdates: event.Type.InUpdates,
	ByMode:    true,
}

// data is what a frame of an event holds. Where debug is asked for beside messages,
// a frame that is named by its mode leaves the event whole.
func (w *Wire) data(m Mode, e *event.Event) []byte {
	if m.Messages && e.Type.InMessages() && !(m.Debug && w.ByMode) {
		return w.Payload(e)
	}
	return w.Doc(e)
}
