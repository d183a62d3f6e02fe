package v1

import (
	"net/http"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/go-json-experiment/json/jsontext"
)

type createBody struct {
	WorkflowID   string         `json:"workflowId"`
	Inputs       jsontext.Value `json:"inputs"`
	TenantID     string         `json:"tenantId"`
	ScopeID      string         `json:"scopeId"`
	CallbackURL  string         `json:"callbackUrl"`
	Residency    jsontext.Value `json:"residency"`
	Mode         string         `json:"mode"`
	EvalSuiteRef string         `json:"evalSuiteRef"`
	AgentID      string         `json:"agentId"`
	Configurable jsontext.Value `json:"configurable"`
	Tags         []string       `json:"tags"`
	Metadata     jsontext.Value `json:"metadata"`
}

type createdBody struct {
	RunID     string `json:"runId"`
	Status    string `json:"status"`
	EventsURL string `json:"eventsUrl"`
	StatusURL string `json:"statusUrl"`
}

// links are where a run is found on this wire.
func links(id string) (status, events string) {
	status = Prefix + "/runs/" + id
	return status, status + "/events"
}

// either reads a header under its older name or its newer one.
func either(h http.Header, names ...string) ([]string, string) {
	for _, name := range names {
		if v := h.Values(name); len(v) > 0 {
			return v, name
		}
	}
	return nil, ""
}

func (a *API) createRun(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	if v, name := either(r.Header, "X-Force-Engine-Version", "OpenWOP-Force-Engine-Version"); v != nil {
		return problem.New(problem.ForceEngineForbidden, "the engine version can be forced with test credentials only").With("header", name)
	}
	dedup, name := either(r.Header, "X-Dedup", "OpenWOP-Dedup")
	if len(dedup) > 1 || len(dedup) == 1 && dedup[0] != "enforce" {
		return problem.Invalid(name, "the only value is enforce")
	}
	var b createBody
	if err := a.door.Body(w, r, &b, false); err != nil {
		return err
	}
	overlay, err := nested(b.Configurable)
	if err != nil {
		return err
	}
	out, err := a.host.CreateRun(r.Context(), c, host.CreateRun{
		WorkflowID: b.WorkflowID, Inputs: b.Inputs, TenantID: b.TenantID, ScopeID: b.ScopeID, Alone: len(dedup) == 1,
		CallbackURL: b.CallbackURL, Residency: b.Residency, Mode: b.Mode, EvalSuiteRef: b.EvalSuiteRef, AgentID: b.AgentID,
		Configurable: overlay, Written: b.Configurable, Tags: b.Tags, Metadata: b.Metadata, Major: major,
	})
	if err != nil {
		return inFlat(err)
	}
	status, events := links(out.ID.Opaque)
	w.Header().Set("Location", status)
	return api.JSON(w, http.StatusCreated, createdBody{out.ID.Opaque, out.Status, events, status})
}
