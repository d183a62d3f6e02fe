package conformance_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"time"
)

// mutations is the table of broken hosts.
var mutations = slices.Concat(discoveryMutations, wireMutations, runMutations, logMutations, streamMutations, waitMutations, approverMutations, compensationMutations, claimMutations, effectMutations, credentialMutations, tenantMutations, forkMutations, auditMutations, laneMutations, tenancyMutations, limitMutations, redactionMutations)

var discoveryMutations = []mutation{
	{"unknown member at the root", "discovery.document", answers(when("GET", wellKn), on(200, set("surprise", 1)))},
	{"profiles at the root", "discovery.root-closed", answers(when("GET", wellKn), on(200, set("profiles", []string{"openwop-core-standard"})))},
	{"dotted mirror", "discovery.root-closed", answers(when("GET", wellKn), on(200, set("host.replay", map[string]any{})))},
	{"record with supported", "discovery.records", answers(when("GET", wellKn), on(200, set("eventLog", map[string]any{"supported": true})))},
	{"record that has run out", "discovery.records", answers(when("GET", wellKn), on(200, set("eventLog", map[string]any{
		"status": "experimental", "since": "2.0", "until": "2020-01-01", "witness": "claims-check"})))},
	{"reserved org", "discovery.extensions", answers(when("GET", wellKn), on(200, set("extensions", map[string]any{"openwop.x": map[string]any{}})))},
	{"no validator", "discovery.etag", answers(when("GET", wellKn), header("ETag", ""))},
	{"never not modified", "discovery.not-modified", requests(when("GET", wellKn), func(r *http.Request) { r.Header.Del("If-None-Match") })},
	{"validator of other bytes", "discovery.etag-tells-bytes", answers(when("GET", wellKn), func(_ *http.Request, c *captured) {
		c.header.Set("ETag", fmt.Sprintf(`"%d"`, time.Now().UnixNano()))
	})},
	{"validator of v1", "discovery.no-old-validator", answers(when("GET", wellKn), header("Capabilities-Etag", "x"))},
	{"era of v1 advertised", "discovery.era", answers(when("GET", wellKn), on(200, set("eventLogSchemaVersion", 2)))},
	{"claims a fixture that is not there", "discovery.fixtures-honest", answers(when("GET", wellKn), on(200, set("fixtures", []string{"conformance-not-there"})))},
	{"preferred version not listed", "versioning.preferred", answers(when("GET", wellKn), on(200, set("preferredVersion", "2.9")))},
	{"version with a patch", "versioning.grammar", answers(when("GET", wellKn), on(200, set("protocolVersions", []string{"2.0.0"})))},
	{"headerless in another major", "versioning.headerless", answers(when("GET", wellKn), header("OpenWOP-Version", "1.4"))},
	{"version header ignored", "versioning.unserved-refused", requests(when("", all), func(r *http.Request) { r.Header.Del("OpenWOP-Version") })},
	{"406 without the list", "versioning.unserved-refused", answers(when("", all), on(406, drop("details")))},
	{"unserved major creates a run", "versioning.unserved-everywhere", requests(when("POST", create), func(r *http.Request) { r.Header.Del("OpenWOP-Version") })},
	{"2.0 is refused", "versioning.both-spellings", requests(when("", all), func(r *http.Request) {
		if r.Header.Get("OpenWOP-Version") == "2.0" {
			r.Header.Set("OpenWOP-Version", "97")
		}
	})},
	{"answers name no version", "versioning.response-header", answers(when("GET", aRun), header("OpenWOP-Version", ""))},
	{"refusals name no version", "versioning.response-header", answers(when("", all), on(404, header("OpenWOP-Version", "")))},
	{"answers name another version", "versioning.response-header", answers(when("", aCancel), header("OpenWOP-Version", "1.0"))},
}

