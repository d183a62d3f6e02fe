package host

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
)

// WebhookInfo describes a subscription. It holds no secret.
type WebhookInfo struct {
	WebhookID               string   `json:"webhookId"`
	URL                     string   `json:"url"`
	Events                  []string `json:"events"`
	Tags                    []string `json:"tags,omitzero"`
	SignatureAlgorithms     []string `json:"signatureAlgorithms"`
	State                   string   `json:"state"` // active or disabled
	DisabledAt              string   `json:"disabledAt,omitzero"`
	Reason                  string   `json:"reason,omitzero"`
	SecretRotatedAt         string   `json:"secretRotatedAt,omitzero"`
	PreviousSecretExpiresAt string   `json:"previousSecretExpiresAt,omitzero"`
	CreatedAt               string   `json:"createdAt"`
	Major                   int      `json:"major,omitzero"` // of the protocol, if it is an older one
}

func hookInfo(s *store.Subscription) WebhookInfo {
	i := WebhookInfo{
		WebhookID: s.Tenant + "/" + s.ID, URL: s.URL, Events: s.Events, Tags: s.Tags, SignatureAlgorithms: s.Algorithms,
		State: "active", SecretRotatedAt: run.Stamp(s.RotatedAt), PreviousSecretExpiresAt: run.Stamp(s.PreviousUntil),
		CreatedAt: run.Stamp(s.CreatedAt), Major: s.Major,
	}
	if len(i.SignatureAlgorithms) == 0 {
		i.SignatureAlgorithms = webhookSchemes()[:1]
	}
	if !s.DisabledAt.IsZero() {
		i.State, i.DisabledAt, i.Reason = "disabled", run.Stamp(s.DisabledAt), s.Reason
	}
	return i
}

// WebhookPage is one page of subscriptions, the oldest first.
type WebhookPage struct {
	Webhooks   []WebhookInfo `json:"webhooks"`
	NextCursor string        `json:"nextCursor,omitzero"`
}

// Webhook reads a subscription.
func (h *Host) Webhook(ctx context.Context, c identity.Caller, id ids.Run) (WebhookInfo, error) {
	if err := h.admitHook(c, id); err != nil {
		return WebhookInfo{}, err
	}
	s, err := h.hook(ctx, id)
	return hookInfo(&s), err
}

// ListWebhooks reads a page of the caller's subscriptions.
func (h *Host) ListWebhooks(ctx context.Context, c identity.Caller, cursor string, limit int) (WebhookPage, error) {
	if err := h.hooking(c); err != nil {
		return WebhookPage{}, err
	}
	key, after := "webhooks\x00"+c.Tenant(), ""
	if cursor != "" {
		var ok bool
		if after, ok = readCursor(cursor, key); !ok {
			return WebhookPage{}, problem.Invalid("cursor", "is not a cursor of this list")
		}
	}
	if limit == 0 {
		limit = defaultPage
	}
	limit = min(limit, h.cfg.Limits.MaxPageSize)
	rows, err := h.store.Webhooks().List(ctx, c.Tenant(), after, limit+1)
	if err != nil {
		return WebhookPage{}, err
	}
	page := WebhookPage{Webhooks: []WebhookInfo{}}
	if len(rows) > limit {
		rows = rows[:limit]
		page.NextCursor = makeCursor(rows[limit-1].ID, key)
	}
	for i := range rows {
		page.Webhooks = append(page.Webhooks, hookInfo(&rows[i]))
	}
	return page, nil
}

// DeadLetter names a delivery that was given up. It holds nothing of what was sent
// or answered (spec v2 webhooks.md §Dead letters).
type DeadLetter struct {
	DeliveryID     string `json:"deliveryId"`
	WebhookID      string `json:"webhookId"`
	RunID          string `json:"runId"`
	EventID        string `json:"eventId"`
	EventType      string `json:"eventType"`
	Attempts       int    `json:"attempts"`
	Reason         string `json:"reason"`
	LastStatus     int    `json:"lastStatus,omitzero"`
	DeadLetteredAt string `json:"deadLetteredAt"`
	ExpiresAt      string `json:"expiresAt"`
}

// DeadLetterPage is one page of dead letters, the newest first.
type DeadLetterPage struct {
	Deliveries []DeadLetter `json:"deliveries"`
	NextCursor string       `json:"nextCursor,omitzero"`
}

// DeadLetters reads what could not be delivered to a subscription.
func (h *Host) DeadLetters(ctx context.Context, c identity.Caller, id ids.Run, cursor string, limit int) (DeadLetterPage, error) {
	if err := h.admitHook(c, id); err != nil {
		return DeadLetterPage{}, err
	}
	if limit == 0 {
		limit = defaultPage
	}
	limit = min(limit, h.cfg.Limits.MaxPageSize)
	key := "dead letters\x00" + id.String()
	q := store.DeadLetterQuery{Tenant: id.Tenant, Subscription: id.Opaque, Now: h.clock.Now(), Limit: limit + 1}
	if cursor != "" {
		at, ok := readCursor(cursor, key)
		ms, rest, _ := strings.Cut(at, ":")
		n, err := strconv.ParseInt(ms, 10, 64)
		if !ok || err != nil {
			return DeadLetterPage{}, problem.Invalid("cursor", "is not a cursor of this list")
		}
		q.BeforeAt, q.BeforeID = time.UnixMilli(n).UTC(), rest
	}
	if _, err := h.hook(ctx, id); err != nil {
		return DeadLetterPage{}, err
	}
	rows, err := h.store.Webhooks().DeadLetters(ctx, q)
	if err != nil {
		return DeadLetterPage{}, err
	}
	page := DeadLetterPage{Deliveries: []DeadLetter{}}
	if len(rows) > limit {
		rows = rows[:limit]
		last := rows[limit-1]
		page.NextCursor = makeCursor(strconv.FormatInt(last.At.UnixMilli(), 10)+":"+last.ID, key)
	}
	for _, d := range rows {
		page.Deliveries = append(page.Deliveries, DeadLetter{
			DeliveryID: d.Tenant + "/" + d.ID, WebhookID: d.Tenant + "/" + d.Subscription, RunID: d.Run.String(),
			EventID: d.EventID, EventType: d.EventType, Attempts: d.Attempts, Reason: d.Reason, LastStatus: d.LastStatus,
			DeadLetteredAt: run.Stamp(d.At), ExpiresAt: run.Stamp(d.ExpiresAt),
		})
	}
	return page, nil
}
