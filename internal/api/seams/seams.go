package seams

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/go-json-experiment/json/jsontext"
)

// Prefix is the path space of the seams.
const Prefix = "/conformance/seams/"

// API serves the seams of a host.
type API struct {
	host   *host.Host
	keys   *identity.APIKeys
	server *api.Server
}

// New makes the API. It is an http.Handler for the paths under Prefix.
func New(h *host.Host, keys *identity.APIKeys, log *slog.Logger) *API {
	a := &API{host: h, keys: keys}
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
		c, err := a.keys.Authenticate(r.Context(), r.Header.Get("Authorization"))
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

type seedRequest struct {
	Era    *int   `json:"eventLogSchemaVersion"`
	Status string `json:"status"`
	Events []struct {
		Type        string         `json:"type"`
		Sequence    *int64         `json:"sequence"`
		Payload     jsontext.Value `json:"payload"`
		Timestamp   string         `json:"timestamp"`
		CausationID string         `json:"causationId"`
	} `json:"events"`
}

func (a *API) seed(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	var b seedRequest
	if err := a.body(w, r, &b); err != nil {
		return err
	}
	if b.Era == nil || *b.Era != 2 {
		return problem.Invalid("eventLogSchemaVersion", "want 2, the era of v1")
	}
	in := host.SeedEra2{Status: b.Status}
	for i := range b.Events {
		e := &b.Events[i]
		if e.Sequence == nil || e.Payload == nil {
			return problem.Invalid("events", "event %d needs a sequence and a payload", i)
		}
		at := time.Time{}
		if e.Timestamp != "" {
			var err error
			if at, err = time.Parse(time.RFC3339, e.Timestamp); err != nil {
				return problem.Invalid("events", "the timestamp of event %d is no RFC 3339 time", i)
			}
		}
		in.Events = append(in.Events, host.SeedEvent{Type: e.Type, Sequence: *e.Sequence, Payload: e.Payload, Timestamp: at, CausationID: e.CausationID})
	}
	id, err := a.host.SeedEra2(r.Context(), c, in)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusCreated, map[string]string{"runId": id.String()})
}

type receiveRequest struct {
	Secret  string            `json:"secret"`
	Headers map[string]string `json:"headers"`
	Body    *string           `json:"body"`
}

type verdict struct {
	Accepted bool   `json:"accepted"`
	Reason   string `json:"reason,omitzero"`
}

func (a *API) receive(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	var b receiveRequest
	if err := a.body(w, r, &b); err != nil {
		return err
	}
	for name, missing := range map[string]bool{"secret": b.Secret == "", "headers": b.Headers == nil, "body": b.Body == nil} {
		if missing {
			return problem.Invalid(name, "is required")
		}
	}
	reason, err := a.host.ReceiveDelivery(c, b.Secret, b.Headers, *b.Body)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusOK, verdict{reason == "", reason})
}