var wireMutations = []mutation{
	{"unlisted header", "headers.closed-set", answers(when("", aRun), header("OpenWOP-Surprise", "1"))},
	{"header of v1", "headers.removed", answers(when("", aRun), header("X-openwop-Webhook-Id", "1"))},
	{"any origin with credentials", "headers.foreign-origin", answers(when("GET", create), func(r *http.Request, c *captured) {
		c.header.Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
		c.header.Set("Access-Control-Allow-Credentials", "true")
	})},
	{"no challenge", "headers.challenge", answers(when("", all), header("WWW-Authenticate", ""))},
	{"challenge on 404", "headers.no-challenge-on-404", answers(when("", all), on(404, header("WWW-Authenticate", "Bearer")))},
	{"malformed client version refused", "headers.client-version-malformed", func(next http.Handler) http.Handler {
		bad := func(r *http.Request) bool { return r.Header.Get("OpenWOP-Client-Version") == "two" }
		return instead(bad, 400, `{"error":"validation_error","message":"no"}`)(next)
	}},
	{"envelope with more", "errors.envelope", answers(when("", all), on(404, set("traceId", "x")))},
	{"refusal as text", "errors.envelope", answers(when("", all), on(404, header("Content-Type", "text/plain")))},
	{"code at another status", "errors.registered", answers(when("", all), status(403, 404))},
	{"code nobody registered", "errors.registered", answers(when("", all), on(404, set("error", "no_such_thing")))},
	{"retry timing in the body", "errors.retry-timing", answers(when("", all), on(404, set("details", map[string]any{"retryAfter": 5})))},
	{"malformed body is a 500", "errors.no-server-error", answers(when("POST", create), on(400, func(r *http.Request, c *captured) {
		c.status = 500
		set("error", "internal_error")(r, c)
	}))},
	{"malformed body is another error", "errors.malformed-body", answers(when("POST", create), status(400, 422))},
	{"no credential needed", "errors.no-credential", requests(when("GET", aRun), func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+testKey) })},
	{"any credential will do", "errors.bad-credential", requests(when("", aCancel), func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+testKey) })},
	{"unknown run is forbidden", "errors.unknown-run", answers(when("GET", aRun), status(404, 403))},
	{"any media type", "errors.media-type", requests(when("POST", create), func(r *http.Request) { r.Header.Set("Content-Type", "application/json") })},
	{"too large is another error", "errors.body-limit", answers(when("POST", create), status(413, 400))},
	{"foreign run not found", "identity.foreign-tenant", answers(when("GET", aPoll), on(403, func(_ *http.Request, c *captured) {
		c.status, c.body = 404, []byte(`{"error":"not_found","message":"no such run"}`)
	}))},
	{"foreign runs told apart", "identity.no-oracle", answers(when("GET", aRun), on(403, func(r *http.Request, c *captured) {
		if strings.HasSuffix(r.URL.Path, "two") {
			c.status, c.body = 404, []byte(`{"error":"not_found","message":"no such run"}`)
		}
	}))},
	{"percent-encoded id not found", "identity.both-spellings", instead(func(r *http.Request) bool {
		return strings.Contains(r.URL.EscapedPath(), "%2F")
	}, 404, `{"error":"not_found","message":"no such run"}`)},
	{"link with the raw id", "identity.links", answers(when("POST", create), on(201, object(func(m map[string]any) {
		m["eventsUrl"] = strings.ReplaceAll(m["eventsUrl"].(string), "~2F", "/")
	})))},
	{"bare id not found", "identity.bare-id", answers(when("", `^/runs/[0-9a-z]+($|[/:])`), on(400, func(_ *http.Request, c *captured) {
		c.status, c.body = 404, []byte(`{"error":"not_found","message":"no such run"}`)
	}))},
	{"owner without a subject", "identity.owner", answers(when("GET", aRun), on(200, set("owner", map[string]any{"tenant": "default"})))},
	{"owner differs in the log", "identity.owner-echo", answers(when("GET", aPoll), ofType("run.started", func(e map[string]any) {
		e["payload"].(map[string]any)["owner"].(map[string]any)["workspace"] = "elsewhere"
	}))},
	{"operations under /v2", "gates.no-v2-paths", requests(when("", `^/v2/`), func(r *http.Request) {
		r.URL.Path, r.URL.RawPath = strings.TrimPrefix(r.URL.Path, "/v2"), strings.TrimPrefix(r.URL.RawPath, "/v2")
	})},
	{"seams in production", "gates.seams", instead(when("POST", `^/conformance/seams/`), 200, `{}`)},
	{"claims nothing of webhooks: yet serves them", "gates.webhooks", answers(when("GET", wellKn), on(200, object(func(m map[string]any) { delete(m, "webhooks") })))},
	{"pause is not mounted", "gates.core-mounted", instead(when("POST", `:pause$`), 404, `{"error":"not_found","message":"no such operation"}`)},
	{"token that means nothing is taken", "token.unprefixed", instead(when("GET", `^/interrupts/`), 200, `{}`)},
}

