package conformance_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// The paths of version 1.
const (
	aRun1    = `^/v1/runs/[^/:]+$`
	aStream1 = `^/v1/runs/[^/]+/events$`
	aPoll1   = `^/v1/runs/[^/]+/events/poll$`
	aCancel1 = `^/v1/runs/[^/]+/cancel$`
	anAsk1   = `^/v1/runs/[^/]+/interrupts/`
	aFork1   = `^/v1/runs/[^/]+:fork$`
	aToken1  = `^/v1/interrupts/`
	aBundle1 = `^/v1/runs/[^/]+/debug-bundle$`
	create1  = `^/v1/runs$`
	hooks1   = `^/v1/webhooks$`
	wire1    = `^/v1/`
)

var v1Mutations = slices.Concat(v1WireMutations, v1RunMutations, v1EventMutations, v1StreamMutations, v1AskMutations, v1OtherMutations)

// headless keeps a header from the host.
func headless(sel func(*http.Request) bool, name string) func(http.Handler) http.Handler {
	return requests(sel, func(r *http.Request) { r.Header.Del(name) })
}

// versioned selects requests that name a version.
func versioned(pattern string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		return r.Header.Get("OpenWOP-Version") != "" && when("", pattern)(r)
	}
}

// inside edits an object that is a member of the body.
func inside(name string, edit func(map[string]any)) func(*http.Request, *captured) {
	return object(func(m map[string]any) {
		if in, ok := m[name].(map[string]any); ok {
			edit(in)
		}
	})
}

// swap writes another text for each one in the answer's bytes.
func swap(old, new string) func(*http.Request, *captured) {
	return func(_ *http.Request, c *captured) { c.body = []byte(strings.ReplaceAll(string(c.body), old, new)) }
}

