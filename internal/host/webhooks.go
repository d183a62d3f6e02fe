package host

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"time"

	"github.com/fermata-run/fermata/internal/audit"
	"github.com/fermata-run/fermata/internal/egress"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/internal/webhook"
)

// Webhooks is what the host needs to serve subscriptions. With the zero value it
// serves none.
type Webhooks struct {
	Worker *webhook.Worker
	Egress *egress.Guard // judges URLs when they are registered
}

// ServesWebhooks reports whether subscriptions can be had.
func (h *Host) ServesWebhooks() bool { return h.cfg.Webhooks.Worker != nil }

const (
	maxWebhooks     = 100            // of one tenant
	secretOverlap   = 24 * time.Hour // for which two secrets count after a rotation
	letterRetention = 7 * 24 * time.Hour
)

// LetterRetention is how long a dead letter can be read.
func LetterRetention() time.Duration { return letterRetention }

// webhookSchemes are the schemes this host signs with (package webhook).
func webhookSchemes() []string { return []string{webhook.SchemeV1, webhook.SchemeStandard} }

// RegisterWebhook is the request of registerWebhook.
type RegisterWebhook struct {
	URL                 string
	Events              []string
	Secret              string
	Tags                []string
	SignatureAlgorithms []string // nil if not given

	TenantID string // if given, it must be the caller's
	Major    int    // of the protocol, whose form deliveries keep; 0 is this one
}

// RegisteredWebhook is its answer. Secret is set only if the host made it; nothing
// else ever shows it.
type RegisteredWebhook struct {
	WebhookID           string   `json:"webhookId"`
	Secret              string   `json:"secret,omitzero"`
	SignatureAlgorithms []string `json:"signatureAlgorithms,omitzero"`
}

// RegisterWebhook subscribes a URL to events of the caller's tenant (spec v2
// webhooks.md §Surfaces). From its answer on, every event that matches is
// delivered.
func (h *Host) RegisterWebhook(ctx context.Context, c identity.Caller, r RegisterWebhook) (RegisteredWebhook, error) {
	if err := h.hooking(c); err != nil {
		return RegisteredWebhook{}, err
	}
	if r.TenantID != "" && r.TenantID != c.Tenant() {
		return RegisteredWebhook{}, problem.New(problem.Forbidden, "the credential is not of this tenant").With("field", "tenantId")
	}
	if err := checkWebhook(&r); err != nil {
		return RegisteredWebhook{}, err
	}
	if err := h.checkHookURL(r.URL); err != nil {
		return RegisteredWebhook{}, err
	}
	s := store.Subscription{
		Tenant: c.Tenant(), URL: r.URL, Events: r.Events, Tags: r.Tags, Algorithms: r.SignatureAlgorithms,
		Secret: r.Secret, CreatedAt: h.clock.Now(), Major: r.Major,
	}
	try := attemptIn(ctx)
	if s.ID = try.run.Opaque; s.ID == "" {
		s.ID = h.engine.NewID(s.Tenant).Opaque
	}
	return audited(ctx, h, c, onHook("webhook.register", s.Tenant, s.ID).with("host", hostOf(s.URL)), func(ctx context.Context, _ *store.Draft) (RegisteredWebhook, error) {
		return h.register(ctx, r, s, try)
	})
}

// onHook is a deed on a subscription.
func onHook(action, tenant, id string) deed {
	return deed{action: action, target: audit.Target{Type: "webhook", ID: tenant + "/" + id}}
}

