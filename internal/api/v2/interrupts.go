package v2

import (
	"net/http"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/token"
	"github.com/go-json-experiment/json/jsontext"
)

type resolveBody struct {
	ResumeValue jsontext.Value `json:"resumeValue"`
}

func (a *API) resolveInterrupt(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	id, err := r.RunID("runId")
	if err != nil {
		return err
	}
	nodeID, err := r.Authored("nodeId")
	if err != nil {
		return err
	}
	var b resolveBody
	if err := a.body(w, r, &b, false); err != nil {
		return err
	}
	status, err := a.host.ResolveInterrupt(r.Context(), c, id, nodeID, b.ResumeValue)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusOK, statusBody{RunID: id.String(), NodeID: nodeID, Status: status})
}

type issueBody struct {
	Intent           filled `json:"intent"`
	ExpiresInSeconds *int64 `json:"expiresInSeconds"`
}

func (a *API) issueToken(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	id, err := r.RunID("runId")
	if err != nil {
		return err
	}
	nodeID, err := r.Authored("nodeId")
	if err != nil {
		return err
	}
	var b issueBody
	if err := a.body(w, r, &b, true); err != nil {
		return err
	}
	want := host.IssueToken{Intent: string(b.Intent)}
	if b.ExpiresInSeconds != nil {
		if want.Seconds = *b.ExpiresInSeconds; want.Seconds == 0 {
			want.Seconds = -1 // given, and no lifetime
		}
	}
	t, err := a.host.IssueToken(r.Context(), c, id, nodeID, want)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusCreated, t)
}

func (a *API) inspectByToken(w http.ResponseWriter, r *api.Request, g host.Grant) error {
	v, err := a.host.InspectByToken(r.Context(), g)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusOK, v)
}

// resolveByToken honours an Idempotency-Key as every answer does, in the name of
// whom the token speaks for.
func (a *API) resolveByToken(w http.ResponseWriter, r *api.Request, g host.Grant) error {
	return a.door.Once(w, r, g.Caller(), func(w http.ResponseWriter, r *api.Request, _ identity.Caller) error {
		return a.answerByToken(w, r, g)
	})
}

func (a *API) answerByToken(w http.ResponseWriter, r *api.Request, g host.Grant) error {
	var b resolveBody
	if err := a.body(w, r, &b, false); err != nil {
		return err
	}
	out, err := a.host.ResolveByToken(r.Context(), g, b.ResumeValue)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusOK, statusBody{RunID: out.RunID, NodeID: out.NodeID, Status: out.Status})
}

// tokenRoutes are the operations whose credential is in the path.
func (a *API) tokenRoutes() []api.Route {
	return []api.Route{
		{
			Method: "GET", Pattern: "/interrupts/{token}", ID: "inspectInterruptByToken", Protocol: true,
			Spec: "interrupt.md §Resolve surfaces", Summary: "See what a token's interrupt asks. The token is the credential.",
			Returns: map[int]api.Response{200: {Description: "The interrupt's payload.", Schema: "suspend-request"}},
			Errors:  []int{401, 403, 409, 410}, Handle: a.door.ByToken(token.Inspect, a.inspectByToken),
		},
		{
			Method: "POST", Pattern: "/interrupts/{token}", ID: "resolveInterruptByToken", Protocol: true,
			Spec: "interrupt.md §Resolve surfaces", Summary: "Answer a token's interrupt. The token is the credential.",
			Body:    &api.Body{Schema: "interrupt-resolve-request"},
			Returns: map[int]api.Response{200: {Description: "The answer is durable.", Schema: "interrupt-resolve-response"}},
			Errors:  []int{401, 403, 409, 410, 413, 415}, Handle: a.door.ByToken(token.Resolve, a.resolveByToken),
		},
	}
}