var v1WireMutations = []mutation{
	{"version of three numbers", "v1.versions.advertised", answers(when("GET", wellKn), on(200, set("protocolVersion", "1.0.0")))},
	{"the younger version preferred", "v1.versions.advertised", answers(when("GET", wellKn), on(200, set("preferredVersion", "2.0")))},
	{"discovery of version 2 for everybody", "v1.versions.headerless", requests(when("GET", wellKn), func(r *http.Request) {
		if r.Header.Get("OpenWOP-Version") == "" {
			r.Header.Set("OpenWOP-Version", "2")
		}
	})},
	{"one document", "v1.versions.both-documents", headless(when("GET", wellKn), "OpenWOP-Version")},
	{"any version will do for discovery", "v1.versions.unlisted", headless(when("GET", wellKn), "OpenWOP-Version")},
	{"a refusal that names no version", "v1.versions.unlisted", answers(when("GET", wellKn), on(406, drop("details")))},
	{"no minor but its own", "v1.versions.any-minor", requests(versioned(wire1), func(r *http.Request) {
		if r.Header.Get("OpenWOP-Version") == "1.7" {
			r.Header.Set("OpenWOP-Version", "3")
		}
	})},
	{"any version will do under v1", "v1.versions.mismatch", headless(versioned(wire1), "OpenWOP-Version")},
	{"mismatch under another code", "v1.versions.mismatch", answers(versioned(wire1), on(400, set("error", "validation_error")))},
	{"answers without a version", "v1.versions.response-header", answers(when("GET", aRun1), header("OpenWOP-Version", ""))},
	{"refusals without a version", "v1.versions.response-header", answers(when("GET", aRun1), on(404, header("OpenWOP-Version", "")))},
	{"streams without a version", "v1.versions.response-header", answers(when("GET", aStream1), header("OpenWOP-Version", ""))},
	{"answers in version 2", "v1.versions.response-header", answers(when("POST", aCancel1), header("OpenWOP-Version", "2.0"))},
	{"runs of v1 alone", "v1.versions.one-run", answers(when("GET", aRun), status(200, 404))},

	{"no envelopes", "v1.discovery.required", answers(when("GET", wellKn), on(200, drop("supportedEnvelopes")))},
	{"no rounds", "v1.discovery.required", answers(when("GET", wellKn), on(200, inside("limits", func(m map[string]any) { delete(m, "schemaRounds") })))},
	{"schema versions as text", "v1.discovery.required", answers(when("GET", wellKn), on(200, set("schemaVersions", map[string]any{"x": "1"})))},
	{"limit nobody knows", "v1.discovery.limits", answers(when("GET", wellKn), on(200, inside("limits", func(m map[string]any) { m["maxSurprise"] = 1 })))},
	{"family below capabilities", "v1.discovery.at-root", answers(when("GET", wellKn), on(200, set("capabilities", map[string]any{"surprise": map[string]any{}})))},
	{"era of version 2", "v1.discovery.era", answers(when("GET", wellKn), on(200, set("eventLogSchemaVersion", 3)))},
	{"supported as text", "v1.discovery.types", answers(when("GET", wellKn), on(200, set("replay", map[string]any{"supported": "yes"})))},
	{"engine version as text", "v1.discovery.types", answers(when("GET", wellKn), on(200, set("engineVersion", "1")))},
	{"validator unknown", "v1.discovery.validator", headless(when("GET", wellKn), "If-None-Match")},
	{"kept for an hour", "v1.discovery.cache", answers(when("GET", wellKn), header("Cache-Control", "public, max-age=3600"))},
	{"discovery for members", "v1.discovery.public", answers(func(r *http.Request) bool { return when("GET", wellKn)(r) && r.Header.Get("Authorization") == "" }, status(200, 401))},
	{"no OpenAPI", "v1.discovery.public", answers(when("GET", `openapi.json$`), drop("paths"))},
	{"definition of another", "v1.discovery.workflow", answers(when("GET", `^/v1/workflows/`), on(200, set("id", "other")))},

	{"more than three members", "v1.errors.envelope", answers(when("", wire1), on(404, set("traceId", "x")))},
	{"scope at the root", "v1.errors.envelope", answers(when("", wire1), on(401, set("scopeRequired", "runs:read")))},
	{"refusal as a text", "v1.errors.envelope", answers(when("", wire1), on(409, header("Content-Type", "text/plain")))},
	{"key not needed", "v1.errors.unauthenticated", requests(when("POST", aCancel1), func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+testKey) })},
	{"artifacts before credentials", "v1.errors.unauthenticated", answers(when("GET", `/artifacts/`), status(401, 404))},
	{"grammar of ids", "v1.errors.unknown-run", instead(func(r *http.Request) bool {
		return when("GET", aRun1)(r) && len(strings.TrimPrefix(r.URL.Path, "/v1/runs/")) < 16
	}, 400, `{"error":"validation_error","message":"no id"}`)},
	{"everybody's runs", "v1.errors.foreign-run", answers(when("GET", aRun1), status(404, 200))},
}

