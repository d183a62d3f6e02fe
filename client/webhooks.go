package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// WebhookRegistration asks for events to be delivered to a URL.
type WebhookRegistration struct {
	URL                 string   `json:"url"`    // https, and a public host
	Events              []string `json:"events"` // types, such as run.completed
	Secret              string   `json:"secret,omitempty"`
	Tags                []string `json:"tags,omitempty"` // only runs with one of them
	SignatureAlgorithms []string `json:"signatureAlgorithms,omitempty"`
}

// RegisteredWebhook is what a registration comes to. Secret is set if the host made
// it, and is shown this once.
type RegisteredWebhook struct {
	WebhookID           string   `json:"webhookId"`
	Secret              string   `json:"secret,omitempty"`
	SignatureAlgorithms []string `json:"signatureAlgorithms,omitempty"`

	Raw json.RawMessage `json:"-"`
}

// RegisterWebhook has events delivered to a URL. It is sent once: a second try
// could make a second subscription.
func (c *Client) RegisterWebhook(ctx context.Context, r WebhookRegistration) (*RegisteredWebhook, error) {
	var out RegisteredWebhook
	raw, err := c.change(ctx, "/webhooks", r, &out)
	out.Raw = raw
	return &out, err
}

// change posts a body and decodes the answer.
func (c *Client) change(ctx context.Context, path string, body, out any) (json.RawMessage, error) {
	k := call{method: http.MethodPost, path: path}
	if body != nil {
		b, err := encode(body)
		if err != nil {
			return nil, err
		}
		k.body = b
	}
	a, err := c.do(ctx, k)
	if err != nil {
		return nil, err
	}
	return a.into(out)
}

// Webhook is a subscription. It holds no secret.
type Webhook struct {
	WebhookID               string    `json:"webhookId"`
	URL                     string    `json:"url"`
	Events                  []string  `json:"events"`
	Tags                    []string  `json:"tags,omitempty"`
	SignatureAlgorithms     []string  `json:"signatureAlgorithms"`
	State                   string    `json:"state"` // active or disabled
	DisabledAt              time.Time `json:"disabledAt,omitzero"`
	Reason                  string    `json:"reason,omitempty"` // why it was disabled
	SecretRotatedAt         time.Time `json:"secretRotatedAt,omitzero"`
	PreviousSecretExpiresAt time.Time `json:"previousSecretExpiresAt,omitzero"`
	CreatedAt               time.Time `json:"createdAt"`
	Major                   int       `json:"major,omitempty"` // of the protocol it was registered under, if that is an older one

	Raw json.RawMessage `json:"-"`
}

// WebhookPage is one page of subscriptions, the oldest first.
type WebhookPage struct {
	Webhooks   []Webhook `json:"webhooks"`
	NextCursor string    `json:"nextCursor,omitempty"` // empty on the last page

	Raw json.RawMessage `json:"-"`
}

// ListWebhooks reads one page of the caller's subscriptions.
func (c *Client) ListWebhooks(ctx context.Context, o PageOptions) (*WebhookPage, error) {
	a, err := c.do(ctx, call{method: http.MethodGet, path: hostPath + "/webhooks", query: o.query(), again: true})
	if err != nil {
		return nil, err
	}
	var out WebhookPage
	out.Raw, err = a.into(&out)
	return &out, err
}

// GetWebhook reads a subscription.
func (c *Client) GetWebhook(ctx context.Context, id string) (*Webhook, error) {
	a, err := c.do(ctx, call{method: http.MethodGet, path: hostPath + "/webhooks/" + Segment(id), again: true})
	if err != nil {
		return nil, err
	}
	var out Webhook
	out.Raw, err = a.into(&out)
	return &out, err
}

// DeleteWebhook ends a subscription. Nothing more is sent to it.
func (c *Client) DeleteWebhook(ctx context.Context, id string) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: "/webhooks/" + Segment(id)})
	return err
}

// EnableWebhook makes a subscription active that the host has disabled, and has
// delivered what has waited.
func (c *Client) EnableWebhook(ctx context.Context, id string) (*Webhook, error) {
	var out Webhook
	raw, err := c.change(ctx, hostPath+"/webhooks/"+Segment(id)+":enable", nil, &out)
	out.Raw = raw
	return &out, err
}

// Rotation says for how long the secret before a rotation counts.
type Rotation struct {
	RotatedAt               time.Time `json:"rotatedAt"`
	PreviousSecretExpiresAt time.Time `json:"previousSecretExpiresAt"`

	Raw json.RawMessage `json:"-"`
}

// RotateWebhookSecret gives a subscription another secret (see NewWebhookSecret).
// Only one that was registered with standard-webhooks-1 can have it.
func (c *Client) RotateWebhookSecret(ctx context.Context, id, secret string) (*Rotation, error) {
	var out Rotation
	raw, err := c.change(ctx, "/webhooks/"+Segment(id)+"/rotate-secret", struct {
		Secret string `json:"secret"`
	}{secret}, &out)
	out.Raw = raw
	return &out, err
}

// DeadLetter names a delivery that the host has given up. It holds nothing of what
// was sent or answered: the event is in the run's log.
type DeadLetter struct {
	DeliveryID     string    `json:"deliveryId"`
	WebhookID      string    `json:"webhookId"`
	RunID          string    `json:"runId"`
	EventID        string    `json:"eventId"`
	EventType      string    `json:"eventType"`
	Attempts       int       `json:"attempts"`
	Reason         string    `json:"reason"`
	LastStatus     int       `json:"lastStatus,omitempty"` // 0 if no answer came
	DeadLetteredAt time.Time `json:"deadLetteredAt"`
	ExpiresAt      time.Time `json:"expiresAt"`
}

// DeadLetterPage is one page of dead letters, the newest first.
type DeadLetterPage struct {
	Deliveries []DeadLetter `json:"deliveries"`
	NextCursor string       `json:"nextCursor,omitempty"` // empty on the last page

	Raw json.RawMessage `json:"-"`
}

// ListDeadLetters reads one page of what could not be delivered to a subscription.
func (c *Client) ListDeadLetters(ctx context.Context, id string, o PageOptions) (*DeadLetterPage, error) {
	a, err := c.do(ctx, call{method: http.MethodGet, path: "/webhooks/" + Segment(id) + "/dead-letters", query: o.query(), again: true})
	if err != nil {
		return nil, err
	}
	var out DeadLetterPage
	out.Raw, err = a.into(&out)
	return &out, err
}
