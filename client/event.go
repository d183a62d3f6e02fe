package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Event is one entry of a run's log.
type Event struct {
	ID          string          `json:"eventId"`
	RunID       string          `json:"runId"`
	Sequence    int64           `json:"sequence"` // -1 for a snapshot that has no place in the log
	Type        string          `json:"type"`
	NodeID      string          `json:"nodeId,omitempty"`
	Time        time.Time       `json:"timestamp,omitzero"`
	CausationID string          `json:"causationId,omitempty"`
	Payload     json.RawMessage `json:"payload"`

	Raw json.RawMessage `json:"-"` // the event as the host sent it
}

// StateSnapshot is the Type of what a stream in the values mode delivers: the
// payload is a run's snapshot.
const StateSnapshot = "state.snapshot"

// chunk is the frame name of streamed output in the messages mode, and the type
// of event it comes from.
const (
	chunkFrame = "ai.message.chunk"
	chunkType  = "output.chunk"
)

// UnmarshalJSON keeps the exact bytes beside the decoded members.
func (e *Event) UnmarshalJSON(b []byte) error {
	type bare Event
	if err := json.Unmarshal(b, (*bare)(e)); err != nil {
		return err
	}
	e.Raw = append(json.RawMessage(nil), b...)
	return nil
}

// Terminal reports whether the event ends its run.
func (e *Event) Terminal() bool {
	switch e.Type {
	case "run.completed", "run.failed", "run.cancelled":
		return true
	case StateSnapshot:
		var s struct {
			Status Status `json:"status"`
		}
		return json.Unmarshal(e.Payload, &s) == nil && s.Status.Terminal()
	}
	return false
}

// Decode decodes the event's payload.
func (e *Event) Decode(v any) error { return json.Unmarshal(e.Payload, v) }

// eventsOf reads the events that one frame of a stream carries. A frame without
// an id that is no snapshot is the stream talking about itself: it carries none.
func eventsOf(f frame, runID string) ([]Event, error) {
	seq := int64(-1)
	if f.id != "" {
		n, err := strconv.ParseInt(f.id, 10, 64)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%w: the frame id %q is no sequence", ErrAnswer, f.id)
		}
		seq = n
	}
	switch {
	case f.name == "batch":
		var list []Event
		if err := json.Unmarshal(f.data, &list); err != nil {
			return nil, fmt.Errorf("%w: a batch cannot be read: %w", ErrAnswer, err)
		}
		return list, nil
	case f.name == StateSnapshot:
		if !json.Valid(f.data) {
			return nil, fmt.Errorf("%w: a snapshot is not JSON", ErrAnswer)
		}
		data := bytes.Clone(f.data)
		return []Event{{RunID: runID, Sequence: seq, Type: StateSnapshot, Payload: data, Raw: data}}, nil
	case seq < 0:
		return nil, nil
	}
	return single(f, seq, runID)
}

// single reads a frame of one event: its document or, for streamed output, its
// payload alone.
func single(f frame, seq int64, runID string) ([]Event, error) {
	var head struct {
		ID     json.RawMessage `json:"eventId"`
		NodeID string          `json:"nodeId"`
	}
	broken := func(err error) ([]Event, error) {
		return nil, fmt.Errorf("%w: event %d cannot be read: %w", ErrAnswer, seq, err)
	}
	if f.name == chunkFrame || f.name == "messages" {
		if err := json.Unmarshal(f.data, &head); err != nil {
			return broken(err)
		}
		if head.ID == nil {
			data := bytes.Clone(f.data)
			return []Event{{RunID: runID, Sequence: seq, Type: chunkType, NodeID: head.NodeID, Payload: data, Raw: data}}, nil
		}
	}
	var e Event
	if err := json.Unmarshal(f.data, &e); err != nil {
		return broken(err)
	}
	if e.Type == "" {
		return broken(errors.New("it has no type"))
	}
	e.Sequence = seq
	return []Event{e}, nil
}