var v1RunMutations = []mutation{
	{"created as 200", "v1.create.answer", answers(when("POST", create1), status(201, 200))},
	{"no events address", "v1.create.answer", answers(when("POST", create1), on(201, drop("eventsUrl")))},
	{"bound id", "v1.create.answer", answers(when("POST", create1), on(201, object(func(m map[string]any) { m["runId"] = fmt.Sprint("default/", m["runId"]) })))},
	{"unknown keys taken", "v1.create.refused", body(create1, func(m map[string]any) { delete(m, "conformanceUnknown") })},
	{"bad body as 422", "v1.create.refused", answers(when("POST", create1), status(400, 422))},
	{"unknown workflow as 409", "v1.create.unknown-workflow", answers(when("POST", create1), status(404, 409))},
	{"options nested", "v1.create.flat-options", answers(when("GET", aRun1), on(200, object(func(m map[string]any) {
		if c, ok := m["configurable"]; ok {
			m["configurable"] = map[string]any{"limits": c}
		}
	})))},
	{"options lost", "v1.create.flat-options", body(create1, func(m map[string]any) { delete(m, "configurable") })},
	{"options cut to fit", "v1.create.option-range", body(create1, func(m map[string]any) { delete(m, "configurable") })},
	{"dedup ignored", "v1.create.dedup", headless(when("POST", create1), "X-Dedup")},
	{"dedup without the run", "v1.create.dedup", answers(when("POST", create1), on(409, drop("details")))},
	{"dedup without a time", "v1.create.dedup", answers(when("POST", create1), on(409, header("Retry-After", "")))},
	{"forced version ignored", "v1.create.test-aids", headless(when("POST", create1), "X-Force-Engine-Version")},
	{"mock provider ignored", "v1.create.test-aids", body(create1, func(m map[string]any) { delete(m, "configurable") })},
	{"labels lost", "v1.create.labels", body(create1, func(m map[string]any) { delete(m, "tags") })},

	{"times in words", "v1.snapshot.shape", answers(when("GET", aRun1), on(200, set("startedAt", "yesterday")))},
	{"snapshot without a workflow", "v1.snapshot.shape", answers(when("GET", aRun1), on(200, drop("workflowId")))},
	{"snapshot of the younger era", "v1.snapshot.shape", answers(when("GET", aRun1), on(200, set("eventLogSchemaVersion", 3)))},
	{"external as input", "v1.snapshot.waiting", answers(when("GET", aRun1), swap(`"waiting-external"`, `"waiting-input"`))},
	{"clarification as its own status", "v1.snapshot.waiting", answers(when("GET", aRun1), swap(`"waiting-input"`, `"waiting-clarification"`))},
	{"no interrupt in the snapshot", "v1.snapshot.interrupt", answers(when("GET", aRun1), on(200, drop("interrupt")))},
	{"interrupt without an artifact", "v1.snapshot.interrupt", answers(when("GET", aRun1), on(200, inside("interrupt", func(m map[string]any) { delete(m["data"].(map[string]any), "artifactId") })))},
	{"interrupt for ever", "v1.snapshot.interrupt", answers(when("GET", aRun1), on(200, object(func(m map[string]any) {
		if m["status"] == "completed" {
			m["interrupt"] = map[string]any{"kind": "approval"}
		}
	})))},
	{"no inputs", "v1.snapshot.inputs", answers(when("GET", aRun1), on(200, drop("inputs")))},
	{"no variables", "v1.snapshot.inputs", answers(when("GET", aRun1), on(200, drop("variables")))},
	{"open error", "v1.snapshot.error", answers(when("GET", aRun1), on(200, inside("error", func(m map[string]any) { m["stack"] = "x" })))},
	{"snapshot never unchanged", "v1.snapshot.not-modified", headless(when("GET", aRun1), "If-None-Match")},
	{"orphans", "v1.snapshot.family", answers(when("GET", aRun1), on(200, drop("parentRunId")))},
	{"null for what is not set", "v1.snapshot.mapped", answers(when("GET", aRun1), on(200, inside("variables", func(m map[string]any) { m["unset"] = nil })))},
	{"mapping the other way round", "v1.snapshot.mapped", answers(when("GET", aRun1), on(200, inside("variables", func(m map[string]any) {
		if v, ok := m["theirs"]; ok {
			delete(m, "theirs")
			m["ours"] = v
		}
	})))},
	{"no children", "v1.snapshot.family", answers(when("GET", aRun1), on(200, drop("childRuns")))},

	{"cancel of another status", "v1.cancel.open", answers(when("POST", aCancel1), on(200, set("status", "stopped")))},
	{"cancel without its reason", "v1.cancel.open", body(aCancel1, func(m map[string]any) { delete(m, "reason") })},
	{"cancel of a finished run conflicts", "v1.cancel.over", answers(when("POST", aCancel1), func(_ *http.Request, c *captured) {
		if !strings.Contains(string(c.body), "cancelling") {
			c.status, c.body = 409, []byte(`{"error":"run_terminal","message":"over"}`)
		}
	})},
	{"cancel of a finished run says cancelled", "v1.cancel.over", answers(when("POST", aCancel1), on(200, set("status", "cancelled")))},
	{"child with a bound parent", "v1.cancel.children", answers(when("GET", aPoll1), ofType("run.cancelled", func(e map[string]any) {
		e["payload"].(map[string]any)["parentRunId"] = "default/x"
	}))},
	{"bulk in another order", "v1.bulk.each-alone", answers(when("POST", `bulk-cancel$`), on(200, object(func(m map[string]any) {
		if l, ok := m["results"].([]any); ok {
			slices.Reverse(l)
		}
	})))},
	{"cancelled already fails", "v1.bulk.each-alone", answers(when("POST", `bulk-cancel$`), on(200, object(func(m map[string]any) {
		l := m["results"].([]any)
		l[len(l)-1].(map[string]any)["ok"] = false
	})))},
	{"bulk without a bound", "v1.bulk.cap", answers(when("POST", `bulk-cancel$`), on(400, drop("details")))},

	{"paused as 200", "v1.pause.cycle", answers(when("POST", `:pause$`), status(202, 200))},
	{"conflict without the status", "v1.pause.cycle", answers(when("POST", `:pause$`), on(409, drop("details")))},
	{"policy forgotten", "v1.pause.cycle", body(`:pause$`, func(m map[string]any) { delete(m, "drainPolicy") })},
	{"over is a conflict like any", "v1.pause.over", answers(when("POST", `:(pause|resume)$`), on(409, set("error", "run_state_conflict")))},
	{"any policy", "v1.pause.refused", body(`:pause$`, func(m map[string]any) { delete(m, "drainPolicy") })},
	{"pause again conflicts", "v1.pause.repeated", headless(when("POST", `:pause$`), "Idempotency-Key")},

	{"fork without a source", "v1.fork.replay", answers(when("POST", aFork1), on(201, drop("sourceRunId")))},
	{"replay from elsewhere", "v1.fork.replay", answers(when("POST", aFork1), on(201, set("fromSeq", 1)))},
	{"overlay ignored", "v1.fork.branch", body(aFork1, func(m map[string]any) { delete(m, "runOptionsOverlay") })},
	{"past the end is 400", "v1.fork.refused", answers(when("POST", aFork1), status(422, 400))},
	{"overlay on a replay taken", "v1.fork.refused", body(aFork1, func(m map[string]any) { delete(m, "runOptionsOverlay") })},
	{"diff of bound ids", "v1.fork.diff", answers(when("GET", `:diff$`), on(200, set("a", "default/x")))},
	{"never a difference", "v1.fork.diff", answers(when("GET", `:diff$`), on(200, set("eventDiffs", []any{})))},
	{"bound ancestors", "v1.fork.ancestry", answers(when("GET", `/ancestry$`), on(200, inside("parent", func(m map[string]any) { m["runId"] = fmt.Sprint("default/", m["runId"]) })))},
}

