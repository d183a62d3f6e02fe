package v2

import (
	"slices"
	"strings"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/api/bundle"
	"github.com/fermata-run/fermata/internal/api/door"
	"github.com/fermata-run/fermata/internal/api/stream"
	"github.com/fermata-run/fermata/internal/identity"
)

const (
	text     = `{"type":"string"}`
	terminal = `{"type":"string","enum":["pending","running","paused","waiting-approval","waiting-input","waiting-external","completed","failed","cancelling","cancelled"]}`
)

// routes is the table of this wire.
func (a *API) routes() []api.Route {
	ok := func(schema, what string) map[int]api.Response {
		return map[int]api.Response{200: {Description: what, Schema: schema}}
	}
	limit := api.Param{Name: "limit", Description: "Page size; clamped to the largest the host allows.", Schema: `{"type":"integer","minimum":1}`}
	cursor := api.Param{Name: "cursor", Description: "Where the page before this one ended.", Schema: `{"type":"string","minLength":1,"maxLength":2048}`}
	rs := []api.Route{
		{
			Method: "GET", Pattern: "/.well-known/openwop", ID: "getCapabilities", Spec: "capabilities.md §1",
			Summary: "What this host serves.", Protocol: true, Returns: map[int]api.Response{
				200: {Description: "The discovery document.", Schema: "capabilities"}, 304: {Description: "Unchanged."},
			}, Handle: a.getCapabilities,
		},
		{
			Method: "GET", Pattern: "/openapi.json", ID: "getOpenApiSpec", Spec: "versioning.md §1.2", Protocol: true,
			Summary: "This document.", Returns: ok(`{"type":"object"}`, "An OpenAPI 3.1 document."), Handle: a.getOpenAPI,
		},
		{
			Method: "GET", Pattern: "/workflows/{workflowId}", ID: "getWorkflow", Spec: "runs.md §Validation and persistence",
			Summary: "The latest version of a workflow's definition.", Protocol: true, Scope: identity.ManifestRead,
			Returns: ok("workflow-definition", "The definition."), Handle: a.as(a.getWorkflow),
		},
		{
			Method: "POST", Pattern: "/runs", ID: "createRun", Spec: "runs.md §Create", Protocol: true,
			Summary: "Start a run.", Scope: identity.RunsCreate, Body: &api.Body{Schema: "create-run-request"},
			Returns: map[int]api.Response{201: {Description: "The run is durable and under way.", Schema: "create-run-response"}},
			Errors:  []int{409, 413, 415, 422, 503}, Handle: a.as(a.createRun),
		},
		{
			Method: "GET", Pattern: "/runs", ID: "listRuns", Spec: "runs.md §List", Protocol: true,
			Summary: "The caller's runs, newest first.", Scope: identity.RunsRead,
			AnyQuery: true, // a filter that is not advertised is ignored, says the text
			Query: []api.Param{limit, cursor,
				{Name: "workflowId", Description: "Only runs of this workflow.", Schema: text},
				{Name: "status", Description: "Only runs in this status.", Schema: terminal}},
			Returns: ok("run-list-response", "A page of runs, without payloads."), Handle: a.as(a.listRuns),
		},
		{
			Method: "GET", Pattern: "/runs/{runId}", ID: "getRun", Spec: "runs.md §Snapshot", Protocol: true,
			Summary: "A run's snapshot.", Scope: identity.RunsRead, Returns: map[int]api.Response{
				200: {Description: "The fold of the run's log.", Schema: "run-snapshot"}, 304: {Description: "Unchanged."},
			}, Handle: a.as(a.getRun),
		},
		{
			Method: "GET", Pattern: "/runs/{runId}/compensation", ID: "getRunCompensation", Spec: "security-defaults.md §Compensation",
			Summary: "What of a run's effects is undone, and what has come of it.", Protocol: true, Scope: identity.RunsRead,
			Returns: ok("compensation-projection", "The plan and the attempts."), Handle: a.as(a.getCompensation),
		},
		{
			Method: "POST", Pattern: "/runs/{runId}/cancel", ID: "cancelRun", Spec: "runs.md §Cancel", Protocol: true,
			Summary: "End a run.", Scope: identity.RunsCancel, Body: &api.Body{Schema: "cancel-request", Optional: true},
			Returns: ok("cancel-response", "The run has ended, or ends as soon as its children have."),
			Errors:  []int{409}, Handle: a.as(a.cancelRun),
		},
		{
			Method: "POST", Pattern: "/runs:bulk-cancel", ID: "bulkCancelRuns", Spec: "runs.md §Bulk cancel", Protocol: true,
			Summary: "End many runs, each by itself.", Scope: identity.RunsCancel, Body: &api.Body{Schema: "bulk-cancel-request"},
			Returns: ok("bulk-cancel-response", "One result for each id, in request order."), Handle: a.as(a.bulkCancel),
		},
		{
			Method: "POST", Pattern: "/runs/{runId}:pause", ID: "pauseRun", Spec: "runs.md §Pause and resume", Protocol: true,
			Summary: "Let a run stand still.", Scope: identity.RunsCancel, Body: &api.Body{Schema: "pause-request", Optional: true},
			Returns: map[int]api.Response{202: {Description: "The pause is durable.", Schema: "pause-response"}},
			Errors:  []int{409}, Handle: a.as(a.pauseRun),
		},
		{
			Method: "POST", Pattern: "/runs/{runId}:resume", ID: "resumeRun", Spec: "runs.md §Pause and resume", Protocol: true,
			Summary: "Let a paused run go on.", Scope: identity.RunsCancel, Body: &api.Body{Schema: "resume-request", Optional: true},
			Returns: map[int]api.Response{202: {Description: "The run goes on.", Schema: "resume-response"}},
			Errors:  []int{409}, Handle: a.as(a.resumeRun),
		},
		{
			Method: "GET", Pattern: "/runs/{runId}/events", ID: "streamRunEvents", Spec: "events.md §The events channel", Protocol: true,
			Summary: "Follow a run's events.", Scope: identity.RunsRead, Stream: true,
			Query: stream.Query, Headers: []api.Param{stream.Resume},
			Returns: map[int]api.Response{200: {Description: "Server-sent events until the run ends.", Schema: text, ContentType: "text/event-stream"}},
			Errors:  []int{429}, Handle: a.as(a.streamEvents),
		},
		{
			Method: "GET", Pattern: "/runs/{runId}/events/poll", ID: "pollRunEvents", Spec: "events.md §Poll", Protocol: true,
			Summary: "Wait for a run's next events.", Scope: identity.RunsRead, Stream: true,
			Ignored: []string{"lastSequence", "since"}, // cursors of 1.x, which the text says are none
			Query: []api.Param{
				{Name: "afterSequence", Description: "Only events behind this sequence.", Schema: `{"type":"integer","minimum":0}`},
				{Name: "timeout", Description: "Seconds to wait.", Schema: `{"type":"integer","minimum":1,"maximum":60,"default":30}`}},
			Returns: ok("poll-response", "What there is behind the cursor."), Errors: []int{429}, Handle: a.as(a.pollEvents),
		},
		{
			Method: "GET", Pattern: "/runs/{runId}/effects", ID: "getRunEffects", Spec: "idempotency.md §Witness", Protocol: true,
			Summary: "What a run has done outside, attempt by attempt.", Scope: identity.RunsRead,
			Returns: ok("effect-ledger", "The attempts, oldest first, without payloads."), Handle: a.as(a.getRunEffects),
		},
		{
			Method: "POST", Pattern: "/runs/{runId}/interrupts/{nodeId}", ID: "resolveInterruptByRun", Protocol: true,
			Spec: "interrupt.md §Resolve surfaces", Summary: "Answer what a node waits for.", Scope: identity.ApprovalsRespond,
			Body: &api.Body{Schema: "interrupt-resolve-request"}, Returns: ok("interrupt-resolve-response", "The answer is durable."),
			Errors: []int{409, 413, 415}, Handle: a.as(a.resolveInterrupt),
		},
	}
	rs = append(rs, a.tokenRoutes()...)
	rs = append(rs, a.forkRoutes(ok)...)
	rs = append(rs, a.keyRoutes(limit, cursor)...)
	rs = append(rs, a.tenantRoutes(limit, cursor)...)
	if a.host.ServesCredentials() {
		rs = append(rs, a.credentialRoutes(limit, cursor)...)
	}
	rs = append(rs, a.auditRoutes(limit, cursor)...)
	rs = append(rs, a.resourceRoutes()...)
	if a.host.ServesWebhooks() {
		rs = append(rs, a.webhookRoutes(limit, cursor)...)
	}
	rs = append(rs, a.hostRoutes(limit, cursor)...)
	for i := range rs {
		if r := &rs[i]; r.Mutates() {
			r.Headers = append(r.Headers, door.Key.Param())
			r.Errors = append(r.Errors, 409)
		}
		if r := &rs[i]; (r.Scope != "" || r.Pattern == "/interrupts/{token}") && !slices.Contains(r.Errors, 429) {
			r.Errors = append(r.Errors, 429) // whoever is known has bounds
		}
		if r := &rs[i]; strings.Contains(r.Pattern, "{runId}") {
			r.Errors = append(r.Errors, 410) // run_expired, spec v2 replay.md §Retention
		}
	}
	return rs
}

