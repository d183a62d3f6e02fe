package v2

import (
	"net/http"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/run"
)

type ledgerBody struct {
	RunID   string       `json:"runId"`
	Effects []effectBody `json:"effects"`
}

type effectBody struct {
	EffectID     string `json:"effectId"`
	NodeID       string `json:"nodeId"`
	Attempt      int    `json:"attempt"`
	Keying       string `json:"keying"`
	State        string `json:"state"`
	At           string `json:"at"`
	InvocationID string `json:"invocationId,omitempty"`
	ProviderKey  string `json:"providerKey,omitempty"`
}

func (a *API) getRunEffects(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	id, err := r.RunID("runId")
	if err != nil {
		return err
	}
	list, err := a.host.Effects(r.Context(), c, id)
	if err != nil {
		return err
	}
	body := ledgerBody{RunID: id.String(), Effects: make([]effectBody, len(list))}
	for i, e := range list {
		body.Effects[i] = effectBody{
			EffectID: ids.Run{Tenant: id.Tenant, Opaque: e.EffectID}.String(), NodeID: e.NodeID, Attempt: e.Attempt,
			Keying: e.Keying, State: e.State, At: run.Stamp(e.At), InvocationID: e.InvocationID, ProviderKey: e.ProviderKey,
		}
	}
	return api.JSON(w, http.StatusOK, body)
}