var v1EventMutations = []mutation{
	{"numbered from 1", "v1.events.numbered", answers(when("GET", aPoll1), events(func(l []any) []any { return renumber(l, 1) }))},
	{"events without ids", "v1.events.envelope", answers(when("GET", aPoll1), ofType("run.started", func(e map[string]any) { delete(e, "eventId") }))},
	{"engine version as a number", "v1.events.envelope", answers(when("GET", aPoll1), ofType("run.started", func(e map[string]any) { e["engineVersion"] = 1 }))},
	{"events of bound runs", "v1.events.envelope", answers(when("GET", aPoll1), ofType("run.started", func(e map[string]any) { e["runId"] = fmt.Sprint("default/", e["runId"]) }))},
	{"names of version 2", "v1.events.names", answers(when("GET", aPoll1), ofType("node.started", func(e map[string]any) { e["type"] = "agent.tool-called" }))},
	{"two ends", "v1.events.one-end", answers(when("GET", aPoll1), events(func(l []any) []any {
		if len(l) == 0 {
			return l
		}
		return append(l, l[len(l)-1])
	}))},
	{"payload without its workflow", "v1.events.payloads", answers(when("GET", aPoll1), ofType("run.started", func(e map[string]any) { delete(e["payload"].(map[string]any), "workflowId") }))},
	{"no approval.received", "v1.events.asked", answers(when("GET", aPoll1), ofType("approval.received", func(e map[string]any) { e["type"] = "x.y.z" }))},
	{"answers as a list", "v1.events.asked", answers(when("GET", aPoll1), ofType("clarification.resolved", func(e map[string]any) { e["payload"].(map[string]any)["answers"] = []any{} }))},

	{"never complete", "v1.poll.answer", answers(when("GET", aPoll1), on(200, set("isComplete", false)))},
	{"last event of another", "v1.poll.answer", answers(when("GET", aPoll1), on(200, set("lastEventSeq", 1)))},
	{"cursor 0 is from the start", "v1.poll.cursor", requests(when("GET", aPoll1), func(r *http.Request) {
		if r.URL.Query().Get("lastSequence") == "0" {
			query(r, "lastSequence", "")
		}
	})},
	{"old name of the cursor unknown", "v1.poll.cursor", requests(when("GET", aPoll1), func(r *http.Request) { query(r, "since", "") })},
	{"cursor past the end refused", "v1.poll.past-the-end", answers(when("GET", aPoll1), status(200, 400))},
	{"bounds ignored", "v1.poll.refused", requests(when("GET", aPoll1), func(r *http.Request) { query(r, "timeout", "") })},
	{"polls do not wait", "v1.poll.waits", requests(when("GET", aPoll1), func(r *http.Request) {
		if r.URL.Query().Get("timeout") == "60" {
			query(r, "lastSequence", "100000")
			query(r, "timeout", "1")
		}
	})},
}

