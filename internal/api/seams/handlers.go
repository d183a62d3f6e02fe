package seams

import (
	"net/http"
	"net/url"
	"time"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/go-json-experiment/json/jsontext"
)

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

type fireRequest struct {
	Seam     string `json:"seam"`
	Receiver string `json:"receiverUrl"`
}

func (a *API) fire(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	var b fireRequest
	if err := a.body(w, r, &b); err != nil {
		return err
	}
	if b.Seam == "" {
		return problem.Invalid("seam", "is required")
	}
	if b.Receiver != "" && !address(b.Receiver) {
		return problem.Invalid("receiverUrl", "is no http or https address")
	}
	id, err := a.host.FireSeam(r.Context(), c, b.Seam, b.Receiver)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusCreated, map[string]string{"runId": id.String()})
}

type retryRequest struct {
	Provider string `json:"providerUrl"`
}

func (a *API) retry(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	var b retryRequest
	if err := a.body(w, r, &b); err != nil {
		return err
	}
	if !address(b.Provider) {
		return problem.Invalid("providerUrl", "is no http or https address")
	}
	id, effect, err := a.host.RetryEffect(r.Context(), c, b.Provider)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusCreated, map[string]string{"runId": id.String(), "effectId": effect})
}

func address(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}
