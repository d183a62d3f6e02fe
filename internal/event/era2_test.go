package event_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/go-json-experiment/json/jsontext"
)

var oldRun = ids.Run{Tenant: "acme", Opaque: "0123456789abcdef"}

func old(t *testing.T, typ, payload string) ([]byte, event.Event, error) {
	t.Helper()
	at := time.Date(2026, 1, 15, 10, 0, 0, 0, time.UTC)
	e, err := event.Old(oldRun, 7, typ, jsontext.Value(payload), at, "")
	if err != nil {
		t.Fatal(err)
	}
	stored := append([]byte(nil), e.Doc()...)
	got, err := event.Decode(e.Doc(), nil)
	return stored, got, err
}

// What is stored is v1's, without a stamp; what is read is v2's, with the payload as
// it was spelled.
func TestOldEventsAreReadTranslated(t *testing.T) {
	stored, got, err := old(t, "agent.toolCalled", `{"nodeId":"n1","b":1.50,"a":"é"}`)
	if err != nil {
		t.Fatal(err)
	}
	if s := string(stored); !strings.Contains(s, `"type":"agent.toolCalled"`) || strings.Contains(s, "schemaVersion") {
		t.Errorf("stored: %s", s)
	}
	if got.Type != "agent.tool-called" || got.Seq != 7 || got.NodeID != "n1" || got.Era != event.OldEra || string(got.Payload) != `{"nodeId":"n1","b":1.50,"a":"é"}` {
		t.Errorf("read: %+v", got)
	}
	again, err := event.Decode(got.Doc(), nil)
	if err != nil || again.Type != got.Type || again.Era != 0 {
		t.Errorf("the document that is shown is one of v2: %+v, %v", again, err)
	}
}

func TestOldStartsGetTheLegacySubject(t *testing.T) {
	for payload, want := range map[string]string{
		`{"workflowId":"w"}`: `{"tenant":"acme","subject":{"issuer":"urn:openwop:legacy","subjectId":"legacy","tenant":"acme","lane":"api-key","kind":"user"}}`,
		`{"owner":{"tenant":"x","workspace":"ws","principal":"p1","principalKind":"service"},"workflowId":"w"}`: `{"tenant":"acme","workspace":"ws","subject":{"issuer":"urn:openwop:legacy","subjectId":"p1","tenant":"acme","lane":"api-key","kind":"service"}}`,
		`{"owner":{"tenant":"acme","subject":{"issuer":"urn:a"}},"workflowId":"w"}`:                             `{"tenant":"acme","subject":{"issuer":"urn:a"}}`,
	} {
		_, got, err := old(t, "run.started", payload)
		if err != nil || !strings.Contains(string(got.Payload), `"owner":`+want) {
			t.Errorf("%s: %s, %v", payload, got.Payload, err)
		}
	}
}

func TestOldEventsThatCannotBeRead(t *testing.T) {
	for payload, tc := range map[string]struct {
		typ  string
		want error
	}{
		`{}`:          {"no.such.type", event.ErrUnmapped},
		`{"a":1}`:     {"agent.tool-called", event.ErrUnmapped}, // a name of v2 is none of v1
		`[]`:          {"run.completed", event.ErrUnprojectable},
		`{"owner":3}`: {"run.started", event.ErrUnprojectable},
	} {
		if _, _, err := old(t, tc.typ, payload); !errors.Is(err, tc.want) {
			t.Errorf("%s %s: %v", tc.typ, payload, err)
		}
	}
}