var v1StreamMutations = []mutation{
	{"updates is everything", "v1.stream.updates", requests(when("GET", aStream1), func(r *http.Request) { query(r, "streamMode", "debug") })},
	{"frames without ids", "v1.stream.updates", answers(finished1, frames(func(l []string) []string { return eachLine(l, "id: ", "") }))},
	{"starts in updates", "v1.stream.no-starts", requests(when("GET", aStream1), func(r *http.Request) { query(r, "streamMode", "debug") })},
	{"debug is updates", "v1.stream.debug", requests(when("GET", aStream1), func(r *http.Request) { query(r, "streamMode", "updates") })},
	{"nothing for whoever comes back", "v1.stream.values", requests(when("GET", aStream1), func(r *http.Request) {
		if r.Header.Get("Last-Event-ID") != "" {
			query(r, "streamMode", "messages")
		}
	})},
	{"events among values", "v1.stream.values", requests(when("GET", aStream1), func(r *http.Request) { query(r, "streamMode", "updates") })},
	{"events among messages", "v1.stream.messages", requests(when("GET", aStream1), func(r *http.Request) { query(r, "streamMode", "updates") })},
	{"frames named by mode", "v1.stream.union", answers(finished1, frames(func(l []string) []string { return eachLine(l, "event: ", "event: updates") }))},
	{"any mode", "v1.stream.unsupported", requests(when("GET", aStream1), func(r *http.Request) { query(r, "streamMode", "updates") })},
	{"accept before the mode", "v1.stream.unsupported", requests(when("GET", aStream1), func(r *http.Request) {
		if r.Header.Get("Accept") == "application/json" {
			query(r, "streamMode", "")
		}
	})},
	{"modes there are not named", "v1.stream.unsupported", answers(when("GET", aStream1), on(400, drop("details")))},
	{"no batches", "v1.stream.batches", requests(when("GET", aStream1), func(r *http.Request) { query(r, "bufferMs", "") })},
	{"batches with the lowest id", "v1.stream.batches", answers(finished1, frames(func(l []string) []string { return eachLine(l, "id: ", "id: 0") }))},
	{"buffer cut to fit", "v1.stream.buffer-range", requests(when("GET", aStream1), func(r *http.Request) {
		if len(r.URL.Query().Get("bufferMs")) > 3 {
			query(r, "bufferMs", "5000")
		}
	})},
	{"always from the start", "v1.stream.resume", headless(when("GET", aStream1), "Last-Event-ID")},
	{"nothing until the end", "v1.stream.live", answers(when("GET", aStream1), func(*http.Request, *captured) {})},
	{"JSON that never says whether it is all", "v1.stream.as-json", answers(when("GET", aStream1), drop("isComplete"))},
}

// finished1 selects streams that end by themselves at once.
func finished1(r *http.Request) bool { return when("GET", aStream1)(r) }

