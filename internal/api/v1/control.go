package v1

import (
	"errors"
	"net/http"
	"unicode/utf8"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

func (a *API) controlRoutes() []api.Route {
	accepted := func(what string) map[int]api.Response {
		return map[int]api.Response{202: {Description: what, Schema: object}}
	}
	return []api.Route{
		{
			Method: "POST", Pattern: "/v1/runs/{runId}/cancel", ID: "cancelRun", Spec: "rest-endpoints.md", Scope: identity.RunsCancel,
			Summary: "End a run. One that is over is left as it is, and said so.", Body: &api.Body{Schema: object, Optional: true},
			Returns: ok(object, "The run's status afterwards."), Handle: a.as(a.cancelRun),
		},
		{
			Method: "POST", Pattern: "/v1/runs:bulk-cancel", ID: "bulkCancelRuns", Spec: "rest-endpoints.md", Scope: identity.RunsCancel,
			Summary: "End many runs, each by itself.", Body: &api.Body{Schema: object},
			Returns: ok(object, "One result for each id, in request order."), Handle: a.as(a.bulkCancel),
		},
		{
			Method: "POST", Pattern: "/v1/runs/{runId}:pause", ID: "pauseRun", Spec: "rest-endpoints.md", Scope: identity.RunsCancel,
			Summary: "Let a run stand still.", Body: &api.Body{Schema: object, Optional: true},
			Returns: accepted("The pause is durable."), Handle: a.as(a.pauseRun),
		},
		{
			Method: "POST", Pattern: "/v1/runs/{runId}:resume", ID: "resumeRun", Spec: "rest-endpoints.md", Scope: identity.RunsCancel,
			Summary: "Let a paused run go on.", Body: &api.Body{Schema: object, Optional: true},
			Returns: accepted("The run goes on."), Handle: a.as(a.resumeRun),
		},
	}
}

// loose reads an optional body of which v1 does not say that it is closed: what it
// holds beside the known is ignored.
func (a *API) loose(w http.ResponseWriter, r *api.Request, v any) error {
	var m map[string]jsontext.Value
	if err := a.door.Body(w, r, &m, true); err != nil || m == nil {
		return err
	}
	b, err := json.Marshal(m)
	if err != nil {
		return problem.Internal(err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		var sem *json.SemanticError
		if errors.As(err, &sem) && sem.JSONPointer != "" {
			return problem.Invalid(sem.JSONPointer.LastToken(), "is of the wrong type")
		}
		return problem.Invalid("body", "is malformed")
	}
	return nil
}

type reasonBody struct {
	Reason      string `json:"reason"`
	DrainPolicy string `json:"drainPolicy"`
}

type statusBody struct {
	RunID     string `json:"runId"`
	NodeID    string `json:"nodeId,omitzero"`
	Status    string `json:"status"`
	PausedAt  string `json:"pausedAt,omitzero"`
	ResumedAt string `json:"resumedAt,omitzero"`
}

// control reads what every operation on a run's course begins with.
func (a *API) control(w http.ResponseWriter, r *api.Request, c identity.Caller) (id ids.Run, b reasonBody, err error) {
	if id, err = a.run(r, c); err == nil {
		err = a.loose(w, r, &b)
	}
	return id, b, err
}

// cancelRun ends a run. In v1 a run that is over is no conflict: the answer is the
// status it has.
func (a *API) cancelRun(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	id, b, err := a.control(w, r, c)
	if err != nil {
		return err
	}
	status, err := a.host.CancelRun(r.Context(), c, id, b.Reason)
	if over, is := ended(err); is {
		status, err = over, nil
	}
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusOK, statusBody{RunID: id.Opaque, Status: status})
}

// ended is the status of a run that was refused something because it is over.
func ended(err error) (string, bool) {
	var p *problem.Error
	if !errors.As(err, &p) || p.Code != problem.RunTerminal {
		return "", false
	}
	status, is := p.Details["runStatus"].(string)
	return status, is
}

func (a *API) pauseRun(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	id, b, err := a.control(w, r, c)
	if err != nil {
		return err
	}
	at, err := a.host.PauseRun(r.Context(), c, id, b.Reason, b.DrainPolicy)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusAccepted, statusBody{RunID: id.Opaque, Status: run.Paused, PausedAt: run.Stamp(at)})
}

func (a *API) resumeRun(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	id, b, err := a.control(w, r, c)
	if err != nil {
		return err
	}
	at, err := a.host.ResumeRun(r.Context(), c, id, b.Reason)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusAccepted, statusBody{RunID: id.Opaque, Status: run.Running, ResumedAt: run.Stamp(at)})
}

type bulkBody struct {
	RunIDs []string `json:"runIds"`
	Reason string   `json:"reason"`
}

type bulkEntry struct {
	RunID  string         `json:"runId"`
	OK     bool           `json:"ok"`
	Status string         `json:"status,omitzero"`
	Error  jsontext.Value `json:"error,omitzero"`
}

const maxBulkReason = 512 // characters

func (a *API) bulkCancel(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	var b bulkBody
	if err := a.door.Body(w, r, &b, false); err != nil {
		return err
	}
	if utf8.RuneCountInString(b.Reason) > maxBulkReason {
		return problem.Invalid("reason", "has at most %d characters", maxBulkReason)
	}
	results, err := a.cancelled(r, c, b)
	if err != nil {
		return err
	}
	out := make([]bulkEntry, len(results))
	for i, x := range results {
		out[i] = entryOf(b.RunIDs[i], x)
	}
	return api.JSON(w, http.StatusOK, map[string]any{"results": out})
}

// cancelled cancels those of many ids that could be runs; the others fail in their
// own entries, as v1 has it.
func (a *API) cancelled(r *api.Request, c identity.Caller, b bulkBody) ([]host.BulkResult, error) {
	if limit := a.host.Limits().MaxBulk; len(b.RunIDs) > limit {
		return nil, problem.Invalid("runIds", "at most %d runs can be cancelled at once", limit).With("maxRunIds", limit)
	}
	out := make([]host.BulkResult, len(b.RunIDs))
	var bound []string
	for i, s := range b.RunIDs {
		id, err := runIn(s, c)
		switch {
		case s == "":
			out[i].Err = problem.Invalid("runIds", "is empty")
		case err != nil:
			out[i].Err = err
		default:
			bound = append(bound, id.String())
		}
	}
	if len(bound) == 0 && len(b.RunIDs) > 0 && c.Holds(identity.RunsCancel) {
		return out, nil
	}
	done, err := a.host.BulkCancel(r.Context(), c, bound, b.Reason)
	if err != nil {
		return nil, err
	}
	for i := range out {
		if out[i].Err == nil {
			out[i], done = done[0], done[1:]
		}
	}
	return out, nil
}

func entryOf(named string, x host.BulkResult) bulkEntry {
	if status, over := ended(x.Err); over && status == run.Cancelled {
		x.Status, x.Err = status, nil // it is what was asked for
	}
	if x.Err != nil {
		return bulkEntry{RunID: named, Error: words(problem.From(x.Err)).Envelope()}
	}
	return bulkEntry{RunID: named, OK: true, Status: x.Status}
}
