package v2

import (
	"net/http"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
)

type tenantBody struct {
	ID   filled `json:"tenantId"`
	Name string `json:"name"`
}

func (a *API) createTenant(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	var b tenantBody
	if err := a.body(w, r, &b, false); err != nil {
		return err
	}
	out, err := a.host.CreateTenant(r.Context(), c, string(b.ID), b.Name)
	if err != nil {
		return err
	}
	return secret(w, http.StatusCreated, out)
}

func (a *API) listTenants(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	cursor, limit, err := a.page(r)
	if err != nil {
		return err
	}
	page, err := a.host.ListTenants(r.Context(), c, cursor, limit)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusOK, page)
}

type memberBody struct {
	Issuer    string   `json:"issuer"`
	SubjectID filled   `json:"subjectId"`
	Name      string   `json:"name"`
	Workspace string   `json:"workspace"`
	Groups    []string `json:"groups"`
	Roles     []string `json:"roles"`
}

func (a *API) putMember(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	var b memberBody
	if err := a.body(w, r, &b, false); err != nil {
		return err
	}
	out, err := a.host.PutMember(r.Context(), c, host.PutMember{
		Issuer: b.Issuer, SubjectID: string(b.SubjectID), Name: b.Name, Workspace: b.Workspace, Groups: b.Groups, Roles: b.Roles,
	})
	if err != nil {
		return err
	}
	return api.JSON(w, made(out.Created), out)
}

func made(created bool) int {
	if created {
		return http.StatusCreated
	}
	return http.StatusOK
}

func (a *API) listMembers(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	cursor, limit, err := a.page(r)
	if err != nil {
		return err
	}
	page, err := a.host.ListMembers(r.Context(), c, cursor, limit)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusOK, page)
}

func (a *API) removeMember(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	if err := a.host.RemoveMember(r.Context(), c, r.Params["memberId"]); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *API) listRoles(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	roles, err := a.host.ListRoles(r.Context(), c)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusOK, map[string]any{"roles": roles})
}

type roleBody struct {
	Scopes *[]string `json:"scopes"`
}

func (a *API) putRole(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	var b roleBody
	if err := a.body(w, r, &b, false); err != nil {
		return err
	}
	if b.Scopes == nil {
		b.Scopes = &[]string{}
	}
	out, err := a.host.PutRole(r.Context(), c, r.Params["role"], *b.Scopes)
	if err != nil {
		return err
	}
	return api.JSON(w, made(out.Created), out)
}