// eachLine puts another line for those with a prefix.
func eachLine(fs []string, prefix, line string) []string {
	for i, f := range fs {
		lines := strings.Split(f, "\n")
		for j, l := range lines {
			if strings.HasPrefix(l, strings.TrimSpace(prefix)) {
				lines[j] = line
			}
		}
		if line == "" {
			lines = append(slices.DeleteFunc(lines, func(s string) bool { return s == "" }), "", "")
		}
		fs[i] = strings.Join(lines, "\n")
	}
	return fs
}

var v1AskMutations = []mutation{
	{"more than the action wanted", "v1.interrupt.accept", answers(when("POST", anAsk1), status(200, 400))},
	{"nobody decided", "v1.interrupt.accept", answers(when("GET", aPoll1), ofType("approval.received", func(e map[string]any) { delete(e["payload"].(map[string]any), "decidedBy") }))},
	{"lists of answers refused", "v1.interrupt.answers", body(anAsk1, func(m map[string]any) {
		if _, ok := m["resumeValue"].([]any); ok {
			m["resumeValue"] = map[string]any{}
		}
	})},
	{"any action accepts", "v1.interrupt.refused", body(anAsk1, func(m map[string]any) { m["resumeValue"] = map[string]any{"action": "accept"} })},
	{"unknown node is not found", "v1.interrupt.unknown", answers(when("POST", anAsk1), on(404, set("error", "not_found")))},
	{"answered twice", "v1.interrupt.again", answers(when("POST", anAsk1), status(409, 200))},
	{"cancelled is answered", "v1.interrupt.cancelled", answers(when("POST", anAsk1), on(422, func(r *http.Request, c *captured) {
		c.status = 409
		set("error", "interrupt_already_resolved")(r, c)
	}))},
	{"any event", "v1.interrupt.correlation", answers(when("POST", anAsk1), status(422, 200))},
	{"edit stays edit", "v1.interrupt.actions", answers(when("GET", aPoll1), ofType("approval.received", func(e map[string]any) { e["payload"].(map[string]any)["action"] = "edit" }))},
	{"a question answers", "v1.interrupt.actions", body(anAsk1, func(m map[string]any) {
		if v, ok := m["resumeValue"].(map[string]any); ok && v["action"] == "ask" {
			v["action"] = "accept"
		}
	})},
	{"every vote is another's", "v1.interrupt.quorum", body(anAsk1, func() func(m map[string]any) {
		var mu sync.Mutex
		n := 0
		return func(m map[string]any) {
			mu.Lock()
			defer mu.Unlock()
			n++
			m["resumeValue"].(map[string]any)["voter"] = fmt.Sprint("voter-", n)
		}
	}())},

	{"tokens of version 2", "v1.token.form", answers(when("GET", aRun1), on(200, inside("interrupt", func(m map[string]any) { m["interruptToken"] = fmt.Sprint("ow2.", m["interruptToken"]) })))},
	{"token without an end", "v1.token.look", answers(when("GET", aToken1), on(200, drop("expiresAt")))},
	{"token does not say whether", "v1.token.look", answers(when("GET", aToken1), on(200, drop("resolved")))},
	{"token answers twice", "v1.token.answer", answers(when("POST", aToken1), status(409, 200))},
	{"token wants a credential", "v1.token.answer", answers(func(r *http.Request) bool { return when("POST", aToken1)(r) && r.Header.Get("Authorization") == "" }, status(200, 401))},
	{"token of an answered gate", "v1.token.answered-elsewhere", answers(when("POST", aToken1), on(409, set("error", "run_terminal")))},
	{"token of a cancelled run", "v1.token.cancelled", answers(when("POST", aToken1), status(410, 200))},
	{"any token", "v1.token.forged", answers(when("GET", aToken1), status(401, 200))},
	{"token of one major", "v1.token.either-major", answers(when("POST", `^/interrupts/`), status(200, 401))},
}

