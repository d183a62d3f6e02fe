package v1

import (
	"maps"
	"net/http"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/token"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

type resolveBody struct {
	ResumeValue jsontext.Value `json:"resumeValue"`
}

type resolvedBody struct {
	RunID  string `json:"runId"`
	NodeID string `json:"nodeId"`
	Status string `json:"status"`
}

// place reads which node of which run a path names.
func (a *API) place(r *api.Request, c identity.Caller) (ids.Run, string, error) {
	id, err := a.run(r, c)
	if err != nil {
		return id, "", err
	}
	node := r.Params["nodeId"]
	if !ids.ValidAuthored(node) {
		return id, "", problem.New(interruptNotFound, "no node has such an id").With("nodeId", node)
	}
	return id, node, nil
}

func (a *API) resolveInterrupt(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	id, node, err := a.place(r, c)
	if err != nil {
		return err
	}
	var b resolveBody
	if err := a.door.Body(w, r, &b, false); err != nil {
		return err
	}
	return a.resolve(w, r, c, id, node, b.ResumeValue)
}

// resolveApproval is the route from before there were other interrupts: the body is the
// answer itself, bare or in its wrapping.
func (a *API) resolveApproval(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	id, node, err := a.place(r, c)
	if err != nil {
		return err
	}
	var value jsontext.Value
	if err := a.door.Body(w, r, &value, false); err != nil {
		return err
	}
	var b map[string]jsontext.Value
	if value.Kind() == '{' && json.Unmarshal(value, &b) == nil && b["resumeValue"] != nil {
		value = b["resumeValue"]
	}
	return ofApproval(a.resolve(w, r, c, id, node, value))
}

// ofApproval is a refusal on the older route, which knows of no cancelled interrupt: who
// comes too late meets a conflict there, whoever was first (the suite's interruptRace).
func ofApproval(err error) error {
	if p := problem.From(err); err != nil && p.Code == problem.InterruptCancelled {
		return with(problem.New(problem.InterruptAlreadyResolved, "%s", p.Message), p.Details)
	}
	return err
}

func (a *API) resolve(w http.ResponseWriter, r *api.Request, c identity.Caller, id ids.Run, node string, value jsontext.Value) error {
	said, err := readAnswer(value)
	if err != nil {
		return err
	}
	if said.old() {
		kind, err := a.host.InterruptKind(r.Context(), c, id, node)
		if err != nil {
			return ofRun(err)
		}
		value = said.words(kind, value)
	}
	status, err := a.host.ResolveInterruptFor(r.Context(), c, id, node, value, said.Voter)
	if err != nil {
		return ofRun(err)
	}
	return api.JSON(w, http.StatusOK, resolvedBody{id.Opaque, node, status})
}

// inspected is an interrupt's payload with what v1's clients look for beside it.
func inspected(payload jsontext.Value, g host.Grant) (jsontext.Value, error) {
	var m map[string]jsontext.Value
	if err := json.Unmarshal(payload, &m); err != nil {
		return nil, err
	}
	end, err := json.Marshal(run.Stamp(g.ExpiresAt()))
	if err != nil {
		return nil, err
	}
	m["expiresAt"], m["resolved"] = end, jsontext.Value("false")
	return json.Marshal(m, json.Deterministic(true), jsontext.PreserveRawStrings(true))
}

func (a *API) inspectByToken(w http.ResponseWriter, r *api.Request, g host.Grant) error {
	v, err := a.host.InspectByToken(r.Context(), g)
	if err != nil {
		return ofToken(err)
	}
	if v, err = inspected(v, g); err != nil {
		return err
	}
	return api.JSON(w, http.StatusOK, v)
}

// resolveByToken honours an Idempotency-Key in the name of whom the token speaks for.
func (a *API) resolveByToken(w http.ResponseWriter, r *api.Request, g host.Grant) error {
	return a.door.Once(w, r, g.Caller(), func(w http.ResponseWriter, r *api.Request, _ identity.Caller) error {
		return a.answerByToken(w, r, g)
	})
}

func (a *API) answerByToken(w http.ResponseWriter, r *api.Request, g host.Grant) error {
	var b resolveBody
	if err := a.door.Body(w, r, &b, false); err != nil {
		return err
	}
	said, err := readAnswer(b.ResumeValue)
	if err != nil {
		return err
	}
	if said.old() {
		v, err := a.host.InspectByToken(r.Context(), g)
		if err != nil {
			return ofToken(err)
		}
		var asked struct {
			Kind string `json:"kind"`
		}
		if err := json.Unmarshal(v, &asked); err != nil {
			return err
		}
		b.ResumeValue = said.words(asked.Kind, b.ResumeValue)
	}
	out, err := a.host.ResolveByToken(r.Context(), g, b.ResumeValue)
	if err != nil {
		return ofToken(err)
	}
	return api.JSON(w, http.StatusOK, resolvedBody{bare(out.RunID), out.NodeID, out.Status})
}

// Codes that v1 has for interrupts, beside those of this major.
const (
	interruptNotFound problem.Code = "interrupt_not_found"
	interruptGone     problem.Code = "interrupt_gone"
)

// ofRun writes a refusal as v1 has it on the route of a run (v1 interrupt.md §Error
// responses): an interrupt that nobody asks is not found, and one that the end of its
// run took along is cancelled.
func ofRun(err error) error {
	p := problem.From(err)
	switch status, _ := p.Details["runStatus"].(string); {
	case p.Code == problem.NotFound && p.Details["nodeId"] != nil:
		return with(problem.New(interruptNotFound, "%s", p.Message), p.Details)
	case p.Code == problem.InterruptAlreadyResolved && p.Details["nodeId"] == nil && (status == run.Cancelled || status == run.Cancelling):
		return with(problem.New(problem.InterruptCancelled, "the run has been cancelled"), p.Details)
	}
	return err
}

// ofToken is ofRun for a token, whose holder knows of nothing but the interrupt: that one
// is gone.
func ofToken(err error) error {
	p := problem.From(ofRun(err))
	switch p.Code {
	case problem.NotFound:
		return with(problem.New(interruptNotFound, "%s", p.Message), p.Details)
	case problem.InterruptCancelled:
		return p.With("surface", "token")
	}
	return p
}

func with(p *problem.Error, details map[string]any) *problem.Error {
	p.Details = maps.Clone(details)
	return p
}

// interruptWords are the words and statuses of v1 that hang on more than a code.
func interruptWords(e *problem.Error, r *api.Refusal) {
	switch {
	case e.Code == problem.InterruptCancelled && e.Details["surface"] == "token":
		r.Error, r.Status = string(interruptGone), http.StatusGone
	case e.Code == problem.ValidationError && e.Details["reason"] == run.CorrelationMismatch:
		r.Status = http.StatusUnprocessableEntity
	}
}

func (a *API) interruptRoutes() []api.Route {
	const spec = "interrupt.md §Resolution endpoints"
	answered := map[int]api.Response{200: {Description: "The answer is durable.", Schema: object}}
	errors := []int{413, 415, 422}
	return []api.Route{
		{
			Method: "POST", Pattern: "/v1/runs/{runId}/interrupts/{nodeId}", ID: "resolveInterruptByRun", Spec: spec,
			Summary: "Answer what a node of a run waits for.", Scope: identity.ApprovalsRespond, Body: &api.Body{Schema: object},
			Returns: answered, Errors: errors, Handle: a.as(a.resolveInterrupt),
		},
		{
			Method: "POST", Pattern: "/v1/runs/{runId}/approvals/{nodeId}", ID: "resolveApproval", Spec: "rest-endpoints.md",
			Summary: "Answer an approval, as clients older than interrupts do.", Scope: identity.ApprovalsRespond, Body: &api.Body{Schema: object},
			Returns: answered, Errors: errors, Handle: a.as(a.resolveApproval),
		},
		{
			Method: "GET", Pattern: "/v1/interrupts/{token}", ID: "inspectInterruptByToken", Spec: spec,
			Summary: "See what a token's interrupt asks. The token is the credential.",
			Returns: ok(object, "The interrupt's payload, with the token's end."), Errors: []int{401, 403, 404, 409, 410},
			Handle: a.door.ByToken(token.Inspect, a.inspectByToken),
		},
		{
			Method: "POST", Pattern: "/v1/interrupts/{token}", ID: "resolveInterruptByToken", Spec: spec,
			Summary: "Answer a token's interrupt. The token is the credential.", Body: &api.Body{Schema: object},
			Returns: answered, Errors: append([]int{401, 403, 404, 410}, errors...), Handle: a.door.ByToken(token.Resolve, a.resolveByToken),
		},
	}
}