func (a *API) removeRole(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	if err := a.host.RemoveRole(r.Context(), c, r.Params["role"]); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// tenantRoutes are the operations on tenants, members and roles.
func (a *API) tenantRoutes(limit, cursor api.Param) []api.Route {
	const (
		tenants = "/host/fermata/tenants"
		members = "/host/fermata/members"
		roles   = "/host/fermata/roles"
		id      = `{"type":"string","pattern":"^[A-Za-z0-9._~-]{1,128}$"}`
	)
	answer := func(what string, statuses ...int) map[int]api.Response {
		out := map[int]api.Response{}
		for _, s := range statuses {
			out[s] = api.Response{Description: what, Schema: object}
		}
		return out
	}
	gone := map[int]api.Response{204: {Description: "It is gone."}}
	tenant := func(do func(r *api.Request, c identity.Caller, id string) (host.TenantInfo, error)) func(http.ResponseWriter, *api.Request) error {
		return a.as(about("tenantId", do))
	}
	return []api.Route{
		{
			Method: "POST", Pattern: tenants, ID: "createTenant", ShowsSecret: true, Scope: identity.HostAdmin,
			Summary:  "Make a tenant, with the first key of its owner.",
			ReadOnly: true, // a record of it would keep a credential
			Body: &api.Body{Schema: `{"type":"object","additionalProperties":false,"required":["tenantId"],"properties":{` +
				`"tenantId":` + id + `,"name":{"type":"string","maxLength":256}}}`},
			Returns: answer("The tenant. Its owner's key is shown this once.", 201), Errors: []int{409, 413, 415}, Handle: a.as(a.createTenant),
		},
		{
			Method: "GET", Pattern: tenants, ID: "listTenants", Scope: identity.HostAdmin, Query: []api.Param{limit, cursor},
			Summary: "The tenants of the host.", Returns: answer("A page of tenants.", 200), Handle: a.as(a.listTenants),
		},
		{
			Method: "GET", Pattern: tenants + "/{tenantId}", ID: "getTenant", Scope: identity.HostAdmin, Summary: "One tenant.",
			Returns: answer("The tenant.", 200),
			Handle: tenant(func(r *api.Request, c identity.Caller, id string) (host.TenantInfo, error) {
				return a.host.Tenant(r.Context(), c, id)
			}),
		},
		{
			Method: "POST", Pattern: tenants + "/{tenantId}:suspend", ID: "suspendTenant", Scope: identity.HostAdmin,
			Summary: "Shut a tenant out and have its runs stand still.", Returns: answer("The tenant.", 200), Errors: []int{503},
			Handle: tenant(func(r *api.Request, c identity.Caller, id string) (host.TenantInfo, error) {
				return a.host.SuspendTenant(r.Context(), c, id)
			}),
		},
		{
			Method: "POST", Pattern: tenants + "/{tenantId}:activate", ID: "activateTenant", Scope: identity.HostAdmin,
			Summary: "Let a suspended tenant in again; its runs go on.", Returns: answer("The tenant.", 200), Errors: []int{503},
			Handle: tenant(func(r *api.Request, c identity.Caller, id string) (host.TenantInfo, error) {
				return a.host.ActivateTenant(r.Context(), c, id)
			}),
		},
		{
			Method: "POST", Pattern: members, ID: "putMember", Scope: identity.MembersWrite,
			Summary: "Say what a party belongs to in the caller's tenant: groups, and roles with their scopes.",
			Body: &api.Body{Schema: `{"type":"object","additionalProperties":false,"required":["subjectId"],"properties":{` +
				`"issuer":{"type":"string","maxLength":1024},"subjectId":{"type":"string","minLength":1,"maxLength":256},` +
				`"name":{"type":"string","maxLength":256},"workspace":` + id + `,"groups":` + names + `,"roles":` + names + `}}`},
			Returns: answer("The member.", 200, 201), Errors: []int{413, 415}, Handle: a.as(a.putMember),
		},
		{
			Method: "GET", Pattern: members, ID: "listMembers", Scope: identity.MembersRead, Query: []api.Param{limit, cursor},
			Summary: "The members of the caller's tenant.", Returns: answer("A page of members.", 200), Handle: a.as(a.listMembers),
		},
		{
			Method: "GET", Pattern: members + "/{memberId}", ID: "getMember", Scope: identity.MembersRead, Summary: "One member.",
			Returns: answer("The member.", 200),
			Handle: a.as(about("memberId", func(r *api.Request, c identity.Caller, id string) (host.MemberInfo, error) {
				return a.host.Member(r.Context(), c, id)
			})),
		},
		{
			Method: "DELETE", Pattern: members + "/{memberId}", ID: "removeMember", Scope: identity.MembersWrite,
			Summary: "End a membership, from the next request on.", Returns: gone, Handle: a.as(a.removeMember),
		},
		{
			Method: "GET", Pattern: roles, ID: "listRoles", Scope: identity.MembersRead, Summary: "The roles members can have.",
			Returns: answer("The roles of every tenant, and the caller's own.", 200), Handle: a.as(a.listRoles),
		},
		{
			Method: "PUT", Pattern: roles + "/{role}", ID: "putRole", Scope: identity.RolesWrite,
			Summary: "Make a role of the caller's tenant, or give it other scopes.",
			Body:    &api.Body{Schema: `{"type":"object","additionalProperties":false,"required":["scopes"],"properties":{"scopes":` + names + `}}`},
			Returns: answer("The role.", 200, 201), Errors: []int{413, 415}, Handle: a.as(a.putRole),
		},
		{
			Method: "DELETE", Pattern: roles + "/{role}", ID: "removeRole", Scope: identity.RolesWrite,
			Summary: "Remove a role of the caller's tenant.", Returns: gone, Handle: a.as(a.removeRole),
		},
	}
}