var v1OtherMutations = []mutation{
	{"keys ignored", "v1.idempotency.replay", headless(when("POST", create1), "Idempotency-Key")},
	{"replay not marked", "v1.idempotency.replay", answers(when("POST", create1), header("OpenWOP-Idempotent-Replay", ""))},
	{"mismatch with the run", "v1.idempotency.mismatch", shows()},
	{"mismatch makes another", "v1.idempotency.mismatch", headless(when("POST", create1), "Idempotency-Key")},
	{"refusals kept", "v1.idempotency.not-kept", keeps()},
	{"keys in one form", "v1.idempotency.any-key", requests(when("POST", create1), func(r *http.Request) {
		if strings.Contains(r.Header.Get("Idempotency-Key"), " ") {
			r.Header.Set("Idempotency-Key", strings.Repeat("k", 300))
		}
	})},
	{"long keys cut", "v1.idempotency.any-key", requests(when("POST", create1), func(r *http.Request) {
		if k := r.Header.Get("Idempotency-Key"); len(k) > 255 {
			r.Header.Set("Idempotency-Key", "conformance-cut")
		}
	})},
	{"one cancel for all runs", "v1.idempotency.each-run", first1(aCancel1)},
	{"one key for both majors", "v1.idempotency.each-major", answers(when("POST", create), header("OpenWOP-Idempotent-Replay", "true"))},
	{"answers without their key", "v1.idempotency.resolve", headless(when("POST", anAsk1), "Idempotency-Key")},

	{"no scheme", "v1.webhooks.facet", answers(when("GET", wellKn), on(200, inside("webhooks", func(m map[string]any) { m["signatureAlgorithms"] = []string{"none"} })))},
	{"another fingerprint", "v1.webhooks.registered", answers(when("POST", hooks1), on(201, set("secretFingerprint", "00000000")))},
	{"secret not told", "v1.webhooks.registered", answers(when("POST", hooks1), on(201, drop("secret")))},
	{"bound webhook", "v1.webhooks.registered", answers(when("POST", hooks1), on(201, object(func(m map[string]any) { m["webhookId"] = fmt.Sprint("default/", m["webhookId"]) })))},
	{"plain http", "v1.webhooks.refused", body(hooks1, func(m map[string]any) {
		if u, ok := m["url"].(string); ok {
			m["url"] = strings.Replace(u, "http:", "https:", 1)
		}
	})},
	{"no events at all", "v1.webhooks.refused", body(hooks1, func(m map[string]any) { m["events"] = []string{"run.completed"} })},
	{"deletes for ever", "v1.webhooks.deleted", answers(when("DELETE", `^/v1/webhooks/`), func(_ *http.Request, c *captured) { c.status, c.body = 204, nil })},

	{"bundle of version 2", "v1.bundle.shape", answers(when("GET", aBundle1), on(200, set("bundleVersion", "2")))},
	{"open host", "v1.bundle.shape", answers(when("GET", aBundle1), on(200, inside("host", func(m map[string]any) { m["node"] = "x" })))},
	{"masked by passing through", "v1.bundle.shape", answers(when("GET", aBundle1), on(200, set("redactionMode", "passthrough")))},
	{"bundle is kept", "v1.bundle.shape", answers(when("GET", aBundle1), header("Cache-Control", "public"))},
	{"no older names", "v1.bundle.events", answers(when("GET", aBundle1), events(func(l []any) []any {
		for _, e := range l {
			delete(e.(map[string]any), "seq")
		}
		return l
	}))},
	{"count of another log", "v1.bundle.events", answers(when("GET", aBundle1), on(200, inside("metrics", func(m map[string]any) { m["eventCount"] = 1 })))},
	{"younger status in the bundle", "v1.bundle.status", answers(when("GET", aBundle1), swap(`"waiting-clarification"`, `"waiting-input"`))},
	{"bundle with an input", "v1.bundle.secrecy", repeats()},

	{"404 for annotations", "v1.families.not-provided", answers(when("", `/annotations$`), on(501, func(r *http.Request, c *captured) {
		c.status = 404
		set("error", "not_found")(r, c)
	}))},
	{"501 for tools", "v1.families.absent", answers(when("GET", `/tools$`), status(404, 501))},
	{"list of runs", "v1.families.younger", instead(when("GET", create1), 200, `{"runs":[]}`)},
	{"effects", "v1.families.younger", instead(when("GET", `^/v1/runs/.*/effects$`), 200, `{"effects":[]}`)},
	{"a space for version 2", "v1.families.older", instead(when("GET", `^/v2/`), 200, `{}`)},
	{"bundles that are not there", "v1.families.honest", answers(when("GET", aBundle1), status(200, 404))},
	{"broken chain", "v1.families.honest", answers(when("GET", `^/v1/audit/verify$`), on(200, set("chainValid", false)))},
}

