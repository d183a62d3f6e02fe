package v1

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
)

func hookEvent(typ event.Type, payload string) *event.Event {
	return &event.Event{
		Run: ids.Run{Tenant: "acme", Opaque: "0123456789abcdef"}, Seq: 7, Type: typ, NodeID: "ok", Causation: -1,
		Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Payload: []byte(payload),
	}
}

// Every type has its name of v1 in a delivery: in the header, beside the event, and in it.
func TestHookNames(t *testing.T) {
	for _, row := range event.Rows() {
		b, err := hooks{}.Body(&event.Owner{Tenant: "acme"}, hookEvent(row.Type, `{"nodeId":"ok","action":"accept"}`))
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			RunID, WorkspaceID, Type string
			Event                    struct{ RunID, Type string }
		}
		if err := json.Unmarshal(b, &doc); err != nil {
			t.Fatal(err)
		}
		if doc.Type != row.V1 || doc.Event.Type != row.V1 || (hooks{}).EventType(row.Type) != row.V1 {
			t.Errorf("%s: %s", row.Type, b)
		}
		if doc.RunID != "0123456789abcdef" || doc.Event.RunID != doc.RunID || doc.WorkspaceID != "acme" {
			t.Errorf("%s", b)
		}
		if got, err := canonical([]string{row.V1}); err != nil || got[0] != string(row.Type) {
			t.Errorf("%s is registered as %v, %v", row.V1, got, err)
		}
	}
	if _, err := canonical([]string{"run.completed", "run.exploded"}); err == nil {
		t.Error("an unknown name is registered")
	}
	b, err := hooks{}.Body(&event.Owner{Tenant: "acme", Workspace: "w"}, hookEvent(event.RunCompleted, `{}`))
	if err != nil || !json.Valid(b) || !bytes.Contains(b, []byte(`"workspaceId":"w"`)) {
		t.Errorf("%s, %v", b, err)
	}
}

// A question about an approval is none that v1 knows of; a vote and a decision are.
func TestHookAsks(t *testing.T) {
	for payload, told := range map[string]bool{
		`{"nodeId":"ok","resumeValue":{"action":"ask","question":"why?"},"resolvedBy":{"subjectId":"a"}}`: false,
		`{"nodeId":"ok","action":"ask"}`:                                      false,
		`{"nodeId":"ok","action":"accept","resumeValue":{"action":"accept"}}`: true,
		`{"nodeId":"ok","action":"timeout","reason":"timeout"}`:               true,
		`{"nodeId":"ok","resumeValue":null}`:                                  true, // masked: nobody can tell
	} {
		b, err := hooks{}.Body(&event.Owner{Tenant: "acme"}, hookEvent(event.ApprovalReceived, payload))
		if err != nil || (b != nil) != told {
			t.Errorf("%s: %s, %v", payload, b, err)
		}
	}
}
