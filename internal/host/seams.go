package host

import (
	"context"
	"errors"

	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/go-json-experiment/json"
)

// SeamsProfile is the profile of hosts with conformance seams (spec v2
// conformance.md §The seams profile).
const SeamsProfile = "openwop-conformance-seams-v2"

// seam admits a caller to a seam: the host was started for it, and the credential
// has the scope.
func (h *Host) seam(c identity.Caller) error {
	if err := h.allow(c, identity.Seams); err != nil {
		return err
	}
	if !h.cfg.ConformanceSeams {
		return problem.New(problem.NotFound, "this host was not started for a conformance suite")
	}
	return nil
}

// ensureWorkflow registers a workflow of the seams' own, unless the tenant has one
// of that id. parts are the members of the definition that are not empty.
func (h *Host) ensureWorkflow(ctx context.Context, tenant, id string, parts map[string]any) error {
	_, err := h.store.Workflows().Get(ctx, tenant, id, "")
	if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	def := map[string]any{
		"id": id, "name": id, "version": "1", "edges": []any{}, "triggers": []any{}, "variables": []any{},
		"metadata": map[string]any{}, "settings": map[string]any{},
	}
	for name, v := range parts {
		def[name] = v
	}
	text, err := json.Marshal(def, json.Deterministic(true))
	if err != nil {
		return problem.Internal(err)
	}
	wf, err := flow.Check(text, h.cfg.Catalog)
	if err != nil {
		return problem.Internal(err)
	}
	_, err = h.store.Workflows().Put(ctx, store.Workflow{
		Tenant: tenant, ID: id, Version: wf.Def.Version, Digest: wf.Digest, Definition: wf.Raw, CreatedAt: h.clock.Now(),
	})
	return err
}
