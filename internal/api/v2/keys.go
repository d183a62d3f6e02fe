package v2

import (
	"net/http"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
)

type keyBody struct {
	Name      string   `json:"name"`
	Kind      string   `json:"kind"`
	Workspace string   `json:"workspace"`
	Scopes    []string `json:"scopes"`
	Groups    []string `json:"groups"`
	Roles     []string `json:"roles"`
	Seconds   *int64   `json:"expiresInSeconds"`
}

// secret answers with what is shown this once.
func secret(w http.ResponseWriter, status int, v any) error {
	w.Header().Set("Cache-Control", "no-store")
	return api.JSON(w, status, v)
}

func (a *API) createKey(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	var b keyBody
	if err := a.body(w, r, &b, false); err != nil {
		return err
	}
	k := host.NewKey{Name: b.Name, Kind: b.Kind, Workspace: b.Workspace, Scopes: b.Scopes, Groups: b.Groups, Roles: b.Roles}
	if b.Seconds != nil {
		if k.Seconds = *b.Seconds; k.Seconds == 0 {
			k.Seconds = -1 // no life at all is none that can be asked for
		}
	}
	out, err := a.host.CreateKey(r.Context(), c, k)
	if err != nil {
		return err
	}
	return secret(w, http.StatusCreated, out)
}

func (a *API) listKeys(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	cursor, limit, err := a.page(r)
	if err != nil {
		return err
	}
	page, err := a.host.ListKeys(r.Context(), c, cursor, limit)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusOK, page)
}

// about is an operation on what one path parameter names, in the caller's tenant.
func about[T any](param string, do func(r *api.Request, c identity.Caller, id string) (T, error)) handler {
	return func(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
		out, err := do(r, c, r.Params[param])
		if err != nil {
			return err
		}
		return api.JSON(w, http.StatusOK, out)
	}
}

type rotateKeyBody struct {
	Overlap *int64 `json:"overlapSeconds"`
}

func (a *API) rotateKey(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	var b rotateKeyBody
	if err := a.body(w, r, &b, true); err != nil {
		return err
	}
	out, err := a.host.RotateKey(r.Context(), c, r.Params["keyId"], b.Overlap)
	if err != nil {
		return err
	}
	return secret(w, http.StatusOK, out)
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

const (
	names  = `{"type":"array","maxItems":100,"items":{"type":"string","minLength":1,"maxLength":256}}`
	object = `{"type":"object"}`
)

// keyRoutes are the operations on API keys and on the keys of interrupt tokens.
func (a *API) keyRoutes(limit, cursor api.Param) []api.Route {
	const keys = "/host/fermata/keys"
	answer := func(status int, what string) map[int]api.Response {
		return map[int]api.Response{status: {Description: what, Schema: object}}
	}
	return []api.Route{
		{
			Method: "POST", Pattern: keys, ID: "createKey", ShowsSecret: true, Scope: identity.KeysWrite,
			Summary:  "Make an API key in the caller's tenant, with scopes, groups and roles.",
			ReadOnly: true, // a record of it would keep a credential
			Body: &api.Body{Schema: `{"type":"object","additionalProperties":false,"required":["scopes"],"properties":{` +
				`"name":{"type":"string","maxLength":256},"kind":{"type":"string","enum":["user","agent","workload"]},` +
				`"workspace":{"type":"string","pattern":"^[A-Za-z0-9._~-]{1,128}$"},"expiresInSeconds":{"type":"integer","minimum":1},` +
				`"scopes":` + names + `,"groups":` + names + `,"roles":` + names + `}}`},
			Returns: answer(201, "The key. It is shown this once."), Errors: []int{413, 415}, Handle: a.as(a.createKey),
		},
		{
			Method: "GET", Pattern: keys, ID: "listKeys", Scope: identity.KeysRead, Query: []api.Param{limit, cursor},
			Summary: "The keys of the caller's tenant, revoked ones too; never the keys themselves.",
			Returns: answer(200, "A page of keys."), Handle: a.as(a.listKeys),
		},
		{
			Method: "GET", Pattern: keys + "/{keyId}", ID: "getKey", Scope: identity.KeysRead, Summary: "One key, without itself.",
			Returns: answer(200, "What there is to know of it."),
			Handle: a.as(about("keyId", func(r *api.Request, c identity.Caller, id string) (host.KeyInfo, error) {
				return a.host.Key(r.Context(), c, id)
			})),
		},
		{
			Method: "POST", Pattern: keys + "/{keyId}:revoke", ID: "revokeKey", Scope: identity.KeysWrite,
			Summary: "End a key, from the next request on.", Returns: answer(200, "The key as it is now."), Errors: []int{503},
			Handle: a.as(about("keyId", func(r *api.Request, c identity.Caller, id string) (host.KeyInfo, error) {
				return a.host.RevokeKey(r.Context(), c, id)
			})),
		},
		{
			Method: "POST", Pattern: keys + "/{keyId}:rotate", ID: "rotateKey", ShowsSecret: true, Scope: identity.KeysWrite,
			Summary:  "Replace a key. Its holder stays the same; the key before opens for a while.",
			ReadOnly: true, // a record of it would keep a credential
			Body: &api.Body{Optional: true, Schema: `{"type":"object","additionalProperties":false,"properties":{` +
				`"overlapSeconds":{"type":"integer","minimum":0,"maximum":2592000}}}`},
			Returns: answer(200, "The new key. It is shown this once."), Errors: []int{409, 413, 415, 503}, Handle: a.as(a.rotateKey),
		},
		{
			Method: "POST", Pattern: "/host/fermata/token-keys", ID: "rotateTokenKey", Scope: identity.HostAdmin,
			Summary: "Sign interrupt tokens with a new key from now on. Tokens given out before stay good.",
			Returns: answer(201, "The id of the new key."), Errors: []int{429}, Handle: a.as(a.rotateTokenKey),
		},
	}
}
