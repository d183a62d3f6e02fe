package v2

import (
	"net/http"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/go-json-experiment/json/jsontext"
)

type forkBody struct {
	Mode              filled         `json:"mode"`
	FromSeq           jsontext.Value `json:"fromSeq"`
	RunOptionsOverlay overlayBody    `json:"runOptionsOverlay"`
}

type overlayBody struct {
	Configurable jsontext.Value `json:"configurable"`
	Tags         []string       `json:"tags"`
	Metadata     jsontext.Value `json:"metadata"`
}

type forkedBody struct {
	RunID       string `json:"runId"`
	SourceRunID string `json:"sourceRunId"`
	FromSeq     int64  `json:"fromSeq"`
	Mode        string `json:"mode"`
	Status      string `json:"status"`
	EventsURL   string `json:"eventsUrl"`
}

func (a *API) forkRun(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	id, err := r.RunID("runId")
	if err != nil {
		return err
	}
	var b forkBody
	if err := a.body(w, r, &b, false); err != nil {
		return err
	}
	f := host.ForkRun{Mode: string(b.Mode), Options: event.ForkOptions(b.RunOptionsOverlay)}
	if b.FromSeq != nil {
		n, ok := api.Sequence(b.FromSeq)
		if !ok {
			return problem.Invalid("fromSeq", "want a whole number that is not negative")
		}
		f.FromSeq = &n
	}
	out, err := a.host.ForkRun(r.Context(), c, id, f)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusCreated, forkedBody{
		out.ID.String(), out.Source.String(), out.FromSeq, out.Mode, out.Status, "/runs/" + out.ID.Segment() + "/events",
	})
}

func (a *API) diffRun(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	id, err := r.RunID("runId")
	if err != nil {
		return err
	}
	// Who may not read the run is told nothing of how to ask.
	if _, err := a.host.Head(r.Context(), c, id); err != nil {
		return err
	}
	v, given, err := r.QueryOne("against")
	if err != nil {
		return err
	}
	if !given {
		return problem.Invalid("against", "is required: the run to compare with")
	}
	against, err := ids.ReadRun(v, r.Home)
	if err != nil {
		return problem.Invalid("against", "%v", err)
	}
	out, err := a.host.DiffRun(r.Context(), c, id, against)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusOK, out)
}

func (a *API) getAncestry(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	id, err := r.RunID("runId")
	if err != nil {
		return err
	}
	out, err := a.host.Ancestry(r.Context(), c, id)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusOK, out)
}

func (a *API) getLineage(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	id, err := r.RunID("runId")
	if err != nil {
		return err
	}
	out, err := a.host.Lineage(r.Context(), c, id)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusOK, map[string]any{"runId": id.String(), "fork": out})
}

type seamRow struct {
	Seam          string `json:"seam"`
	Kind          string `json:"kind"`
	Guarded       bool   `json:"guarded"`
	GuardedBy     string `json:"guardedBy"`
	BranchReFires bool   `json:"branchReFires,omitzero"`
	Note          string `json:"note,omitzero"`
}

func (a *API) getSeams(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	seams, err := a.host.Seams(c)
	if err != nil {
		return err
	}
	rows := []seamRow{}
	for _, s := range seams {
		rows = append(rows, seamRow{s.Name, string(s.Kind), true, s.GuardedBy, s.BranchReFires, s.Note})
	}
	return api.JSON(w, http.StatusOK, map[string]any{
		"manifestVersion": "1", "seams": rows,
		"host": map[string]any{"name": "fermata", "build": build()},
	})
}

// forkRoutes are the routes of forks, diffs and ancestry.
func (a *API) forkRoutes(ok func(schema, what string) map[int]api.Response) []api.Route {
	return []api.Route{
		{
			Method: "POST", Pattern: "/runs/{runId}:fork", ID: "forkRun", Spec: "runs.md §Fork", Protocol: true,
			Summary: "Replay a run, or branch off from it.", Scope: identity.RunsCreate, Body: &api.Body{Schema: "fork-request"},
			Returns: map[int]api.Response{201: {Description: "The fork is durable and under way, with a log of its own.", Schema: "fork-response"}},
			Errors:  []int{409, 410, 413, 415, 422, 503}, Handle: a.as(a.forkRun),
		},
		{
			Method: "GET", Pattern: "/runs/{runId}:diff", ID: "diffRun", Spec: "runs.md §Diff and ancestry", Protocol: true,
			Summary: "How two runs differ.", Scope: identity.RunsRead,
			Query:   []api.Param{{Name: "against", Required: true, Description: "The run to compare with.", Schema: text}},
			Returns: ok("run-diff-response", "The differences, sequence by sequence."), Handle: a.as(a.diffRun),
		},
		{
			Method: "GET", Pattern: "/runs/{runId}/ancestry", ID: "getRunAncestry", Spec: "runs.md §Diff and ancestry", Protocol: true,
			Summary: "The run that dispatched this one.", Scope: identity.RunsRead,
			Returns: ok("run-ancestry-response", "The parent; null for a run nobody dispatched, a fork among them."), Handle: a.as(a.getAncestry),
		},
		{
			Method: "GET", Pattern: "/host/effect-seams", ID: "getEffectSeamManifest", Spec: "replay.md §The effect-seam manifest", Protocol: true,
			Summary: "Every way by which an effect leaves this host.", Scope: identity.ManifestRead,
			Returns: ok("effect-seam-manifest", "The seams that are wired, each guarded."), Handle: a.as(a.getSeams),
		},
		{
			Method: "GET", Pattern: "/host/fermata/runs/{runId}/fork", ID: "getForkLineage", Scope: identity.RunsRead,
			Summary: "Where a fork comes from.", Returns: ok(`{"type":"object"}`, "The source; null for a run that is no fork."),
			Handle: a.as(a.getLineage),
		},
	}
}
