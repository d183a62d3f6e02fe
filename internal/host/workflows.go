package host

import (
	"cmp"
	"context"
	"errors"

	"github.com/fermata-run/fermata/internal/audit"
	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
)

// WorkflowInfo describes a registered workflow without its definition.
type WorkflowInfo struct {
	WorkflowID string `json:"workflowId"`
	Version    string `json:"version"`
	Name       string `json:"name,omitzero"`
	Digest     string `json:"digest"`
	CreatedAt  string `json:"createdAt"`
	Created    bool   `json:"created"` // by this very request
}

// WorkflowPage is one page of workflows, by id.
type WorkflowPage struct {
	Workflows  []WorkflowInfo `json:"workflows"`
	NextCursor string         `json:"nextCursor,omitzero"`
}

// ValidateWorkflow checks a definition as registering it would.
func (h *Host) ValidateWorkflow(c identity.Caller, data []byte) (*flow.Workflow, error) {
	if err := h.allow(c, identity.ManifestRead); err != nil {
		return nil, err
	}
	return h.load(data)
}

func (h *Host) load(data []byte) (*flow.Workflow, error) {
	wf, err := flow.Check(data, h.cfg.Catalog)
	var issues flow.Issues
	if errors.As(err, &issues) {
		return nil, refuse(issues)
	}
	return wf, err
}

// maxIssues bounds what one refusal lists. Nobody mends more at a time.
const maxIssues = 100

// refuse turns what is wrong with a definition into one refusal that lists all
// of it. A missing capability has a code of its own (spec v2 runs.md §Refusals).
func refuse(issues flow.Issues) error {
	list := make([]map[string]any, 0, len(issues))
	missing, first := "", flow.Issue{}
	for _, i := range issues[:min(len(issues), maxIssues)] {
		m := map[string]any{"field": i.Field, "message": i.Message}
		if i.Line > 0 {
			m["line"] = i.Line
		}
		if i.Capability != "" {
			m["requiredCapability"] = i.Capability
			if missing == "" {
				missing, first = i.Capability, i
			}
		}
		list = append(list, m)
	}
	if missing != "" {
		p := problem.New(problem.CapabilityRequired, "%s", issues[0].String()).
			With("requiredCapability", missing).With("issues", list)
		if first.TypeID != "" {
			p = p.With("offendingTypeId", first.TypeID).With("nodeId", first.NodeID)
		}
		return p
	}
	return problem.Invalid(cmp.Or(issues[0].Field, "body"), "%s", issues[0].String()).With("issues", list)
}

// PutWorkflow registers a version of a workflow. A version never changes: the
// same definition again is fine, another one under the same version is not.
func (h *Host) PutWorkflow(ctx context.Context, c identity.Caller, id string, data []byte) (WorkflowInfo, error) {
	if err := h.allow(c, identity.WorkflowsWrite); err != nil {
		return WorkflowInfo{}, err
	}
	wf, err := h.load(data)
	if err != nil {
		return WorkflowInfo{}, err
	}
	if wf.Def.ID != id {
		return WorkflowInfo{}, problem.Invalid("id", "the definition is of workflow %q, not %q", wf.Def.ID, id)
	}
	if t := wf.Def.TenantID; t != "" && t != c.Tenant() {
		return WorkflowInfo{}, problem.New(problem.IDTenantMismatch, "tenantId names another tenant").With("field", "tenantId")
	}
	if err := h.holdsSecret(c.Tenant(), "body", string(data)); err != nil {
		return WorkflowInfo{}, err
	}
	row := store.Workflow{
		Tenant: c.Tenant(), ID: id, Version: wf.Def.Version, Digest: wf.Digest, Definition: wf.Raw, CreatedAt: h.clock.Now(),
	}
	if row.Schedules, err = h.schedules(c, wf); err != nil {
		return WorkflowInfo{}, err
	}
	d := deed{action: "workflow.register", target: audit.Target{Type: "workflow", ID: id}}.with("version", row.Version).with("digest", row.Digest)
	created, err := audited(ctx, h, c, d, func(ctx context.Context, _ *store.Draft) (bool, error) {
		return h.store.Workflows().Put(ctx, row)
	})
	if errors.Is(err, store.ErrExists) {
		return WorkflowInfo{}, problem.New(problem.VersionConflict,
			"workflow %s has a version %s with another definition; give the new one a new version", id, wf.Def.Version).
			With("workflowId", id).With("version", wf.Def.Version)
	}
	if err != nil {
		return WorkflowInfo{}, err
	}
	if len(row.Schedules) > 0 {
		h.rescheduled()
	}
	info := infoOf(row)
	info.Name, info.Created = wf.Def.Name, created
	return info, nil
}

