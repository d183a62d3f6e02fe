package v1

import (
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/event/v1wire"
	"github.com/fermata-run/fermata/internal/webhook"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// hooks is the form of deliveries to whoever has subscribed under v1 (v1 webhooks.md
// §Delivery semantics), whichever major the run was started under.
type hooks struct {
	version string // of the implementation
	base    string // URL under which the world calls the API; empty if nobody has said
}

// Agent implements webhook.Form.
func (h hooks) Agent() string { return "openwop-webhook-dispatcher/" + h.version }

// ID implements webhook.Form.
func (hooks) ID(_, id string) string { return id }

// EventType implements webhook.Form.
func (hooks) EventType(t event.Type) string { return v1wire.Name(t) }

// delivered are the members that v1's clients look for. workspaceId is required there,
// and what v1 calls a workspace is a tenant where there are no others.
type delivered struct {
	RunID       string         `json:"runId"`
	WorkspaceID string         `json:"workspaceId"`
	Type        string         `json:"type"`
	Event       jsontext.Value `json:"event"`
}

func deliveredOf(tenant, workspace string, e *event.Event) delivered {
	if workspace == "" {
		workspace = tenant
	}
	return delivered{e.Run.Opaque, workspace, v1wire.Name(e.Type), v1wire.Doc(e)}
}

// Body implements webhook.Form. A question about an approval is no approval.received in
// v1 (interrupt.md §kind: approval): nobody there is told of one.
func (hooks) Body(owner *event.Owner, e *event.Event) ([]byte, error) {
	if asks(e) {
		return nil, nil
	}
	return json.Marshal(deliveredOf(owner.Tenant, owner.Workspace, e), jsontext.PreserveRawStrings(true))
}

// asks reports whether an event is a question about an approval, or an answer to one.
func asks(e *event.Event) bool {
	if e.Type != event.ApprovalReceived {
		return false
	}
	p, err := event.Read[event.Resolution](e.Payload)
	if err != nil || p.Action != "" && p.Action != "ask" {
		return false
	}
	var v struct {
		Action string `json:"action"`
	}
	return p.Action == "ask" || json.Unmarshal(p.ResumeValue, &v) == nil && v.Action == "ask"
}

// Callback implements webhook.Form. v1 says that the receiver is given a token and where
// to bring it, and nothing of the shape; so it is a delivery with what is needed beside.
func (h hooks) Callback(c *webhook.Called) ([]byte, error) {
	return json.Marshal(struct {
		delivered
		DeliveryID  string `json:"deliveryId"`
		NodeID      string `json:"nodeId"`
		InterruptID string `json:"interruptId"`
		Intent      string `json:"intent"`
		Token       string `json:"token"`
		CallbackURL string `json:"callbackUrl"`
		ExpiresAt   string `json:"expiresAt"`
	}{
		deliveredOf(c.Tenant, c.Workspace, c.Event), c.DeliveryID, c.NodeID, c.Interrupt.Opaque, c.Intent, c.Token,
		tokenURL(h.base, c.Token), c.ExpiresAt.UTC().Format(event.TimeLayout),
	}, jsontext.PreserveRawStrings(true))
}

// tokenURL is where a token is brought.
func tokenURL(base, token string) string { return base + Prefix + "/interrupts/" + token }
