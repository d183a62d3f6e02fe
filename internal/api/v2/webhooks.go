package v2

import (
	"net/http"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
)

type webhookBody struct {
	URL                 filled    `json:"url"`
	Events              []string  `json:"events"`
	Secret              filled    `json:"secret"`
	Tags                []string  `json:"tags"`
	SignatureAlgorithms *[]string `json:"signatureAlgorithms"`
}

func (a *API) registerWebhook(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	var b webhookBody
	if err := a.body(w, r, &b, false); err != nil {
		return err
	}
	reg := host.RegisterWebhook{URL: string(b.URL), Events: b.Events, Secret: string(b.Secret), Tags: b.Tags}
	if b.SignatureAlgorithms != nil {
		reg.SignatureAlgorithms = append([]string{}, *b.SignatureAlgorithms...)
	}
	out, err := a.host.RegisterWebhook(r.Context(), c, reg)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusCreated, out)
}

// onHook is an operation on one subscription.
func (a *API) onHook(h func(w http.ResponseWriter, r *api.Request, c identity.Caller, id ids.Run) error) handler {
	return func(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
		id, err := r.RunID("webhookId") // the same shape
		if err != nil {
			return err
		}
		return h(w, r, c, id)
	}
}

func (a *API) unregisterWebhook(w http.ResponseWriter, r *api.Request, c identity.Caller, id ids.Run) error {
	if err := a.host.UnregisterWebhook(r.Context(), c, id); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

type rotateBody struct {
	Secret filled `json:"secret"`
}

func (a *API) rotateWebhookSecret(w http.ResponseWriter, r *api.Request, c identity.Caller, id ids.Run) error {
	var b rotateBody
	if err := a.body(w, r, &b, false); err != nil {
		return err
	}
	out, err := a.host.RotateWebhookSecret(r.Context(), c, id, string(b.Secret))
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusOK, out)
}

func (a *API) listDeadLetters(w http.ResponseWriter, r *api.Request, c identity.Caller, id ids.Run) error {
	cursor, limit, err := a.page(r)
	if err != nil {
		return err
	}
	page, err := a.host.DeadLetters(r.Context(), c, id, cursor, limit)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusOK, page)
}

func (a *API) listWebhooks(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	cursor, limit, err := a.page(r)
	if err != nil {
		return err
	}
	page, err := a.host.ListWebhooks(r.Context(), c, cursor, limit)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusOK, page)
}

func (a *API) getWebhook(w http.ResponseWriter, r *api.Request, c identity.Caller, id ids.Run) error {
	info, err := a.host.Webhook(r.Context(), c, id)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusOK, info)
}

func (a *API) enableWebhook(w http.ResponseWriter, r *api.Request, c identity.Caller, id ids.Run) error {
	info, err := a.host.EnableWebhook(r.Context(), c, id)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusOK, info)
}

// webhookRoutes are the protocol's operations on subscriptions, and the host's own.
func (a *API) webhookRoutes(limit, cursor api.Param) []api.Route {
	const (
		surface = "webhooks.md §Surfaces"
		own     = "/host/fermata/webhooks"
	)
	ok := func(schema, what string) map[int]api.Response {
		return map[int]api.Response{200: {Description: what, Schema: schema}}
	}
	return []api.Route{
		{
			Method: "POST", Pattern: "/webhooks", ID: "registerWebhook", ShowsSecret: true, Spec: surface, Protocol: true,
			Summary: "Have events delivered to a URL.", Scope: identity.WebhooksManage, Body: &api.Body{Schema: "webhook-registration"},
			Returns: map[int]api.Response{201: {Description: "What matches from now on is delivered. A secret the host made is shown this once.", Schema: "webhook-registered"}},
			Errors:  []int{413, 415, 422, 429}, Handle: a.as(a.registerWebhook),
		},
		{
			Method: "DELETE", Pattern: "/webhooks/{webhookId}", ID: "unregisterWebhook", Spec: surface, Protocol: true,
			Summary: "End a subscription, with what was due to it.", Scope: identity.WebhooksManage,
			Returns: map[int]api.Response{204: {Description: "Nothing more is sent to it."}}, Handle: a.as(a.onHook(a.unregisterWebhook)),
		},
		{
			Method: "POST", Pattern: "/webhooks/{webhookId}/rotate-secret", ID: "rotateWebhookSecret", ShowsSecret: true, Protocol: true,
			Spec: "webhooks.md §Standard Webhooks", Summary: "Give a subscription another secret; for a while both sign.",
			Scope: identity.WebhooksManage, Body: &api.Body{Schema: "webhook-rotation"},
			Returns: ok("webhook-rotated", "The new secret signs."), Errors: []int{413, 415}, Handle: a.as(a.onHook(a.rotateWebhookSecret)),
		},
		{
			Method: "GET", Pattern: "/webhooks/{webhookId}/dead-letters", ID: "listWebhookDeadLetters", Protocol: true,
			Spec: "webhooks.md §Dead letters", Summary: "Deliveries that were given up, the newest first, without what they held.",
			Scope: identity.WebhooksManage, Query: []api.Param{limit, cursor},
			Returns: ok("webhook-dead-letter-page", "A page of dead letters."), Handle: a.as(a.onHook(a.listDeadLetters)),
		},
		{
			Method: "GET", Pattern: own, ID: "listWebhooks", Scope: identity.WebhooksManage,
			Summary: "The caller's subscriptions, without their secrets.", Query: []api.Param{limit, cursor},
			Returns: ok("webhook-list-response", "A page of subscriptions."), Handle: a.as(a.listWebhooks),
		},
		{
			Method: "GET", Pattern: own + "/{webhookId}", ID: "getWebhook", Scope: identity.WebhooksManage,
			Summary: "A subscription, without its secret.", Returns: ok("webhook", "The subscription."), Handle: a.as(a.onHook(a.getWebhook)),
		},
		{
			Method: "POST", Pattern: own + "/{webhookId}:enable", ID: "enableWebhook", Scope: identity.WebhooksManage,
			Summary: "Make a subscription active that was disabled, and deliver what has waited.",
			Returns: ok("webhook", "The subscription."), Handle: a.as(a.onHook(a.enableWebhook)),
		},
	}
}