var runMutations = []mutation{
	{"create answers 200", "create.response", answers(when("POST", create), status(201, 200))},
	{"create says too much", "create.response", answers(when("POST", create), on(201, set("workflowId", "x")))},
	{"create of a run that is over", "create.response", answers(when("POST", create), on(201, set("status", "completed")))},
	{"link to another origin", "create.links", answers(when("POST", create), on(201, set("eventsUrl", "http://elsewhere.example/runs/x/events")))},
	{"unknown members are dropped", "create.closed", body(create, func(m map[string]any) { delete(m, "conformanceUnknownMember") })},
	{"forced engine version passes", "create.engine-version-forced", requests(when("POST", create), func(r *http.Request) { r.Header.Del("OpenWOP-Force-Engine-Version") })},
	{"callback that is ignored", "create.callback-refused", body(create, func(m map[string]any) { delete(m, "callbackUrl") })},
	{"run without an era", "create.era", answers(when("GET", aRun), on(200, set("eventLogSchemaVersion", 2)))},
	{"era of a failed run", "create.era-universal", answers(when("GET", aRun), on(200, object(func(m map[string]any) {
		if m["status"] == "failed" {
			m["eventLogSchemaVersion"] = 2
		}
	})))},
	{"transport is lost", "create.start-event", answers(when("GET", aPoll), ofType("run.started", func(e map[string]any) {
		e["payload"].(map[string]any)["transport"] = "mcp"
	}))},
	{"any number of tags", "options.tag-limits", body(create, func(m map[string]any) { delete(m, "tags") })},
	{"tags in lower case", "options.tags-free", answers(when("GET", aRun), on(200, object(func(m map[string]any) {
		if tags, ok := m["tags"].([]any); ok {
			for i := range tags {
				tags[i] = strings.ToLower(tags[i].(string))
			}
		}
	})))},
	{"metadata is lost", "options.metadata", answers(when("GET", aRun), on(200, drop("metadata")))},
	{"configurable is lost", "options.configurable-kept", answers(when("GET", aRun), on(200, drop("configurable")))},
	{"configurable is ignored", "options.configurable-closed", body(create, func(m map[string]any) { delete(m, "configurable") })},
	{"run timeout is ignored", "options.run-timeout", body(create, func(m map[string]any) {
		if m["configurable"] != nil {
			delete(m, "configurable")
			m["inputs"] = map[string]any{"delayMs": 10}
		}
	})},
	{"snapshot says too much", "read.snapshot", answers(when("GET", aRun), on(200, set("secret", "x")))},
	{"failed run without an error", "read.error", answers(when("GET", aRun), on(200, drop("error")))},
	{"current node of a run that is over", "read.current-node", answers(when("GET", aRun), on(200, set("currentNodeId", "gate")))},
	{"compensation nobody advertises", "read.compensation", answers(when("GET", wellKn), on(200, drop("compensation")))},
	{"snapshot without compensationStatus", "read.compensation", answers(when("GET", aRun), on(200, drop("compensationStatus")))},
	{"weak validator", "read.etag", answers(when("GET", aRun), func(_ *http.Request, c *captured) { c.header.Set("ETag", "W/"+c.header.Get("ETag")) })},
	{"validator that never changes", "read.etag-changes", answers(when("GET", aRun), header("ETag", `"same"`))},
	{"validator that always changes", "read.etag-stable", answers(when("GET", aRun), func(_ *http.Request, c *captured) {
		c.header.Set("ETag", fmt.Sprintf(`"%d"`, time.Now().UnixNano()))
	})},
	{"snapshot never not modified", "read.not-modified", requests(when("GET", aRun), func(r *http.Request) { r.Header.Del("If-None-Match") })},
	{"everything not modified", "read.not-modified", answers(when("GET", aRun), func(r *http.Request, c *captured) {
		if r.Header.Get("If-None-Match") != "" {
			c.status, c.body = 304, nil
		}
	})},
	{"a run is missing from the list", "list.own", answers(when("GET", create), on(200, object(func(m map[string]any) {
		if runs := m["runs"].([]any); len(runs) > 0 {
			m["runs"] = slices.DeleteFunc(runs, func(r any) bool {
				return strings.HasPrefix(r.(map[string]any)["workflowId"].(string), "conformance-own-noop-")
			})
		}
	})))},
	{"oldest run first", "list.newest-first", answers(when("GET", create), on(200, object(func(m map[string]any) { slices.Reverse(m["runs"].([]any)) })))},
	{"page over the maximum", "list.page", answers(when("GET", wellKn), on(200, object(func(m map[string]any) { m["runList"].(map[string]any)["maxPageSize"] = 1 })))},
	{"a page repeats a run", "list.pages", answers(when("GET", create), on(200, object(func(m map[string]any) {
		if runs := m["runs"].([]any); len(runs) > 0 {
			m["runs"] = append(runs, runs[0])
		}
	})))},
	{"any cursor will do", "list.foreign-cursor", requests(when("GET", create), func(r *http.Request) { query(r, "cursor", "") })},
	{"workflow filter ignored", "list.filter-workflow", requests(when("GET", create), func(r *http.Request) { query(r, "workflowId", "") })},
	{"status filter ignored", "list.filter-status", requests(when("GET", create), func(r *http.Request) { query(r, "status", "") })},
	{"cancel of a run that is over", "cancel.terminal", answers(when("POST", aCancel), on(409, func(_ *http.Request, c *captured) {
		c.status, c.body = 200, []byte(`{"runId":"default/0123456789abcdef","status":"cancelled"}`)
	}))},
	{"cancel answers completed", "cancel.running", answers(when("POST", aCancel), on(200, set("status", "completed")))},
	{"cancel does nothing", "cancel.waiting", instead(when("POST", aCancel), 200, `{"runId":"default/0123456789abcdef","status":"cancelling"}`)},
	{"reason is lost", "cancel.reason", answers(when("GET", aPoll), ofType("run.cancelled", func(e map[string]any) { delete(e["payload"].(map[string]any), "reason") }))},
	{"child is not told why", "cancel.cascade", answers(when("GET", aPoll), ofType("run.cancelled", func(e map[string]any) { delete(e["payload"].(map[string]any), "parentRunId") }))},
	{"results in another order", "bulk.each-alone", answers(when("POST", bulk), on(200, object(func(m map[string]any) { slices.Reverse(m["results"].([]any)) })))},
	{"foreign id refuses the whole", "bulk.each-alone", instead(when("POST", bulk), 403, `{"error":"id_tenant_mismatch","message":"no"}`)},
	{"entry without an envelope", "bulk.all-fail", answers(when("POST", bulk), on(200, object(func(m map[string]any) {
		for _, r := range m["results"].([]any) {
			r.(map[string]any)["error"] = "not_found"
		}
	})))},
	{"bound is not named", "bulk.cap", answers(when("POST", bulk), on(400, drop("details")))},
	{"second pause is taken", "pause.cycle", answers(when("POST", `:pause$`), on(409, func(_ *http.Request, c *captured) {
		c.status, c.body = 202, []byte(`{"runId":"default/0123456789abcdef","status":"paused"}`)
	}))},
	{"refusing status is not named", "pause.cycle", answers(when("POST", `:pause$`), on(409, drop("details")))},
	{"pause of a run that is over conflicts", "pause.terminal", answers(when("POST", `:pause$`), on(409, set("error", "run_state_conflict")))},
	{"any run resumes", "pause.resume-unpaused", instead(when("POST", `:resume$`), 202, `{"runId":"default/0123456789abcdef","status":"running"}`)},
	{"policy is not recorded", "pause.policy-echoed", answers(when("GET", aPoll), ofType("run.paused", func(e map[string]any) {
		e["payload"].(map[string]any)["drainPolicy"] = "drain-current-node"
	}))},
	{"pause does not hold", "pause.immediate-cut", func(next http.Handler) http.Handler {
		return answers(when("POST", `:pause$`), on(202, func(r *http.Request, _ *captured) {
			again := r.Clone(r.Context())
			again.URL.Path = strings.Replace(r.URL.Path, ":pause", ":resume", 1)
			again.URL.RawPath, again.Body, again.ContentLength = "", http.NoBody, 0
			time.AfterFunc(100*time.Millisecond, func() { next.ServeHTTP(httptest.NewRecorder(), again.WithContext(nobody)) })
		}))(next)
	}},
}

// body changes the JSON body of a request before the host reads it.
func body(path string, edit func(map[string]any)) func(http.Handler) http.Handler {
	return requests(when("POST", path), func(r *http.Request) {
		c := &captured{}
		c.body = readAll(r)
		object(edit)(r, c)
		putBody(r, c.body)
	})
}

func sequenceOf(e any) int64 { return number(e.(map[string]any)["sequence"]) }

func renumber(list []any, by int64) []any {
	for _, e := range list {
		m := e.(map[string]any)
		m["sequence"] = json.Number(fmt.Sprint(number(m["sequence"]) + by))
	}
	return list
}
