package v1

import (
	"slices"
	"strings"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/identity"
)

const (
	object = `{"type":"object"}`
	text   = `{"type":"string"}`
)

// routes is the table of this wire. A row is named as v1's OpenAPI names it.
func (a *API) routes() []api.Route {
	rs := slices.Concat(
		a.discoveryRoutes(),
		a.workflowRoutes(),
		a.runRoutes(),
		a.interruptRoutes(),
		a.webhookRoutes(),
		a.controlRoutes(),
		a.forkRoutes(),
		a.familyRoutes(),
		a.eventRoutes(),
	)
	for i := range rs {
		r := &rs[i]
		r.Wire, r.Protocol = "v1", true
		r.AnyQuery = true // v1 says nothing of parameters it does not know
		if r.Mutates() {
			r.Headers = append(r.Headers, keyForm.Param())
			r.Errors = append(r.Errors, 409)
		}
		if r.Scope != "" {
			r.Errors = append(r.Errors, 429)
		}
		if strings.Contains(r.Pattern, "{runId}") {
			r.Errors = append(r.Errors, 410)
		}
	}
	return rs
}

func ok(schema, what string) map[int]api.Response {
	return map[int]api.Response{200: {Description: what, Schema: schema}}
}

func (a *API) discoveryRoutes() []api.Route {
	return []api.Route{
		{
			Method: "GET", Pattern: "/.well-known/openwop", ID: "getCapabilities", Spec: "capabilities.md",
			Summary: "What this host serves, to a client of v1.", Returns: map[int]api.Response{
				200: {Description: "The discovery document of v1.", Schema: object}, 304: {Description: "Unchanged."},
			}, Handle: a.getCapabilities,
		},
		{
			Method: "GET", Pattern: "/v1/openapi.json", ID: "getOpenApiSpec", Spec: "rest-endpoints.md",
			Summary: "This document.", Returns: ok(object, "An OpenAPI 3.1 document."), Handle: a.getOpenAPI,
		},
	}
}

func (a *API) workflowRoutes() []api.Route {
	return []api.Route{
		{
			Method: "GET", Pattern: "/v1/workflows/{workflowId}", ID: "getWorkflow", Spec: "rest-endpoints.md", Scope: identity.ManifestRead,
			Summary: "The latest version of a workflow's definition.", Returns: map[int]api.Response{
				200: {Description: "The definition.", Schema: object}, 304: {Description: "Unchanged."},
			}, Handle: a.as(a.getWorkflow),
		},
		{
			Method: "POST", Pattern: "/v1/workflows", ID: "registerWorkflow", Scope: identity.WorkflowsWrite,
			Summary: "Register a version of a workflow, as hosts of v1 do beside the protocol.", Body: &api.Body{Schema: object},
			Returns: map[int]api.Response{
				200: {Description: "This version was registered before.", Schema: object},
				201: {Description: "The version is registered.", Schema: object},
			}, Errors: []int{409, 413, 422}, Handle: a.as(a.postWorkflow),
		},
	}
}