func infoOf(w store.Workflow) WorkflowInfo {
	return WorkflowInfo{WorkflowID: w.ID, Version: w.Version, Digest: w.Digest, CreatedAt: run.Stamp(w.CreatedAt)}
}

// Definition is a workflow's definition as a caller may see it.
type Definition struct {
	store.Workflow
	Masked bool // something of it is hidden from this caller
}

// ETag changes with what is shown: with the definition, and with whether it is masked.
func (w *Definition) ETag() string {
	if w.Masked {
		return `"` + w.Digest + `-masked"`
	}
	return `"` + w.Digest + `"`
}

// Workflow reads a definition: the latest version, or the one named. Whoever may
// change workflows gets it as it is; to others the default value of a variable
// that is declared sensitive is masked, as the variable's value is in every run.
func (h *Host) Workflow(ctx context.Context, c identity.Caller, id, version string) (Definition, error) {
	if err := h.allow(c, identity.ManifestRead); err != nil {
		return Definition{}, err
	}
	w, err := h.store.Workflows().Get(ctx, c.Tenant(), id, version)
	if errors.Is(err, store.ErrNotFound) {
		return Definition{}, problem.New(problem.NotFound, "no workflow %q", id).With("workflowId", id)
	}
	if err != nil || c.Holds(identity.WorkflowsWrite) {
		return Definition{Workflow: w}, err
	}
	out := Definition{Workflow: w}
	out.Definition, out.Masked, err = maskDefaults(w.Definition)
	return out, err
}

// ListWorkflows reads a page of the caller's workflows.
func (h *Host) ListWorkflows(ctx context.Context, c identity.Caller, cursor string, limit int) (WorkflowPage, error) {
	if err := h.allow(c, identity.ManifestRead); err != nil {
		return WorkflowPage{}, err
	}
	key, after := "workflows\x00"+c.Tenant(), ""
	if cursor != "" {
		var ok bool
		if after, ok = readCursor(cursor, key); !ok {
			return WorkflowPage{}, problem.Invalid("cursor", "is not a cursor of this list")
		}
	}
	if limit == 0 {
		limit = defaultPage
	}
	limit = min(limit, h.cfg.Limits.MaxPageSize)
	rows, err := h.store.Workflows().List(ctx, c.Tenant(), after, limit+1)
	if err != nil {
		return WorkflowPage{}, err
	}
	page := WorkflowPage{Workflows: []WorkflowInfo{}}
	if len(rows) > limit {
		rows = rows[:limit]
		page.NextCursor = makeCursor(rows[limit-1].ID, key)
	}
	for _, r := range rows {
		info := infoOf(r)
		if def, _, err := flow.Parse(r.Definition); err == nil {
			info.Name = def.Name
		}
		page.Workflows = append(page.Workflows, info)
	}
	return page, nil
}

// DeleteWorkflow hides a workflow. Runs that it started with go on.
func (h *Host) DeleteWorkflow(ctx context.Context, c identity.Caller, id string) error {
	if err := h.allow(c, identity.WorkflowsWrite); err != nil {
		return err
	}
	d := deed{action: "workflow.delete", target: audit.Target{Type: "workflow", ID: id}}
	err := h.audits(ctx, c, d, func(ctx context.Context) error {
		err := h.store.Workflows().Delete(ctx, c.Tenant(), id)
		if errors.Is(err, store.ErrNotFound) && attemptIn(ctx).again {
			// Hidden, by an earlier try or otherwise, unless there never was one.
			_, err = h.store.Workflows().Versions(ctx, c.Tenant(), id)
		}
		return err
	})
	if errors.Is(err, store.ErrNotFound) {
		return problem.New(problem.NotFound, "no workflow %q", id).With("workflowId", id)
	}
	return err
}
