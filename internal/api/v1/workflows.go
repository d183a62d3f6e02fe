package v1

import (
	"net/http"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/go-json-experiment/json"
)

func (a *API) getWorkflow(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	id := r.Params["workflowId"]
	if !ids.ValidAuthored(id) {
		return problem.New(problem.NotFound, "no workflow %q", id).With("workflowId", id)
	}
	wf, err := a.host.Workflow(r.Context(), c, id, "")
	if err != nil {
		return err
	}
	return api.Tagged(w, r, wf.ETag(), wf.Definition)
}

// postWorkflow registers the definition in the body under the id it names.
func (a *API) postWorkflow(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	b, err := api.ReadBody(w, r.Request, a.host.Limits().MaxBodyBytes)
	if err != nil {
		return err
	}
	if b == nil {
		return problem.Invalid("body", "a workflow definition is required")
	}
	if err := api.CheckDepth(b); err != nil {
		return err
	}
	// Only whose it is; everything else about it is said by the definition's parser.
	var named struct {
		ID string `json:"id"`
	}
	_ = json.Unmarshal(b, &named)
	info, err := a.host.PutWorkflow(r.Context(), c, named.ID, b)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if info.Created {
		status = http.StatusCreated
	}
	w.Header().Set("Location", "/v1/workflows/"+info.WorkflowID)
	return api.JSON(w, status, map[string]any{
		"workflowId": info.WorkflowID, "id": info.WorkflowID, "version": info.Version, "name": info.Name, "createdAt": info.CreatedAt,
	})
}