// hostOf is what of a URL may be kept for ever: a path or query may hold a secret.
func hostOf(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

func (h *Host) register(ctx context.Context, r RegisterWebhook, s store.Subscription, try attempt) (RegisteredWebhook, error) {
	if out, done, err := h.registered(ctx, try, s, r.Secret == ""); done || err != nil {
		return out, err
	}
	if s.Secret == "" {
		s.Secret = webhook.NewSecret()
	}
	if webhook.Standard(&s) {
		if err := h.verifyEndpoint(ctx, s); err != nil {
			return RegisteredWebhook{}, err
		}
	}
	err := h.store.Webhooks().Add(ctx, s, maxWebhooks)
	switch {
	case errors.Is(err, store.ErrFull):
		return RegisteredWebhook{}, problem.New(problem.StorageLimitExceeded, "a tenant has at most %d webhooks", maxWebhooks).With("limit", maxWebhooks)
	case errors.Is(err, store.ErrExists): // an earlier try came through after all
		if out, done, err := h.registered(ctx, try, s, r.Secret == ""); done || err != nil {
			return out, err
		}
		return RegisteredWebhook{}, problem.Internal(err)
	case err != nil:
		return RegisteredWebhook{}, err
	}
	return registeredAs(s, r.Secret == ""), nil
}

// registered finds what an earlier try of the request has registered.
func (h *Host) registered(ctx context.Context, a attempt, s store.Subscription, made bool) (RegisteredWebhook, bool, error) {
	if !a.again {
		return RegisteredWebhook{}, false, nil
	}
	is, err := h.store.Webhooks().Get(ctx, s.Tenant, s.ID)
	if errors.Is(err, store.ErrNotFound) {
		return RegisteredWebhook{}, false, nil
	}
	return registeredAs(is, made), err == nil, err
}

func registeredAs(s store.Subscription, made bool) RegisteredWebhook {
	out := RegisteredWebhook{WebhookID: s.Tenant + "/" + s.ID, SignatureAlgorithms: s.Algorithms}
	if made {
		out.Secret = s.Secret
	}
	return out
}

// verifyEndpoint asks a URL whether it wants deliveries, before anything is kept.
func (h *Host) verifyEndpoint(ctx context.Context, s store.Subscription) error {
	if !h.verifying.take(s.Tenant, h.clock.Now()) {
		e := problem.New(problem.RateLimited, "too many endpoints are being verified").With("scope", "tenant")
		e.RetryAfter = time.Minute
		return e
	}
	err := h.cfg.Webhooks.Worker.Verify(ctx, s.URL, s.Secret)
	var no webhook.ErrUnverified
	switch {
	case errors.As(err, &no):
		return problem.New(problem.WebhookEndpointUnverified, "%v", no).With("field", "url")
	case err != nil:
		return problem.Internal(err)
	}
	return nil
}

// hooking admits a caller to the operations on webhooks.
func (h *Host) hooking(c identity.Caller) error {
	if err := h.allow(c, identity.WebhooksManage); err != nil {
		return err
	}
	if h.cfg.Webhooks.Worker == nil {
		return problem.New(problem.NotFound, "this host serves no webhooks")
	}
	return nil
}

// admitHook admits a caller to one subscription: another tenant's is refused
// before anybody looks whether it is there.
func (h *Host) admitHook(c identity.Caller, id ids.Run) error {
	if err := h.hooking(c); err != nil {
		return err
	}
	return h.mine(c, id)
}

func (h *Host) hook(ctx context.Context, id ids.Run) (store.Subscription, error) {
	s, err := h.store.Webhooks().Get(ctx, id.Tenant, id.Opaque)
	return s, noHook(err)
}

func noHook(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return problem.New(problem.NotFound, "no such webhook")
	}
	return err
}

// checkHookURL judges a URL as it can be judged before it is called.
func (h *Host) checkHookURL(s string) error {
	u, err := url.Parse(s)
	if err == nil {
		err = h.cfg.Webhooks.Egress.CheckRegistration(u)
	}
	if err != nil {
		return problem.New(problem.WebhookURLRejected, "the URL cannot be delivered to: want https and a public host").With("field", "url")
	}
	return nil
}

// UnregisterWebhook ends a subscription. Nothing more is sent to it, whatever was
// due.
func (h *Host) UnregisterWebhook(ctx context.Context, c identity.Caller, id ids.Run) error {
	if err := h.admitHook(c, id); err != nil {
		return err
	}
	return h.audits(ctx, c, onHook("webhook.delete", id.Tenant, id.Opaque), func(ctx context.Context) error {
		err := h.store.Webhooks().Remove(ctx, id.Tenant, id.Opaque)
		if errors.Is(err, store.ErrNotFound) && attemptIn(ctx).again {
			return nil
		}
		return noHook(err)
	})
}

