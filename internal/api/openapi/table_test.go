package openapi

import (
	"testing"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/go-json-experiment/json"
)

var info = Info{Title: "fermata", Version: "2.0", Description: "A durable host.", Server: "https://h.example"}

// table is a route table that uses everything a row can say.
func table() []api.Route {
	run := map[int]api.Response{200: {Description: "The run.", Schema: "run-snapshot"}, 304: {Description: "Unchanged."}}
	return []api.Route{
		{Method: "GET", Pattern: "/.well-known/openwop", ID: "getCapabilities", Summary: "What the host can do.", Protocol: true,
			Returns: map[int]api.Response{200: {Schema: "capabilities"}}, Errors: []int{406}},
		{Method: "POST", Pattern: "/runs", ID: "createRun", Spec: "runs.md §Create", Scope: "runs:create", Protocol: true,
			Headers: []api.Param{{Name: "Idempotency-Key", Schema: `{"type":"string","maxLength":255}`}},
			Body:    &api.Body{Schema: "create-run-request"},
			Returns: map[int]api.Response{201: {Schema: "create-run-response"}}, Errors: []int{409, 422, 429}},
		{Method: "GET", Pattern: "/runs", ID: "listRuns", Scope: "runs:read", Protocol: true,
			Query: []api.Param{{Name: "limit", Schema: `{"type":"integer","minimum":1}`},
				{Name: "workflowId", Schema: `{"$ref":"urn:fermata:schema:v2:ids#/$defs/workflowId"}`}, {Name: "cursor"}},
			Returns: map[int]api.Response{200: {Schema: "run-list-response"}}},
		{Method: "GET", Pattern: "/runs/{runId}", ID: "getRun", Scope: "runs:read", Protocol: true, Returns: run},
		{Method: "GET", Pattern: "/runs/{runId}/events", ID: "streamRunEvents", Scope: "runs:read", Protocol: true, Stream: true,
			Query:   []api.Param{{Name: "streamMode", Required: true, Description: "What to send."}},
			Returns: map[int]api.Response{200: {Description: "Events.", ContentType: "text/event-stream"}}},
		{Method: "GET", Pattern: "/runs/{runId}/events/poll", ID: "pollRunEvents", Scope: "runs:read", Protocol: true,
			Returns: map[int]api.Response{200: {Schema: "poll-response"}}},
		{Method: "POST", Pattern: "/runs/{runId}:pause", ID: "pauseRun", Scope: "runs:cancel", Protocol: true,
			Body: &api.Body{Schema: "pause-request", Optional: true}, Returns: map[int]api.Response{202: {Schema: "pause-response"}}, Errors: []int{409}},
		{Method: "POST", Pattern: "/runs:bulk-cancel", ID: "bulkCancelRuns", Scope: "runs:cancel", Protocol: true,
			Body: &api.Body{Schema: "bulk-cancel-request"}, Returns: map[int]api.Response{200: {Schema: "bulk-cancel-response"}}},
		{Method: "POST", Pattern: "/runs/{runId}:fork", ID: "forkRun", Scope: "runs:create runs:read", Protocol: true,
			Body: &api.Body{Schema: "fork-request"}, Returns: map[int]api.Response{201: {Schema: "fork-response"}}, Errors: []int{422}},
		{Method: "POST", Pattern: "/runs/{runId}/interrupts/{nodeId}", ID: "resolveInterruptByRun", Scope: "approvals:respond", Protocol: true,
			Body: &api.Body{Schema: "interrupt-resolve-request"}, Returns: map[int]api.Response{200: {Schema: "interrupt-resolve-response"}}},
		{Method: "GET", Pattern: "/interrupts/{token}", ID: "inspectInterruptByToken", Protocol: true,
			Returns: map[int]api.Response{200: {Schema: "suspend-request"}}, Errors: []int{401, 410}},
		{Method: "GET", Pattern: "/workflows/{workflowId}", ID: "getWorkflow", Scope: "manifest:read", Protocol: true,
			Returns: map[int]api.Response{200: {Schema: "workflow-definition"}}},
		{Method: "DELETE", Pattern: "/webhooks/{webhookId}", ID: "unregisterWebhook", Scope: "webhooks:manage", Protocol: true,
			Returns: map[int]api.Response{204: {}}},
		{Method: "GET", Pattern: "/healthz", ID: "health", Returns: map[int]api.Response{200: {Schema: `{"type":"object","properties":{"ok":{"const":true}}}`}}, Errors: []int{503}},
	}
}

// built returns the document as bytes and as a tree.
func built(t *testing.T, routes []api.Route) ([]byte, map[string]any) {
	t.Helper()
	b, err := Build(info, routes)
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	return b, doc
}
