package v2

import (
	"errors"
	"net/http"
	"strconv"
	"unicode/utf8"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/go-json-experiment/json/jsontext"
)

type createBody struct {
	WorkflowID   filled         `json:"workflowId"`
	Inputs       jsontext.Value `json:"inputs"`
	Residency    jsontext.Value `json:"residency"`
	TenantID     filled         `json:"tenantId"`
	ScopeID      string         `json:"scopeId"`
	CallbackURL  filled         `json:"callbackUrl"`
	Mode         filled         `json:"mode"`
	EvalSuiteRef filled         `json:"evalSuiteRef"`
	AgentID      filled         `json:"agentId"`
	Configurable jsontext.Value `json:"configurable"`
	Tags         []string       `json:"tags"`
	Metadata     jsontext.Value `json:"metadata"`
}

// filled is a string that is not empty when it is given.
type filled string

// UnmarshalText implements encoding.TextUnmarshaler.
func (f *filled) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		return errors.New("must not be empty")
	}
	*f = filled(b)
	return nil
}

type createdBody struct {
	RunID     string `json:"runId"`
	Status    string `json:"status"`
	EventsURL string `json:"eventsUrl"`
	StatusURL string `json:"statusUrl"`
}

func (a *API) createRun(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	if v := r.Header.Get("OpenWOP-Force-Engine-Version"); v != "" {
		return problem.New(problem.ForceEngineForbidden, "the engine version can be forced with test credentials only")
	}
	dedup := r.Header.Values("OpenWOP-Dedup")
	if len(dedup) > 1 || len(dedup) == 1 && dedup[0] != "enforce" {
		return problem.Invalid("OpenWOP-Dedup", "the only value is enforce")
	}
	var b createBody
	if err := a.body(w, r, &b, false); err != nil {
		return err
	}
	out, err := a.host.CreateRun(r.Context(), c, host.CreateRun{
		WorkflowID: string(b.WorkflowID), Inputs: b.Inputs, TenantID: string(b.TenantID), ScopeID: b.ScopeID, Alone: len(dedup) == 1,
		CallbackURL: string(b.CallbackURL), Residency: b.Residency, Mode: string(b.Mode),
		EvalSuiteRef: string(b.EvalSuiteRef), AgentID: string(b.AgentID),
		Configurable: b.Configurable, Tags: b.Tags, Metadata: b.Metadata,
	})
	if err != nil {
		return err
	}
	at := "/runs/" + out.ID.Segment()
	return api.JSON(w, http.StatusCreated, createdBody{out.ID.String(), out.Status, at + "/events", at})
}

func (a *API) getRun(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	id, err := r.RunID("runId")
	if err != nil {
		return err
	}
	if r.Header.Get("If-None-Match") != "" {
		row, err := a.host.Head(r.Context(), c, id)
		if err != nil {
			return err
		}
		if tag := etagOf(row.ID, row.Seq); api.Matches(r.Header, tag) {
			w.Header().Set("ETag", tag)
			w.WriteHeader(http.StatusNotModified)
			return nil
		}
	}
	v, seq, err := a.host.Snapshot(r.Context(), c, id)
	if err != nil {
		return err
	}
	w.Header().Set("ETag", etagOf(id, seq))
	return api.JSON(w, http.StatusOK, v)
}

// etagOf is the strong validator of a snapshot: the run and its last sequence.
func etagOf(id ids.Run, seq int64) string {
	return `"` + id.Opaque + "-" + strconv.FormatInt(seq, 10) + `"`
}

func (a *API) listRuns(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	var q host.ListRuns
	n, err := r.QueryInt("limit", 1, 1<<31-1, 0)
	if err != nil {
		return err
	}
	q.Limit = int(n)
	for name, into := range map[string]*string{"cursor": &q.Cursor, "workflowId": &q.WorkflowID, "status": &q.Status} {
		v, given, err := r.QueryOne(name)
		if err != nil {
			return err
		}
		if given && v == "" {
			return problem.Invalid(name, "must not be empty")
		}
		*into = v
	}
	page, err := a.host.ListRuns(r.Context(), c, q)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusOK, page)
}

type reasonBody struct {
	Reason      string `json:"reason"`
	DrainPolicy filled `json:"drainPolicy"`
}

type onlyReason struct {
	Reason string `json:"reason"`
}

type statusBody struct {
	RunID     string `json:"runId"`
	NodeID    string `json:"nodeId,omitzero"`
	Status    string `json:"status"`
	PausedAt  string `json:"pausedAt,omitzero"`
	ResumedAt string `json:"resumedAt,omitzero"`
}

func (a *API) cancelRun(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	id, err := r.RunID("runId")
	if err != nil {
		return err
	}
	var b onlyReason
	if err := a.body(w, r, &b, true); err != nil {
		return err
	}
	status, err := a.host.CancelRun(r.Context(), c, id, b.Reason)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusOK, statusBody{RunID: id.String(), Status: status})
}

func (a *API) pauseRun(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	id, err := r.RunID("runId")
	if err != nil {
		return err
	}
	var b reasonBody
	if err := a.body(w, r, &b, true); err != nil {
		return err
	}
	at, err := a.host.PauseRun(r.Context(), c, id, b.Reason, string(b.DrainPolicy))
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusAccepted, statusBody{RunID: id.String(), Status: run.Paused, PausedAt: run.Stamp(at)})
}

func (a *API) resumeRun(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	id, err := r.RunID("runId")
	if err != nil {
		return err
	}
	var b onlyReason
	if err := a.body(w, r, &b, true); err != nil {
		return err
	}
	at, err := a.host.ResumeRun(r.Context(), c, id, b.Reason)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusAccepted, statusBody{RunID: id.String(), Status: run.Running, ResumedAt: run.Stamp(at)})
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

func (a *API) bulkCancel(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	var b bulkBody
	if err := a.body(w, r, &b, false); err != nil {
		return err
	}
	if utf8.RuneCountInString(b.Reason) > 512 {
		return problem.Invalid("reason", "has at most 512 characters")
	}
	results, err := a.host.BulkCancel(r.Context(), c, b.RunIDs, b.Reason)
	if err != nil {
		return err
	}
	out := make([]bulkEntry, len(results))
	for i, x := range results {
		out[i] = bulkEntry{RunID: x.RunID, OK: x.Err == nil, Status: x.Status}
		if x.Err != nil {
			out[i].Status = ""
			out[i].Error = api.Envelope(problem.From(x.Err))
		}
	}
	return api.JSON(w, http.StatusOK, map[string]any{"results": out})
}
