package v2

import (
	"net/http"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/problem"
)

func (a *API) getWorkflow(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	id, err := r.Authored("workflowId")
	if err != nil {
		return err
	}
	version := ""
	if !r.Route.Protocol {
		if version, _, err = r.QueryOne("version"); err != nil {
			return err
		}
	}
	wf, err := a.host.Workflow(r.Context(), c, id, version)
	if err != nil {
		return err
	}
	return api.Tagged(w, r, wf.ETag(), wf.Definition)
}

// definition reads a workflow's text. It is decoded by the definition's own
// parser, which knows lines; here only size, type and depth are looked at.
func (a *API) definition(w http.ResponseWriter, r *api.Request) ([]byte, error) {
	b, err := api.ReadBody(w, r.Request, a.host.Limits().MaxBodyBytes)
	if err != nil {
		return nil, err
	}
	if b == nil {
		return nil, problem.Invalid("body", "a workflow definition is required")
	}
	return b, api.CheckDepth(b)
}

func (a *API) putWorkflow(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	id, err := r.Authored("workflowId")
	if err != nil {
		return err
	}
	b, err := a.definition(w, r)
	if err != nil {
		return err
	}
	info, err := a.host.PutWorkflow(r.Context(), c, id, b)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if info.Created {
		status = http.StatusCreated
	}
	return api.JSON(w, status, info)
}

func (a *API) validateWorkflow(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	b, err := a.definition(w, r)
	if err != nil {
		return err
	}
	wf, err := a.host.ValidateWorkflow(c, b)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusOK, map[string]any{
		"valid": true, "workflowId": wf.Def.ID, "version": wf.Def.Version, "digest": wf.Digest,
	})
}

func (a *API) deleteWorkflow(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	id, err := r.Authored("workflowId")
	if err != nil {
		return err
	}
	if err := a.host.DeleteWorkflow(r.Context(), c, id); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *API) page(r *api.Request) (cursor string, limit int, err error) {
	n, err := r.QueryInt("limit", 1, 1<<31-1, 0)
	if err != nil {
		return "", 0, err
	}
	cursor, _, err = r.QueryOne("cursor")
	return cursor, int(n), err
}

func (a *API) listWorkflows(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	cursor, limit, err := a.page(r)
	if err != nil {
		return err
	}
	page, err := a.host.ListWorkflows(r.Context(), c, cursor, limit)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusOK, page)
}

func (a *API) listSchedules(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	cursor, limit, err := a.page(r)
	if err != nil {
		return err
	}
	page, err := a.host.ListSchedules(r.Context(), c, cursor, limit)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusOK, page)
}

func (a *API) listInterrupts(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	cursor, limit, err := a.page(r)
	if err != nil {
		return err
	}
	page, err := a.host.ListInterrupts(r.Context(), c, cursor, limit)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusOK, page)
}
