package event

import (
	"errors"
	"fmt"
	"time"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// OldEra is the era of logs in the words of v1 (spec v2 persistence.md §The era
// key). Their documents carry no schemaVersion: that is how Decode, the one place
// every reader of a log passes, knows that they are to be translated. Nothing is
// ever written back.
const OldEra = 2

// LegacyIssuer is the issuer of a subject that no host attested (identity.md §1.2).
const LegacyIssuer = "urn:openwop:legacy"

// ErrUnmapped: a log of v1 holds a type that the codemap does not name.
var ErrUnmapped = errors.New("event type of v1 that is not mapped")

// ErrUnprojectable: a document of a log of v1 is not what v1 wrote.
var ErrUnprojectable = errors.New("event of v1 that cannot be read")

type oldDoc struct {
	EventID     string         `json:"eventId"`
	RunID       string         `json:"runId"`
	Sequence    int64          `json:"sequence"`
	Type        string         `json:"type"`
	Timestamp   string         `json:"timestamp"`
	CausationID string         `json:"causationId,omitzero"`
	Payload     jsontext.Value `json:"payload"`
}

// Old is an event as a v1 host left it: its own type, its payload, no stamp. It is
// for the store, and reads back translated.
func Old(run ids.Run, seq int64, typ string, payload jsontext.Value, at time.Time, causation string) (Event, error) {
	doc, err := json.Marshal(oldDoc{
		EventID: ids.Event(run, seq), RunID: run.String(), Sequence: seq, Type: typ,
		Timestamp: at.UTC().Format(TimeLayout), CausationID: causation, Payload: payload,
	}, jsontext.PreserveRawStrings(true))
	if err != nil {
		return Event{}, fmt.Errorf("encode event of v1: %w", err)
	}
	return Event{Run: run, Seq: seq, Type: Type(typ), Time: at, Causation: -1, Payload: payload, Era: OldEra, doc: doc}, nil
}

// translate reads a document of v1: the type by the codemap, the payload in the
// form of v2, everything else as it is.
func (w *wireDoc) translate(run ids.Run) (Event, error) {
	row, ok := LookupV1(string(w.Type))
	if !ok {
		return Event{}, fmt.Errorf("%w: event %d, %q", ErrUnmapped, w.Sequence, w.Type)
	}
	var members map[string]jsontext.Value
	if w.Timestamp.IsZero() || w.EventID == "" || json.Unmarshal(w.Payload, &members) != nil || members == nil {
		return Event{}, fmt.Errorf("%w: event %d", ErrUnprojectable, w.Sequence)
	}
	e := Event{Run: run, Seq: w.Sequence, Type: row.Type, Time: w.Timestamp, Causation: -1, Payload: w.Payload, Era: OldEra}
	_ = json.Unmarshal(members["nodeId"], &e.NodeID) // absent from events that are not about a node
	if e.Type == RunStarted {
		if err := e.stampOwner(members); err != nil {
			return Event{}, err
		}
	}
	e.document(w.CausationID)
	return e, nil
}

// stampOwner gives a start without a subject the legacy one.
func (e *Event) stampOwner(members map[string]jsontext.Value) error {
	var old struct {
		Workspace     string         `json:"workspace"`
		Principal     string         `json:"principal"`
		PrincipalKind string         `json:"principalKind"`
		Subject       jsontext.Value `json:"subject"`
	}
	if raw := members["owner"]; raw != nil && json.Unmarshal(raw, &old) != nil {
		return fmt.Errorf("%w: event %d, its owner", ErrUnprojectable, e.Seq)
	}
	if old.Subject != nil {
		return nil
	}
	subject := Subject{Issuer: LegacyIssuer, SubjectID: old.Principal, Tenant: e.Run.Tenant, Lane: "api-key", Kind: old.PrincipalKind}
	if subject.SubjectID == "" {
		subject.SubjectID = "legacy"
	}
	if subject.Kind == "" {
		subject.Kind = "user"
	}
	members["owner"] = Encode(Owner{Tenant: e.Run.Tenant, Workspace: old.Workspace, Subject: subject})
	payload, err := json.Marshal(members, json.Deterministic(true), jsontext.PreserveRawStrings(true))
	e.Payload = payload
	return err
}

// document writes the event's document, with a causation that may be anybody's.
func (e *Event) document(causation string) {
	bare := e.Doc()
	if causation == "" {
		return
	}
	const payload = `,"payload":`
	cut := len(bare) - len(payload) - len(e.Payload) - 1
	b := append(make([]byte, 0, len(bare)+len(causation)+32), bare[:cut]...)
	b = append(b, `,"causationId":`...)
	b, _ = jsontext.AppendQuote(b, causation)
	e.doc = append(b, bare[cut:]...)
}
