package webhook

import (
	"fmt"
	"net/http"
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Form is what deliveries look like to a receiver that knows one major of the protocol.
type Form interface {
	// Agent is the User-Agent of requests; empty for the host's own.
	Agent() string
	// ID is how a subscription is named.
	ID(tenant, id string) string
	// EventType is an event's name.
	EventType(t event.Type) string
	// Body is the body of a delivery; nil if the receiver is not told of this event.
	Body(owner *event.Owner, e *event.Event) ([]byte, error)
	// Callback is the body of what a run's callback URL is told.
	Callback(c *Called) ([]byte, error)
}

// Called is what a run's callback URL is told: an event, and a token for what it asks. The
// receiver sees by asking the host with the token that the call is genuine.
type Called struct {
	Tenant     string
	DeliveryID string // opaque segment
	Run        ids.Run
	Workspace  string // of the run's owner; may be empty
	Event      *event.Event
	NodeID     string
	Interrupt  ids.Run
	Intent     string
	Token      string
	ExpiresAt  time.Time
}

// Current is the form of this major.
type Current struct{}

// Agent implements Form.
func (Current) Agent() string { return "" }

// ID implements Form.
func (Current) ID(tenant, id string) string { return tenant + "/" + id }

// EventType implements Form.
func (Current) EventType(t event.Type) string { return string(t) }

// Body implements Form (spec v2 webhooks.md §Delivery): the event as every reader of the
// run is sent it, with what is sensitive masked.
func (Current) Body(owner *event.Owner, e *event.Event) ([]byte, error) {
	b := append([]byte(nil), `{"runId":"`+e.Run.String()+`"`...)
	if owner.Workspace != "" {
		b = append(b, `,"workspaceId":`...)
		b, _ = jsontext.AppendQuote(b, owner.Workspace)
	}
	b = append(append(b, `,"event":`...), e.Doc()...)
	return append(b, '}'), nil
}

// Callback implements Form.
func (Current) Callback(c *Called) ([]byte, error) {
	return json.Marshal(struct {
		DeliveryID  string         `json:"deliveryId"`
		RunID       string         `json:"runId"`
		WorkspaceID string         `json:"workspaceId,omitzero"`
		Event       jsontext.Value `json:"event"`
		NodeID      string         `json:"nodeId"`
		InterruptID string         `json:"interruptId"`
		Intent      string         `json:"intent"`
		Token       string         `json:"token"`
		ExpiresAt   string         `json:"expiresAt"`
	}{
		c.Tenant + "/" + c.DeliveryID, c.Run.String(), c.Workspace, c.Event.Doc(), c.NodeID, c.Interrupt.String(), c.Intent, c.Token,
		c.ExpiresAt.UTC().Format(event.TimeLayout),
	}, jsontext.PreserveRawStrings(true))
}

// form finds the form of a major; false if this host speaks none of it any more.
func (w *Worker) form(major int) (Form, bool) {
	switch {
	case major == 0:
		return Current{}, true
	case major == 1 && w.cfg.Older != nil:
		return w.cfg.Older, true
	}
	return nil, false
}

func ownerOf(row *store.Run) (*event.Owner, error) {
	var owner event.Owner
	if err := json.Unmarshal(row.Owner, &owner); err != nil {
		return nil, fmt.Errorf("owner of run %s: %w", row.ID, err)
	}
	return &owner, nil
}

// twins are the headers of a delivery under the names they had in v1. A host that serves
// both majors sends either family with the same values (spec v2 webhooks.md §Dual
// emission through the overlap).
func twins(h http.Header) {
	for _, name := range []string{"Webhook-Id", "Event-Type", "Timestamp", "Signature", "Signature-Algorithm"} {
		if v := h.Get("OpenWOP-" + name); v != "" {
			h.Set("X-openwop-"+name, v)
		}
	}
}
