package v1

import (
	"net/http"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/event/v1wire"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/go-json-experiment/json/jsontext"
)

func (a *API) forkRoutes() []api.Route {
	return []api.Route{
		{
			Method: "POST", Pattern: "/v1/runs/{runId}:fork", ID: "forkRun", Spec: "replay.md", Scope: identity.RunsCreate,
			Summary: "Replay a run, or branch off from it.", Body: &api.Body{Schema: object},
			Returns: map[int]api.Response{201: {Description: "The fork is durable and under way, with a log of its own.", Schema: object}},
			Errors:  []int{413, 422, 503}, Handle: a.as(a.forkRun),
		},
		{
			Method: "GET", Pattern: "/v1/runs/{runId}:diff", ID: "diffRun", Spec: "replay.md", Scope: identity.RunsRead,
			Summary: "How two runs differ.", Query: []api.Param{{Name: "against", Required: true, Description: "The run to compare with.", Schema: text}},
			Returns: ok(object, "The differences, sequence by sequence."), Handle: a.as(a.diffRun),
		},
		{
			Method: "GET", Pattern: "/v1/runs/{runId}/ancestry", ID: "getRunAncestry", Spec: "multi-agent-execution.md", Scope: identity.RunsRead,
			Summary: "The run that dispatched this one.", Returns: ok(object, "The parent; null for a run nobody dispatched."), Handle: a.as(a.getAncestry),
		},
	}
}

type forkBody struct {
	Mode              string         `json:"mode"`
	FromSeq           jsontext.Value `json:"fromSeq"`
	RunOptionsOverlay *struct {
		Configurable jsontext.Value `json:"configurable"`
		Tags         []string       `json:"tags"`
		Metadata     jsontext.Value `json:"metadata"`
	} `json:"runOptionsOverlay"`
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
	id, err := a.run(r, c)
	if err != nil {
		return err
	}
	var b forkBody
	if err := a.door.Body(w, r, &b, false); err != nil {
		return err
	}
	f := host.ForkRun{Mode: b.Mode}
	if o := b.RunOptionsOverlay; o != nil {
		f.Options, f.Written = event.ForkOptions{Tags: o.Tags, Metadata: o.Metadata}, o.Configurable
		if f.Options.Configurable, err = nested(o.Configurable); err != nil {
			return err
		}
	}
	if b.FromSeq != nil {
		n, ok := api.Sequence(b.FromSeq)
		if !ok {
			return problem.Invalid("fromSeq", "want a whole number that is not negative")
		}
		f.FromSeq = &n
	}
	out, err := a.host.ForkRun(r.Context(), c, id, f)
	if err != nil {
		return inFlat(err)
	}
	_, events := links(out.ID.Opaque)
	return api.JSON(w, http.StatusCreated, forkedBody{out.ID.Opaque, out.Source.Opaque, out.FromSeq, out.Mode, out.Status, events})
}

func (a *API) diffRun(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	id, err := a.run(r, c)
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
	if !given || v == "" {
		return problem.Invalid("against", "is required: the run to compare with")
	}
	against, err := runIn(v, c)
	if err != nil {
		return err
	}
	out, err := a.host.DiffRunIn(r.Context(), c, id, against, eventDoc)
	if err != nil {
		return err
	}
	out.A, out.B = id.Opaque, against.Opaque
	return api.JSON(w, http.StatusOK, out)
}

func (a *API) getAncestry(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	id, err := a.run(r, c)
	if err != nil {
		return err
	}
	out, err := a.host.Ancestry(r.Context(), c, id)
	if err != nil {
		return err
	}
	out.RunID = bare(out.RunID)
	if out.Parent != nil {
		p := *out.Parent
		p.RunID = bare(p.RunID)
		out.Parent = &p
	}
	return api.JSON(w, http.StatusOK, out)
}

// eventDoc is an event as v1 shows it.
func eventDoc(e *event.Event) []byte { return v1wire.Doc(e) }