// hostRoutes are the host's own operations (spec v2 versioning.md §5).
func (a *API) hostRoutes(limit, cursor api.Param) []api.Route {
	object := func(what string) map[int]api.Response {
		return map[int]api.Response{200: {Description: what, Schema: `{"type":"object"}`}}
	}
	return []api.Route{
		{
			Method: "GET", Pattern: "/host/fermata/workflows", ID: "listWorkflows", Scope: identity.ManifestRead,
			Summary: "The caller's workflows.", Query: []api.Param{limit, cursor}, Returns: object("A page of workflows."),
			Handle: a.as(a.listWorkflows),
		},
		{
			Method: "PUT", Pattern: "/host/fermata/workflows/{workflowId}", ID: "putWorkflow", Scope: identity.WorkflowsWrite,
			Summary: "Register a version of a workflow.", Body: &api.Body{Schema: "workflow-definition"},
			Returns: map[int]api.Response{
				200: {Description: "This version was registered before.", Schema: `{"type":"object"}`},
				201: {Description: "The version is registered.", Schema: `{"type":"object"}`},
			}, Errors: []int{409, 413, 415, 422}, Handle: a.as(a.putWorkflow),
		},
		{
			Method: "GET", Pattern: "/host/fermata/workflows/{workflowId}", ID: "getWorkflowVersion", Scope: identity.ManifestRead,
			Summary: "A version of a workflow's definition.", Query: []api.Param{{Name: "version", Schema: text, Description: "The latest if absent."}},
			Returns: map[int]api.Response{200: {Description: "The definition.", Schema: "workflow-definition"}}, Handle: a.as(a.getWorkflow),
		},
		{
			Method: "DELETE", Pattern: "/host/fermata/workflows/{workflowId}", ID: "deleteWorkflow", Scope: identity.WorkflowsWrite,
			Summary: "Hide a workflow. Its runs go on.", Returns: map[int]api.Response{204: {Description: "Hidden."}},
			Handle: a.as(a.deleteWorkflow),
		},
		{
			Method: "POST", Pattern: "/host/fermata/workflows:validate", ID: "validateWorkflow", Scope: identity.ManifestRead, ReadOnly: true,
			Summary: "Check a definition without registering it.", Body: &api.Body{Schema: "workflow-definition"},
			Returns: object("The definition is valid."), Errors: []int{422}, Handle: a.as(a.validateWorkflow),
		},
		{
			Method: "GET", Pattern: "/host/fermata/schedules", ID: "listSchedules", Scope: identity.ManifestRead,
			Summary: "The schedules of the caller's workflows, with their next and last tick.", Query: []api.Param{limit, cursor},
			Returns: object("A page of schedules."), Handle: a.as(a.listSchedules),
		},
		{
			Method: "GET", Pattern: "/host/fermata/interrupts", ID: "listInterrupts", Scope: identity.RunsRead,
			Summary: "What the caller's runs wait for.", Query: []api.Param{limit, cursor}, Returns: object("A page of open interrupts."),
			Handle: a.as(a.listInterrupts),
		},
		{
			Method: "POST", Pattern: "/host/fermata/runs/{runId}/interrupts/{nodeId}/tokens", ID: "issueInterruptToken", ShowsSecret: true,
			Scope: identity.ApprovalsRespond, Summary: "Get a token for what a node waits for, to pass on.",
			ReadOnly: true, // a record of it would keep a credential
			Body: &api.Body{Optional: true, Schema: `{"type":"object","additionalProperties":false,"properties":{` +
				`"intent":{"type":"string","enum":["resolve","inspect"]},"expiresInSeconds":{"type":"integer","minimum":1,"maximum":604800}}}`},
			Returns: map[int]api.Response{201: {Description: "The token. It is shown this once.", Schema: `{"type":"object"}`}},
			Errors:  []int{409, 413, 415}, Handle: a.as(a.issueToken),
		},
		{
			Method: "GET", Pattern: "/host/fermata/host", ID: "getHost", Scope: identity.ManifestRead,
			Summary: "Which build this is, and which protections its operator has loosened.",
			Returns: object("What a certification bundle has to record."), Handle: a.as(a.getHost),
		},
		{
			Method: "POST", Pattern: "/host/fermata/runs/{runId}/compensation", ID: "operateCompensation",
			Scope: identity.CompensationOperate, Summary: "Start, retry, skip, substitute or terminate what undoes a run.",
			Body: &api.Body{Schema: `{"type":"object","required":["action"],"additionalProperties":false,"properties":{` +
				`"action":{"type":"string","enum":["start","retry","skip","substitute","terminate"]},"order":{"type":"integer","minimum":1},` +
				`"nodeTypeId":{"type":"string","minLength":1},"reason":{"type":"string","maxLength":4096}}}`},
			Returns: map[int]api.Response{200: {Description: "The compensation afterwards.", Schema: "compensation-projection"}},
			Errors:  []int{409, 413, 415}, Handle: a.as(a.operateCompensation),
		},
		{
			Method: "GET", Pattern: "/host/fermata/runs/{runId}/debug-bundle", ID: "getDebugBundle", Scope: identity.RunsRead,
			Summary: "What there is to know of a run, in one document that can be handed on.", Query: []api.Param{bundle.MaxEvents},
			Returns: map[int]api.Response{200: {Description: "The bundle.", Schema: "debug-bundle"}}, Handle: a.as(a.getDebugBundle),
		},
		{
			Method: "GET", Pattern: "/host/fermata/live", ID: "live", Summary: "The process is up.",
			Returns: object("It is."), Handle: a.live,
		},
		{
			Method: "GET", Pattern: "/host/fermata/ready", ID: "ready", Summary: "The host can take on work.",
			Returns: object("It can."), Errors: []int{503}, Handle: a.ready,
		},
	}
}
