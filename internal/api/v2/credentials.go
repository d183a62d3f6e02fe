package v2

import (
	"net/http"
	"time"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/problem"
)

type credentialBody struct {
	Name            string          `json:"name"`
	Scope           string          `json:"scope"`
	RunID           string          `json:"runId"`
	Workspace       string          `json:"workspace"`
	Kind            string          `json:"kind"`
	Username        string          `json:"username"`
	Secret          string          `json:"secret"`
	Source          *host.SourceRef `json:"source"`
	Audiences       []string        `json:"audiences"`
	Scopes          []string        `json:"scopes"`
	ExpiresAt       string          `json:"expiresAt"`
	RedactionPolicy string          `json:"redactionPolicy"`
	OutOfAudience   string          `json:"outOfAudience"`
}

func (a *API) createCredential(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	var b credentialBody
	if err := a.body(w, r, &b, false); err != nil {
		return err
	}
	n := host.NewCredential{
		Name: b.Name, Scope: b.Scope, RunID: b.RunID, Workspace: b.Workspace, Kind: b.Kind, Username: b.Username, Secret: b.Secret, Source: b.Source,
		Audiences: b.Audiences, Scopes: b.Scopes, RedactionPolicy: b.RedactionPolicy, OutOfAudience: b.OutOfAudience,
	}
	if b.ExpiresAt != "" {
		var err error
		if n.ExpiresAt, err = time.Parse(time.RFC3339, b.ExpiresAt); err != nil {
			return problem.Invalid("expiresAt", "is no RFC 3339 time such as 2030-01-31T12:00:00Z")
		}
	}
	out, err := a.host.CreateCredential(r.Context(), c, n)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusCreated, out)
}

func (a *API) listCredentials(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	cursor, limit, err := a.page(r)
	if err != nil {
		return err
	}
	page, err := a.host.ListCredentials(r.Context(), c, cursor, limit)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusOK, page)
}

func (a *API) getCredential(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	out, err := a.host.Credential(r.Context(), c, r.Params["ref"])
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusOK, out)
}

type credentialRotation struct {
	Username       string `json:"username"`
	Secret         string `json:"secret"`
	OverlapSeconds *int64 `json:"overlapSeconds"`
}

func (a *API) rotateCredential(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	var b credentialRotation
	if err := a.body(w, r, &b, false); err != nil {
		return err
	}
	in := host.RotateCredential{Username: b.Username, Secret: b.Secret}
	if s := b.OverlapSeconds; s != nil {
		if *s < 0 || *s > 30*86400 {
			return problem.Invalid("overlapSeconds", "must be from 0 to %d", 30*86400)
		}
		d := time.Duration(*s) * time.Second
		in.Overlap = &d
	}
	out, err := a.host.RotateCredential(r.Context(), c, r.Params["ref"], in)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusOK, out)
}

func (a *API) deleteCredential(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	if err := a.host.DeleteCredential(r.Context(), c, r.Params["ref"]); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *API) rotateVault(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	var b struct {
		DataKeys bool `json:"dataKeys"`
	}
	if err := a.body(w, r, &b, true); err != nil {
		return err
	}
	out, err := a.host.RotateVault(r.Context(), c, b.DataKeys)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusOK, out)
}

// credentialRoutes are the host's own operations on credentials. No answer holds
// material, and no record is kept of a request that does.
func (a *API) credentialRoutes(limit, cursor api.Param) []api.Route {
	const (
		own  = "/host/fermata/credentials"
		spec = "oauth.md §Credentials"
		line = `{"type":"string","maxLength":256}`
	)
	what := func(status int, text string) map[int]api.Response {
		return map[int]api.Response{status: {Description: text, Schema: `{"type":"object"}`}}
	}
	return []api.Route{
		{
			Method: "POST", Pattern: own, ID: "createCredential", Scope: identity.CredentialsWrite, Spec: spec, ReadOnly: true,
			Summary: "Keep a credential. Its material is never shown again.",
			Body: &api.Body{Schema: `{"type":"object","additionalProperties":false,"required":["audiences"],"properties":{` +
				`"name":` + line + `,"scope":{"enum":["user","workspace","tenant","run"]},"runId":` + line + `,"workspace":` + line + `,"kind":{"enum":["secret","basic"]},` +
				`"username":` + line + `,"secret":{"type":"string","minLength":8,"maxLength":65536},` +
				`"source":{"type":"object","additionalProperties":false,"required":["store","name"],"properties":{"store":` + line + `,"name":` + line + `}},` +
				`"audiences":{"type":"array","minItems":1,"maxItems":100,"items":` + line + `},"scopes":` + names + `,` +
				`"expiresAt":{"type":"string","format":"date-time"},"redactionPolicy":{"enum":["always","hash","host-policy"]},` +
				`"outOfAudience":{"enum":["deny","downgrade"]}}}`},
			Returns: what(201, "The credential's reference and provenance."), Errors: []int{409, 413, 415, 422}, Handle: a.as(a.createCredential),
		},
		{
			Method: "GET", Pattern: own, ID: "listCredentials", Scope: identity.CredentialsRead, Spec: spec,
			Summary: "The caller's and his tenant's credentials, without material.", Query: []api.Param{limit, cursor},
			Returns: what(200, "A page of credentials."), Handle: a.as(a.listCredentials),
		},
		{
			Method: "GET", Pattern: own + "/{ref}", ID: "getCredential", Scope: identity.CredentialsRead, Spec: spec,
			Summary: "A credential, without material.", Returns: what(200, "The credential."), Handle: a.as(a.getCredential),
		},
		{
			Method: "POST", Pattern: own + "/{ref}:rotate", ID: "rotateCredential", Scope: identity.CredentialsWrite, Spec: spec, ReadOnly: true,
			Summary: "Give a credential new material; for a while the old one resolves as well.",
			Body: &api.Body{Schema: `{"type":"object","additionalProperties":false,"required":["secret"],"properties":{"username":` + line +
				`,"secret":{"type":"string","minLength":8,"maxLength":65536},"overlapSeconds":{"type":"integer","minimum":0,"maximum":2592000}}}`},
			Returns: what(200, "The credential afterwards."), Errors: []int{409, 413, 415}, Handle: a.as(a.rotateCredential),
		},
		{
			Method: "DELETE", Pattern: own + "/{ref}", ID: "deleteCredential", Scope: identity.CredentialsWrite, Spec: spec,
			Summary: "Forget a credential.", Returns: map[int]api.Response{204: {Description: "Nothing resolves it any more."}},
			Handle: a.as(a.deleteCredential),
		},
		{
			Method: "POST", Pattern: "/host/fermata/vault:rotate", ID: "rotateVault", Scope: identity.VaultOperate, ReadOnly: true,
			Summary: "Take up a new master key, and seal everything anew if asked.",
			Body:    &api.Body{Optional: true, Schema: `{"type":"object","additionalProperties":false,"properties":{"dataKeys":{"type":"boolean"}}}`},
			Returns: what(200, "What was done."), Errors: []int{413, 415}, Handle: a.as(a.rotateVault),
		},
	}
}
