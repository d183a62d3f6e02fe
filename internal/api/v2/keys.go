package v2

import (
	"net/http"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
)

type keyBody struct {
	Name   string   `json:"name"`
	Scopes []string `json:"scopes"`
	Groups []string `json:"groups"`
	Roles  []string `json:"roles"`
}

func (a *API) createKey(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	var b keyBody
	if err := a.body(w, r, &b, false); err != nil {
		return err
	}
	k, err := a.host.CreateKey(r.Context(), c, host.NewKey{Name: b.Name, Scopes: b.Scopes, Groups: b.Groups, Roles: b.Roles})
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return api.JSON(w, http.StatusCreated, k)
}

func (a *API) rotateTokenKey(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	kid, err := a.host.RotateTokenKeyAs(r.Context(), c)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusCreated, struct {
		Kid string `json:"kid"`
	}{kid})
}

const names = `{"type":"array","maxItems":100,"items":{"type":"string","minLength":1,"maxLength":256}}`

// keyRoutes are the operations on API keys and on the keys of interrupt tokens.
func (a *API) keyRoutes() []api.Route {
	made := func(what string) map[int]api.Response {
		return map[int]api.Response{201: {Description: what, Schema: `{"type":"object"}`}}
	}
	return []api.Route{
		{
			Method: "POST", Pattern: "/host/fermata/keys", ID: "createKey", ShowsSecret: true, Scope: identity.KeysWrite,
			Summary:  "Make an API key in the caller's tenant, with scopes, groups and roles.",
			ReadOnly: true, // a record of it would keep a credential
			Body: &api.Body{Schema: `{"type":"object","additionalProperties":false,"required":["scopes"],"properties":{` +
				`"name":{"type":"string","maxLength":256},"scopes":` + names + `,"groups":` + names + `,"roles":` + names + `}}`},
			Returns: made("The key. It is shown this once."), Errors: []int{413, 415}, Handle: a.as(a.createKey),
		},
		{
			Method: "POST", Pattern: "/host/fermata/token-keys", ID: "rotateTokenKey", Scope: identity.KeysWrite,
			Summary: "Sign interrupt tokens with a new key from now on. Tokens given out before stay good.",
			Returns: made("The id of the new key."), Errors: []int{429}, Handle: a.as(a.rotateTokenKey),
		},
	}
}
