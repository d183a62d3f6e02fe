package v1

import (
	"net/http"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/api/door"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/problem"
)

const maxSequence = 1<<53 - 1

// familyRoutes are the operations of families: those the host has, and those of
// which v1 says how a host answers that has not.
func (a *API) familyRoutes() []api.Route {
	sequence := func(name, what string) api.Param {
		return api.Param{Name: name, Description: what, Schema: `{"type":"integer","minimum":0}`}
	}
	rs := []api.Route{
		{
			Method: "GET", Pattern: "/v1/audit/verify", ID: "verifyAuditLog", Spec: "auth.md", Scope: identity.AuditRead,
			Summary: "Walk the audit log and say whether it holds.",
			Query:   []api.Param{sequence("fromSeq", "Where to begin; the start if absent."), sequence("toSeq", "Where to end, inclusive; the end if absent.")},
			Returns: ok(object, "The verdict, with the signed checkpoints of the range."), Handle: a.as(a.verifyAuditLog),
		},
		{
			Method: "GET", Pattern: "/v1/runs/{runId}/artifacts/{artifactId}", ID: "getArtifact", Spec: "rest-endpoints.md", Scope: identity.RunsRead,
			Summary: "An artifact of a run. This host makes none.", Returns: ok(object, "The artifact."), Handle: a.as(a.getArtifact),
		},
		{
			Method: "GET", Pattern: "/v1/runs/{runId}/eval-summary", ID: "getEvalSummary", Spec: "agent-evaluation.md", Scope: identity.RunsRead,
			Summary: "What came of an evaluation. This host runs none.", Returns: ok(object, "The summary."), Handle: a.as(a.getEvalSummary),
		},
	}
	for _, f := range []struct{ method, pattern, id, family string }{
		{"GET", "/v1/runs/{runId}/annotations", "listAnnotations", "feedback"},
		{"POST", "/v1/runs/{runId}/annotations", "createAnnotation", "feedback"},
		{"GET", "/v1/prompts/{templateId}", "getPromptTemplate", "prompts"},
		{"POST", "/v1/prompts", "createPromptTemplate", "prompts"},
		{"POST", "/v1/prompts:render", "renderPrompt", "prompts"},
		{"POST", "/v1/trigger-subscriptions", "createTriggerSubscription", "triggerBridge"},
	} {
		rs = append(rs, api.Route{
			Method: f.method, Pattern: f.pattern, ID: f.id, Scope: identity.RunsRead, ReadOnly: true, // nothing comes of it
			Summary: "Not provided: this host does not have the family " + f.family + ".",
			Returns: ok(object, "Never."), Errors: []int{http.StatusNotImplemented}, Handle: a.as(a.missing(f.family)),
		})
	}
	return rs
}

// missing answers for a family that is not advertised.
func (a *API) missing(family string) door.Handler {
	return func(_ http.ResponseWriter, _ *api.Request, c identity.Caller) error {
		return a.host.Unprovided(c, family)
	}
}

func (a *API) verifyAuditLog(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	f, err := a.facts()
	if err != nil {
		return problem.Internal(err)
	}
	if f.Audit == nil {
		return problem.New(problem.NotFound, "this host keeps no audit log that can be verified")
	}
	from, err := r.QueryInt("fromSeq", 0, maxSequence, 0)
	if err != nil {
		return err
	}
	to, err := r.QueryInt("toSeq", 0, maxSequence, host.ToTheEnd)
	if err != nil {
		return err
	}
	v, err := a.host.VerifyAudit(r.Context(), c, "", from, to)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusOK, v)
}

// getArtifact finds nothing, in a run that is there or not. Who asks is known first.
func (a *API) getArtifact(_ http.ResponseWriter, r *api.Request, c identity.Caller) error {
	if id, err := a.run(r, c); err == nil {
		if _, err := a.host.Head(r.Context(), c, id); err != nil {
			return err
		}
	}
	return problem.New(problem.NotFound, "no such artifact")
}

func (a *API) getEvalSummary(_ http.ResponseWriter, r *api.Request, c identity.Caller) error {
	id, err := a.run(r, c)
	if err != nil {
		return err
	}
	if _, err := a.host.Head(r.Context(), c, id); err != nil {
		return err
	}
	return problem.New(problem.NotFound, "the run is not an evaluation")
}
