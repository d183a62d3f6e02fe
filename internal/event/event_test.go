package event_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/go-json-experiment/json/jsontext"
)

func TestDocReadsBack(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC)
	for _, payload := range []string{
		`{}`, `{"n":12345678901234567890,"f":1e400,"z":-0,"s":"\u0041\/\u2028"}`, `{"deep":[[[[]]]],"é":"\u0000"}`,
	} {
		e := event.Event{
			Run: ids.Run{Tenant: "acme", Opaque: "0123456789abcdef"}, Seq: 41, Type: event.NodeCompleted, NodeID: `a"b`,
			Time: at, Causation: 40, Payload: jsontext.Value(payload), Sealed: jsontext.Value(`{"secret":1}`),
		}
		doc := bytes.Clone(e.Doc())
		if bytes.Contains(doc, []byte("secret")) {
			t.Fatal("what is sealed is in the document")
		}
		got, err := event.Decode(doc, e.Sealed)
		if err != nil {
			t.Fatal(err)
		}
		if got.Run != e.Run || got.Seq != e.Seq || got.Type != e.Type || got.NodeID != e.NodeID || !got.Time.Equal(at) || got.Causation != 40 {
			t.Errorf("%+v reads back as %+v", e, got)
		}
		if string(got.Payload) != payload {
			t.Errorf("the payload %s reads back as %s", payload, got.Payload)
		}
		if string(got.Truth()) != `{"secret":1}` || !bytes.Equal(got.Doc(), doc) {
			t.Errorf("truth %s, document %s", got.Truth(), got.Doc())
		}
	}
}

// A v1 reader gets every type under a name of its own, and back.
func TestRegistryIsABijection(t *testing.T) {
	v1 := map[string]event.Type{}
	for _, r := range event.Rows() {
		got, ok := event.Lookup(r.Type)
		if !ok || got != r {
			t.Errorf("Lookup(%s) = %v, %v", r.Type, got, ok)
		}
		if r.V1 == "" {
			t.Errorf("%s has no v1 name", r.Type)
		}
		if other, dup := v1[r.V1]; dup {
			t.Errorf("%s and %s are both %q in v1", other, r.Type, r.V1)
		}
		v1[r.V1] = r.Type
	}
	if len(v1) < 100 {
		t.Errorf("only %d types are registered", len(v1))
	}
}

func FuzzDecode(f *testing.F) {
	e := event.Event{Run: ids.Run{Tenant: "acme", Opaque: "0123456789abcdef"}, Type: event.RunStarted, Causation: -1, Payload: jsontext.Value(`{}`)}
	f.Add(e.Doc())
	f.Add([]byte(`{"runId":"a/0123456789abcdef","sequence":-1}`))
	f.Add([]byte(`{"eventId":1}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		e, err := event.Decode(bytes.Clone(doc), nil)
		if err == nil && !bytes.Equal(e.Doc(), doc) {
			t.Errorf("the document changed")
		}
	})
}
