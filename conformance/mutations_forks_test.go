package conformance_test

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

const (
	aFork     = `^/runs/[^/]+:fork$`
	aDiff     = `^/runs/[^/]+:diff$`
	ancestors = `^/runs/[^/]+/ancestry$`
	manifest  = `^/host/effect-seams$`
)

// forkMutations are hosts whose forks, diffs or ancestry are not what they should be.
var forkMutations = []mutation{
	{"seam without a guard", "replay.manifest", answers(when("GET", manifest), on(200, object(func(m map[string]any) {
		m["seams"].([]any)[0].(map[string]any)["guarded"] = false
	})))},
	{"seam of an unknown kind", "replay.manifest", answers(when("GET", manifest), on(200, object(func(m map[string]any) {
		m["seams"].([]any)[0].(map[string]any)["kind"] = "carrier-pigeon"
	})))},
	{"manifest that lists nothing", "replay.manifest", answers(when("GET", manifest), on(200, set("seams", []any{})))},
	{"manifest elsewhere", "replay.facet", answers(when("GET", wellKn), on(200, object(func(m map[string]any) {
		m["replay"].(map[string]any)["effectSeamsManifest"] = "/seams"
	})))},
	{"replay that names another source", "fork.replay", answers(when("POST", aFork), on(201, set("sourceRunId", "default/0123456789abcdef")))},
	{"replay that is the source", "fork.replay", answers(when("POST", aFork), on(201, object(func(m map[string]any) { m["runId"] = m["sourceRunId"] })))},
	{"fork owned by somebody else", "fork.owner", answers(when("GET", aRun), on(200, object(func(m map[string]any) {
		m["owner"].(map[string]any)["workspace"] = fmt.Sprint("w", time.Now().UnixNano())
	})))},
	{"inherited payload rewritten", "fork.prefix-bytes", answers(when("GET", aPoll), on(200, ofType("run.started", func(e map[string]any) {
		e["payload"].(map[string]any)["x-seen"] = time.Now().UnixNano()
	})))},
	{"inherited events of another type", "fork.prefix", answers(when("GET", aPoll), on(200, events(func(list []any) []any {
		if len(list) > 0 {
			e := list[0].(map[string]any)
			e["nodeId"] = "n" + strings.ReplaceAll(fmt.Sprint(e["runId"]), "/", ".")
		}
		return list
	})))},
	{"replay that asks anew", "fork.interrupt-not-raised", body(aFork, func(m map[string]any) {
		if m["mode"] == "replay" {
			m["mode"], m["fromSeq"] = "branch", 1
		}
	})},
	{"replay that can be answered", "fork.interrupt-not-raised", answers(when("POST", anAsk), on(409, late))},
	{"replay that waits", "fork.interrupt-answered", body(aFork, func(m map[string]any) { m["mode"], m["fromSeq"] = "branch", 1 })},
	{"branch that answers for its source", "fork.branch-apart", answers(when("POST", aFork), on(201, object(func(m map[string]any) { m["runId"] = m["sourceRunId"] })))},
	{"fork anywhere", "fork.refusals", answers(when("POST", aFork), on(422, late))},
	{"fork point refused as malformed", "fork.refusals", answers(when("POST", aFork), status(422, 400))},
	{"branch without its options", "fork.branch-overlay", body(aFork, func(m map[string]any) { delete(m, "runOptionsOverlay") })},
	{"run that differs from itself", "diff.identical", answers(when("GET", aDiff), on(200, set("divergedAtSeq", 0)))},
	{"diff that looks at times", "diff.pure", answers(when("GET", aDiff), on(200, set("divergedAtSeq", 2)))},
	{"diff that sees nothing", "diff.different", answers(when("GET", aDiff), on(200, set("divergedAtSeq", nil)))},
	{"diff of a prefix called whole", "diff.truncated", answers(when("GET", aDiff), on(200, drop("truncated")))},
	{"diff with a foreign run", "diff.foreign", answers(when("GET", aDiff), on(403, func(_ *http.Request, c *captured) {
		c.status, c.body = 200, []byte(`{"a":"default/0123456789abcdef","b":"x/0123456789abcdef","divergedAtSeq":null,"eventDiffs":[],"stateDiff":{}}`)
	}))},
	{"fork with a parent", "ancestry.top", answers(when("GET", ancestors), on(200, set("parent", map[string]any{
		"runId": "default/0123456789abcdef", "hostId": "h", "cause": "core.subWorkflow"})))},
	{"child without a parent", "ancestry.child", answers(when("GET", ancestors), on(200, set("parent", nil)))},
}
