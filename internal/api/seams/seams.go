package seams

import (
	"log/slog"
	"net/http"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
)

// Prefix is the path space of the seams.
const Prefix = "/conformance/seams/"

// API serves the seams of a host.
type API struct {
	host   *host.Host
	auth   identity.Authenticator
	server *api.Server
}

// New makes the API. It is an http.Handler for the paths under Prefix.
func New(h *host.Host, auth identity.Authenticator, log *slog.Logger) *API {
	a := &API{host: h, auth: auth}
	a.server = api.NewServer(a.routes(), api.Options{Log: log, MaxCalls: 64,
		// No seam is an operation of the protocol: none has a version of it.
		Version: func(http.ResponseWriter, *http.Request, *api.Route) error { return nil }})
	return a
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.server.ServeHTTP(w, r) }

const (
	runID    = `{"$ref":"urn:fermata:schema:v2:ids#/$defs/runId"}`
	seedBody = `{"type":"object","additionalProperties":false,"required":["eventLogSchemaVersion","status","events"],"properties":{` +
		`"eventLogSchemaVersion":{"const":2},"status":{"enum":["running","completed","failed","cancelled"]},` +
		`"events":{"type":"array","minItems":1,"items":{"type":"object","additionalProperties":false,"required":["type","sequence","payload"],` +
		`"properties":{"type":{"type":"string"},"sequence":{"type":"integer","minimum":0},"payload":{"type":"object"},` +
		`"timestamp":{"type":"string","format":"date-time"},"causationId":{"type":"string"}}}}}}`
	fireBody = `{"type":"object","additionalProperties":false,"required":["seam"],"properties":{` +
		`"seam":{"type":"string","minLength":1},"receiverUrl":{"type":"string","format":"uri"}}}`
	retryBody = `{"type":"object","additionalProperties":false,"required":["providerUrl"],"properties":{` +
		`"providerUrl":{"type":"string","format":"uri"}}}`
	receiveBody = `{"type":"object","additionalProperties":false,"required":["secret","headers","body"],"properties":{` +
		`"secret":{"type":"string","minLength":1},"headers":{"type":"object","additionalProperties":{"type":"string"}},"body":{"type":"string"}}}`
)

// routes is the table of the seams this host can honestly offer.
func (a *API) routes() []api.Route {
	return []api.Route{
		{
			Method: "POST", Pattern: Prefix + "sample/event-log/seed", ID: "seedEra2EventLog", Spec: "persistence.md §The reader rule",
			Summary: "Store a run as a v1 host left it.", Scope: identity.Seams, Body: &api.Body{Schema: seedBody},
			Returns: map[int]api.Response{201: {Description: "The run.", Schema: `{"type":"object","properties":{"runId":` + runID + `}}`}},
			Handle:  a.as(a.seed),
		},
		{
			Method: "POST", Pattern: Prefix + "sample/effect-seams/fire", ID: "fireEffectSeam", Spec: "replay.md §Suppression",
			Summary: "Pass a listed effect seam once, inside a run.", Scope: identity.Seams, Body: &api.Body{Schema: fireBody},
			Returns: map[int]api.Response{201: {Description: "The run, which is over.", Schema: `{"type":"object"}`}},
			Handle:  a.as(a.fire),
		},
		{
			Method: "POST", Pattern: Prefix + "sample/test/idempotency/effect-retry", ID: "forceEffectTransportRetry", Spec: "idempotency.md §Layer 2",
			Summary: "Have one effect, attempted again where the transport fails.", Scope: identity.Seams, Body: &api.Body{Schema: retryBody},
			Returns: map[int]api.Response{201: {Description: "The run and the effect.", Schema: `{"type":"object"}`}},
			Handle:  a.as(a.retry),
		},
		{
			Method: "POST", Pattern: Prefix + "sample/webhooks/receive", ID: "receiveWebhookDelivery", Spec: "webhooks.md §Verification",
			Summary: "Verify a delivery as a subscriber would.", Scope: identity.Seams, ReadOnly: true, Body: &api.Body{Schema: receiveBody},
			Returns: map[int]api.Response{200: {Description: "The verdict.", Schema: `{"type":"object"}`}},
			Handle:  a.as(a.receive),
		},
	}
}

type handler func(w http.ResponseWriter, r *api.Request, c identity.Caller) error

// as authenticates before anything about the request is looked at.
func (a *API) as(h handler) func(http.ResponseWriter, *api.Request) error {
	return func(w http.ResponseWriter, r *api.Request) error {
		c, err := a.auth.Authenticate(r.Request)
		if err != nil {
			return err
		}
		return h(w, r, c)
	}
}

func (a *API) body(w http.ResponseWriter, r *api.Request, v any) error {
	b, err := api.ReadBody(w, r.Request, a.host.Limits().MaxBodyBytes)
	if err != nil {
		return err
	}
	return api.Decode(b, v)
}
