package v1wire

import (
	"strconv"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// EngineVersion is the stamp of the envelope and of run.started, which v1 has as text.
var EngineVersion = strconv.Itoa(event.EngineVersion)

// Name is a type's name in v1: the inverse of the codemap's row. A type that is not
// registered is a vendor's, and has one name everywhere.
func Name(t event.Type) string {
	if row, ok := event.Lookup(t); ok {
		return row.V1
	}
	return string(t)
}

// InUpdates reports whether the updates mode of v1 shows a type (spec v1
// stream-modes.md §Mode-to-event mapping). It is v2's but for two, which v1 does not
// list.
func InUpdates(t event.Type) bool {
	return t.InUpdates() && t != "run.resume-started" && t != "run.dead-lettered"
}

// InValues reports whether a snapshot follows a type in the values mode.
func InValues(t event.Type) bool { return InUpdates(t) || t == event.NodeStarted }

// Doc is the event as v1 readers are sent it. Id, sequence, time and cause are those
// of v2.
func Doc(e *event.Event) []byte { return envelope(e, Payload(e), false) }

// AliasedDoc is Doc with the two members again under the names they had before v1 was
// written down, seq and data. Readers of debug bundles look for either.
func AliasedDoc(e *event.Event) []byte { return envelope(e, Payload(e), true) }

func envelope(e *event.Event, payload jsontext.Value, aliases bool) []byte {
	size := 256 + len(payload)
	if aliases {
		size += len(payload)
	}
	b := append(make([]byte, 0, size), `{"eventId":"`...)
	b = append(b, e.ID()...)
	b = append(b, `","runId":"`...)
	b = append(b, e.Run.Opaque...)
	b = append(b, `","sequence":`...)
	b = strconv.AppendInt(b, e.Seq, 10)
	b = append(b, `,"type":`...)
	b, _ = jsontext.AppendQuote(b, Name(e.Type))
	if e.NodeID != "" {
		b = append(b, `,"nodeId":`...)
		b, _ = jsontext.AppendQuote(b, e.NodeID)
	}
	b = append(b, `,"timestamp":"`...)
	b = e.Time.UTC().AppendFormat(b, event.TimeLayout)
	b = append(b, `","schemaVersion":`...)
	b = strconv.AppendInt(b, event.SchemaVersion, 10)
	b = append(b, `,"engineVersion":"`...)
	b = append(b, EngineVersion...)
	b = append(b, '"')
	if cause := causation(e); cause != "" {
		b = append(b, `,"causationId":`...)
		b, _ = jsontext.AppendQuote(b, cause)
	}
	if aliases {
		b = append(b, `,"seq":`...)
		b = strconv.AppendInt(b, e.Seq, 10)
		b = append(b, `,"data":`...)
		b = append(b, payload...)
	}
	b = append(b, `,"payload":`...)
	b = append(b, payload...)
	return append(b, '}')
}

// causation names the event's cause. A log of v1 may name one in anybody's grammar,
// which only the document holds.
func causation(e *event.Event) string {
	if e.Causation >= 0 {
		return ids.Event(e.Run, e.Causation)
	}
	if e.Era != event.OldEra {
		return ""
	}
	var doc struct {
		CausationID string `json:"causationId"`
	}
	_ = json.Unmarshal(e.Doc(), &doc) // it was read before: there is one or there is none
	return doc.CausationID
}
