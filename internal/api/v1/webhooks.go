package v1

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
)

// major is that of this wire, as a subscription and a run's callback remember it.
const major = 1

type webhookBody struct {
	URL      string   `json:"url"`
	Events   []string `json:"events"`
	TenantID string   `json:"tenantId"`
	Tags     []string `json:"tags"`
	Secret   string   `json:"secret"`
}

type webhookAnswer struct {
	WebhookID         string `json:"webhookId"`
	Secret            string `json:"secret"`
	SecretFingerprint string `json:"secretFingerprint"`
}

// registerWebhook subscribes a URL under v1: its deliveries keep v1's form.
func (a *API) registerWebhook(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	var b webhookBody
	if err := a.door.Body(w, r, &b, false); err != nil {
		return err
	}
	events, err := canonical(b.Events)
	if err != nil {
		return err
	}
	out, err := a.host.RegisterWebhook(r.Context(), c, host.RegisterWebhook{
		URL: b.URL, Events: events, Secret: b.Secret, Tags: b.Tags, TenantID: b.TenantID, Major: major,
	})
	if err != nil {
		return err
	}
	secret := b.Secret
	if out.Secret != "" {
		secret = out.Secret
	}
	return api.JSON(w, http.StatusCreated, webhookAnswer{bare(out.WebhookID), secret, fingerprint(secret)})
}

// canonical are the events of a registration under the names that logs have. Names of
// this major are taken, too, where v1 has none like it.
func canonical(names []string) ([]string, error) {
	out := make([]string, len(names))
	for i, name := range names {
		row, known := event.LookupV1(name)
		if !known {
			row, known = event.Lookup(event.Type(name))
		}
		if !known {
			return nil, problem.Invalid(fmt.Sprintf("events[%d]", i), "%q is no event type of v1", name)
		}
		out[i] = string(row.Type)
	}
	return out, nil
}

// fingerprint names a secret in logs (v1 webhooks.md §Register).
func fingerprint(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:4])
}

// unregisterWebhook ends a subscription. v1 wants to be told its tenant; who leaves it
// out means his own.
func (a *API) unregisterWebhook(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	tenant, given, err := r.QueryOne("tenantId")
	if err != nil {
		return err
	}
	if !given || tenant == "" {
		tenant = c.Tenant()
	}
	id, err := ids.ReadRun(r.Params["webhookId"], tenant) // the same shape
	if err != nil {
		id = ids.Run{Tenant: tenant} // v1 knows no grammar: it is nobody's
	}
	err = a.host.UnregisterWebhook(r.Context(), c, id)
	if problem.Is(err, problem.IDTenantMismatch) {
		return problem.New(problem.Forbidden, "the webhook is another tenant's").With("field", "tenantId")
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *API) webhookRoutes() []api.Route {
	const spec = "webhooks.md §Endpoints"
	return []api.Route{
		{
			Method: "POST", Pattern: "/v1/webhooks", ID: "registerWebhook", Spec: spec, Scope: identity.WebhooksManage, ShowsSecret: true,
			Summary: "Have events delivered to a URL, in the form of v1.", Body: &api.Body{Schema: object},
			Returns: map[int]api.Response{201: {Description: "What matches from now on is delivered. The secret is shown this once.", Schema: object}},
			Errors:  []int{413, 422}, Handle: a.as(a.registerWebhook),
		},
		{
			Method: "DELETE", Pattern: "/v1/webhooks/{webhookId}", ID: "unregisterWebhook", Spec: spec, Scope: identity.WebhooksManage,
			Summary: "End a subscription, with what was due to it.",
			Returns: map[int]api.Response{204: {Description: "Nothing more is sent to it."}}, Handle: a.as(a.unregisterWebhook),
		},
	}
}