// RotatedSecret is the answer of rotateWebhookSecret. It holds no secret.
type RotatedSecret struct {
	RotatedAt               string `json:"rotatedAt"`
	PreviousSecretExpiresAt string `json:"previousSecretExpiresAt"`
}

// RotateWebhookSecret gives a subscription another secret. For a day deliveries are
// signed with both (spec v2 webhooks.md §Standard Webhooks, Rotation), so only a
// subscription whose signatures have room for two can have it.
func (h *Host) RotateWebhookSecret(ctx context.Context, c identity.Caller, id ids.Run, secret string) (RotatedSecret, error) {
	if err := h.admitHook(c, id); err != nil {
		return RotatedSecret{}, err
	}
	return audited(ctx, h, c, onHook("webhook.rotate-secret", id.Tenant, id.Opaque), func(ctx context.Context, _ *store.Draft) (RotatedSecret, error) {
		return h.rotateHook(ctx, id, secret)
	})
}

func (h *Host) rotateHook(ctx context.Context, id ids.Run, secret string) (RotatedSecret, error) {
	s, err := h.hook(ctx, id)
	if err != nil {
		return RotatedSecret{}, err
	}
	switch {
	case !webhook.Standard(&s):
		return RotatedSecret{}, problem.Invalid("webhookId", "only a webhook that was registered with %s can have its secret rotated", webhook.SchemeStandard)
	case webhook.StandardKey(secret) == nil:
		return RotatedSecret{}, problem.Invalid("secret", "want whsec_ and 24 to 64 bytes in base64")
	case secret == s.Secret && attemptIn(ctx).again:
		return rotatedAs(s.RotatedAt, s.PreviousUntil), nil
	case secret == s.Secret:
		return RotatedSecret{}, problem.Invalid("secret", "is the secret already")
	}
	at := h.clock.Now()
	until := at.Add(secretOverlap)
	if err := h.store.Webhooks().Rotate(ctx, id.Tenant, id.Opaque, secret, at, until); err != nil {
		return RotatedSecret{}, noHook(err)
	}
	return rotatedAs(at, until), nil
}

func rotatedAs(at, until time.Time) RotatedSecret {
	return RotatedSecret{RotatedAt: run.Stamp(at), PreviousSecretExpiresAt: run.Stamp(until)}
}

// EnableWebhook makes a subscription active that was disabled because its endpoint
// took nothing for too long. What has waited is delivered.
func (h *Host) EnableWebhook(ctx context.Context, c identity.Caller, id ids.Run) (WebhookInfo, error) {
	if err := h.admitHook(c, id); err != nil {
		return WebhookInfo{}, err
	}
	err := h.audits(ctx, c, onHook("webhook.enable", id.Tenant, id.Opaque), func(ctx context.Context) error {
		return noHook(h.store.Webhooks().Enable(ctx, id.Tenant, id.Opaque, h.clock.Now()))
	})
	if err != nil {
		return WebhookInfo{}, err
	}
	h.cfg.Webhooks.Worker.Wake()
	s, err := h.hook(ctx, id)
	return hookInfo(&s), err
}

// hasScheme reports whether a scheme is one of the host's.
func hasScheme(s string) bool { return slices.Contains(webhookSchemes(), s) }

// webhookFacets is what discovery says of webhooks.
func (h *Host) webhookFacets() map[string]any {
	return map[string]any{
		"signatureAlgorithms": webhookSchemes(),
		"retryPolicy":         map[string]any{"maxAttempts": h.cfg.Webhooks.Worker.Policy().MaxAttempts, "backoff": "exponential"},
		"deadLetter":          map[string]any{"retentionDays": int(letterRetention / (24 * time.Hour)), "maxPageSize": h.cfg.Limits.MaxPageSize},
		"secretRotation":      map[string]any{"overlapSeconds": int(secretOverlap / time.Second)},
	}
}
