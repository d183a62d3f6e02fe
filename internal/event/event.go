package event

import (
	"fmt"
	"strconv"
	"time"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// EngineVersion and SchemaVersion stamp every event (spec v2 versioning.md §2,
// axes 3 and 5). LogEra is the era key of every run this host creates
// (persistence.md §The era key).
const (
	EngineVersion = 1
	SchemaVersion = 1
	LogEra        = 3
)

// TimeLayout is RFC 3339 in UTC with milliseconds, the one form on the wire.
const TimeLayout = "2006-01-02T15:04:05.000Z"

// Event is one entry of a run's log.
type Event struct {
	Run       ids.Run
	Seq       int64
	Type      Type
	NodeID    string // empty when the event is not about one node
	Time      time.Time
	Causation int64 // sequence of the event in the same run that caused this one; -1 for none
	Payload   jsontext.Value

	// Sealed is the payload before masking, where masking changed it. It is
	// stored beside the event, feeds the fold, and never leaves the process.
	Sealed jsontext.Value

	// Era is OldEra for an event that was read in the words of v1, else zero.
	Era int

	doc []byte
}

// Draft is an event that has not been given its place in the log yet.
type Draft struct {
	Type      Type
	NodeID    string
	Causation int64 // -1 for none
	Payload   jsontext.Value
	Sealed    jsontext.Value
}

// ID is the event's id.
func (e *Event) ID() string { return ids.Event(e.Run, e.Seq) }

// Truth is the payload to fold: the sealed one if there is one.
func (e *Event) Truth() jsontext.Value {
	if e.Sealed != nil {
		return e.Sealed
	}
	return e.Payload
}

// Showing is the event with another payload, for a reader who may not see its own.
func (e *Event) Showing(payload jsontext.Value) *Event {
	return &Event{
		Run: e.Run, Seq: e.Seq, Type: e.Type, NodeID: e.NodeID, Time: e.Time,
		Causation: e.Causation, Payload: payload, Era: e.Era,
	}
}

// Doc is the event as a RunEventDoc: the bytes every reader is sent. They are
// made once and must not be changed.
func (e *Event) Doc() []byte {
	if e.doc != nil {
		return e.doc
	}
	b := make([]byte, 0, 256+len(e.Payload))
	b = append(b, `{"eventId":"`...)
	b = append(b, e.ID()...)
	b = append(b, `","runId":"`...)
	b = append(b, e.Run.Tenant...)
	b = append(b, '/')
	b = append(b, e.Run.Opaque...)
	b = append(b, `","sequence":`...)
	b = strconv.AppendInt(b, e.Seq, 10)
	b = append(b, `,"type":"`...)
	b = append(b, e.Type...)
	b = append(b, '"')
	if e.NodeID != "" {
		b = append(b, `,"nodeId":`...)
		b, _ = jsontext.AppendQuote(b, e.NodeID)
	}
	b = append(b, `,"timestamp":"`...)
	b = e.Time.UTC().AppendFormat(b, TimeLayout)
	b = append(b, `","schemaVersion":`...)
	b = strconv.AppendInt(b, SchemaVersion, 10)
	b = append(b, `,"engineVersion":`...)
	b = strconv.AppendInt(b, EngineVersion, 10)
	if e.Causation >= 0 {
		b = append(b, `,"causationId":"`...)
		b = append(b, ids.Event(e.Run, e.Causation)...)
		b = append(b, '"')
	}
	b = append(b, `,"payload":`...)
	b = append(b, e.Payload...)
	e.doc = append(b, '}')
	return e.doc
}

type wireDoc struct {
	EventID       string         `json:"eventId"`
	RunID         string         `json:"runId"`
	Sequence      int64          `json:"sequence"`
	Type          Type           `json:"type"`
	NodeID        string         `json:"nodeId"`
	Timestamp     time.Time      `json:"timestamp"`
	SchemaVersion int            `json:"schemaVersion"`
	EngineVersion int            `json:"engineVersion"`
	CausationID   string         `json:"causationId"`
	Payload       jsontext.Value `json:"payload"`
}

// Decode reads back what Doc wrote. It keeps doc as the event's document, so
// the caller must not change it afterwards.
func Decode(doc []byte, sealed []byte) (Event, error) {
	var w wireDoc
	if err := json.Unmarshal(doc, &w); err != nil {
		return Event{}, fmt.Errorf("decode event: %w", err)
	}
	run, err := ids.ParseRun(w.RunID)
	if err != nil {
		return Event{}, fmt.Errorf("decode event %s: %w", w.EventID, err)
	}
	if w.SchemaVersion == 0 {
		return w.translate(run)
	}
	e := Event{
		Run: run, Seq: w.Sequence, Type: w.Type, NodeID: w.NodeID, Time: w.Timestamp,
		Causation: -1, Payload: w.Payload, doc: doc,
	}
	if w.CausationID != "" {
		prefix := run.Opaque + "-"
		if len(w.CausationID) > len(prefix) && w.CausationID[:len(prefix)] == prefix {
			if n, err := strconv.ParseInt(w.CausationID[len(prefix):], 36, 64); err == nil {
				e.Causation = n
			}
		}
	}
	if len(sealed) > 0 {
		e.Sealed = sealed
	}
	return e, nil
}

// Encode turns a payload struct into its JSON. The structs of this package
// always encode, so a failure is a defect.
func Encode(payload any) jsontext.Value {
	if v, ok := payload.(jsontext.Value); ok {
		return v
	}
	b, err := json.Marshal(payload, json.Deterministic(true), jsontext.PreserveRawStrings(true))
	if err != nil {
		panic(fmt.Sprintf("event: encode %T: %v", payload, err))
	}
	return b
}

// Read decodes a payload into one of this package's structs.
func Read[T any](v jsontext.Value) (T, error) {
	var out T
	err := json.Unmarshal(v, &out)
	return out, err
}