// shows tells the id of the first run in later refusals.
func shows() func(http.Handler) http.Handler {
	var mu sync.Mutex
	var first string
	return answers(when("POST", create1), func(r *http.Request, c *captured) {
		mu.Lock()
		defer mu.Unlock()
		var m struct{ RunID string }
		_ = json.Unmarshal(c.body, &m)
		if c.status == 201 {
			first = m.RunID
		}
		on(409, set("message", "the run is "+first))(r, c)
	})
}

// keeps answers a key as it was answered first, refusal or not.
func keeps() func(http.Handler) http.Handler {
	var mu sync.Mutex
	kept := map[string]captured{}
	return answers(func(r *http.Request) bool { return when("POST", create1)(r) && r.Header.Get("Idempotency-Key") != "" }, func(r *http.Request, c *captured) {
		mu.Lock()
		defer mu.Unlock()
		k := r.Header.Get("Idempotency-Key")
		if old, ok := kept[k]; ok {
			*c = old
			return
		}
		kept[k] = *c
	})
}

// first1 answers every request to a path with a key as the first one.
func first1(pattern string) func(http.Handler) http.Handler {
	var mu sync.Mutex
	var old *captured
	return answers(func(r *http.Request) bool { return when("POST", pattern)(r) && r.Header.Get("Idempotency-Key") != "" }, func(_ *http.Request, c *captured) {
		mu.Lock()
		defer mu.Unlock()
		if old == nil {
			old = &captured{c.status, c.header.Clone(), slices.Clone(c.body)}
		}
		*c = captured{old.status, old.header.Clone(), old.body}
	})
}

// repeats puts the last input into bundles.
func repeats() func(http.Handler) http.Handler {
	var mu sync.Mutex
	var last any
	return both(
		body(create1, func(m map[string]any) {
			mu.Lock()
			defer mu.Unlock()
			last = m["inputs"]
		}),
		answers(when("GET", aBundle1), on(200, object(func(m map[string]any) {
			mu.Lock()
			defer mu.Unlock()
			m["variables"] = last
		}))),
	)
}

// v1Deliveries are faults in what leaves the host.
var v1Deliveries = []struct {
	name, check string
	damage      func(*postman, *http.Request, []byte) int
}{
	{"younger headers alone", "v1.webhooks.signed", reheads("X-openwop-Signature", func(string) string { return "" })},
	{"signature as bare hex", "v1.webhooks.signed", reheads("X-openwop-Signature", func(v string) string { return strings.TrimPrefix(v, "sha256=") })},
	{"signed for another second", "v1.webhooks.signed", reheads("X-openwop-Timestamp", func(v string) string { return v[:len(v)-1] + "x" })},
	{"sent by another agent", "v1.webhooks.signed", reheads("User-Agent", func(string) string { return "other/1" })},
	{"delivered without a type", "v1.webhooks.body", rewrites(func(m map[string]any) { delete(m, "type") })},
	{"delivered in version 2", "v1.webhooks.of-either", rewrites(func(m map[string]any) {
		m["event"].(map[string]any)["runId"] = fmt.Sprint("default/", m["runId"])
	})},
}

func reheads(name string, change func(string) string) func(*postman, *http.Request, []byte) int {
	return func(_ *postman, r *http.Request, _ []byte) int {
		r.Header.Set(name, change(r.Header.Get(name)))
		return 0
	}
}

func rewrites(edit func(map[string]any)) func(*postman, *http.Request, []byte) int {
	return func(_ *postman, r *http.Request, b []byte) int {
		c := &captured{body: b}
		object(edit)(r, c)
		putBody(r, c.body)
		return 0
	}
}
