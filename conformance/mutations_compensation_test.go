package conformance_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
)

const (
	aCompensation = `^/runs/[^/]+/compensation$`
	aDefinition   = `^/host/fermata/workflows/`
)

// compensations edits every compensation that is read.
func compensations(edit func(map[string]any)) func(http.Handler) http.Handler {
	return answers(when("GET", aCompensation), on(200, object(edit)))
}

func undone(m map[string]any) bool { return len(m["attempts"].([]any)) > 0 }

// definitions edits the definitions that the suite registers before the host sees them,
// and gives the workflows names of their own: the host is shared with others.
func definitions(edit func(def, policy map[string]any)) func(http.Handler) http.Handler {
	own := fmt.Sprintf("-m%d", altered.Add(1))
	return func(next http.Handler) http.Handler {
		return both(requests(when("PUT", aDefinition), func(r *http.Request) {
			c := &captured{body: readAll(r)}
			object(func(m map[string]any) {
				if p, ok := m["settings"].(map[string]any)["compensation"].(map[string]any); ok {
					edit(m, p)
				}
				m["id"] = m["id"].(string) + own
			})(r, c)
			putBody(r, c.body)
			r.URL.Path, r.URL.RawPath = r.URL.Path+own, ""
		}), body(create, func(m map[string]any) {
			m["workflowId"] = m["workflowId"].(string) + own
		}))(next)
	}
}

var altered atomic.Int64

func policies(edit func(policy map[string]any)) func(http.Handler) http.Handler {
	return definitions(func(_, p map[string]any) { edit(p) })
}

var compensationMutations = []mutation{
	{"another ordering model", "compensation.facet", answers(when("GET", wellKn), on(200, object(func(m map[string]any) {
		m["compensation"].(map[string]any)["orderingModels"] = []any{"dependency-graph"}
	})))},
	{"every run is being undone", "compensation.none", compensations(func(m map[string]any) { m["status"] = "pending" })},
	{"compensation says too much", "compensation.none", compensations(func(m map[string]any) { m["inputs"] = map[string]any{} })},
	{"any run has a compensation", "compensation.unknown", instead(when("GET", `/conformance-no-such-run/compensation$`), 200,
		`{"runId":"default/0123456789abcdef","status":"none","plan":[],"attempts":[]}`)},
	{"undone in the order it was done", "compensation.unwind", compensations(func(m map[string]any) { slices.Reverse(m["attempts"].([]any)) })},
	{"plan in the order it was done", "compensation.unwind", compensations(func(m map[string]any) { slices.Reverse(m["plan"].([]any)) })},
	{"undone twice", "compensation.unwind", compensations(func(m map[string]any) {
		if undone(m) {
			l := m["attempts"].([]any)
			again := map[string]any{}
			for k, v := range l[0].(map[string]any) {
				again[k] = v
			}
			again["attempt"] = 2
			m["attempts"] = append(l, again)
		}
	})},
	{"snapshot never hears of it", "compensation.unwind", answers(when("GET", aRun), on(200, set("compensationStatus", "none")))},
	{"never undone", "compensation.events", policies(func(p map[string]any) { p["triggers"] = []any{"operator-request"} })},
	{"begun before it is planned", "compensation.events", answers(when("GET", aPoll), events(func(l []any) []any {
		i := slices.IndexFunc(l, func(e any) bool { return e.(map[string]any)["type"] == "compensation.requested" })
		j := slices.IndexFunc(l, func(e any) bool { return e.(map[string]any)["type"] == "compensation.started" })
		if i >= 0 && j > i {
			l[i], l[j] = l[j], l[i]
		}
		return l
	}))},
	{"two compensations of one run", "compensation.events", answers(when("GET", aPoll), ofType("compensation.completed", func(e map[string]any) {
		e["payload"].(map[string]any)["compensationId"] = "another"
	}))},
	{"a node starts behind the end", "compensation.events", answers(when("GET", aPoll), ofType("compensation.started", func(e map[string]any) {
		e["type"], e["payload"] = "node.started", map[string]any{"nodeId": "b", "typeId": "core.noop", "attempt": 0}
	}))},
	{"whatever fails is undone", "compensation.trigger", policies(func(p map[string]any) { p["triggers"] = []any{"node-failure", "run-cancel"} })},
	{"cancelled and left so", "compensation.cancel", policies(func(p map[string]any) { p["triggers"] = []any{"node-failure"} })},
	{"one try only", "compensation.retry", definitions(func(def, _ map[string]any) {
		for _, n := range def["nodes"].([]any) {
			if c, ok := n.(map[string]any)["compensation"].(map[string]any); ok {
				c["retry"] = map[string]any{"maxAttempts": 1}
			}
		}
	})},
	{"each attempt is another effect", "compensation.retry", answers(when("GET", aPoll), ofType("compensation.failed", func(e map[string]any) {
		e["payload"].(map[string]any)["effectId"] = "default/0123456789abcdef"
	}))},
	{"half is called all", "compensation.retry", answers(when("GET", aRun), on(200, object(func(m map[string]any) {
		if m["compensationStatus"] == "partial" {
			m["compensationStatus"] = "completed"
		}
	})))},
	{"nobody is asked", "compensation.approval", policies(func(p map[string]any) { delete(p, "approvalScope") })},
	{"no is taken for yes", "compensation.approval", requests(when("POST", anAsk), func(r *http.Request) {
		putBody(r, []byte(strings.Replace(string(readAll(r)), "reject", "accept", 1)))
	})},
	{"stream goes on behind the end", "compensation.stream", requests(when("GET", aStream), func(r *http.Request) {
		if r.Header.Get("Last-Event-ID") == "" {
			r.Header.Set("Last-Event-ID", "7")
		}
	})},
	{"nothing behind the end", "compensation.stream", answers(func(r *http.Request) bool {
		return finished(r) && r.Header.Get("Last-Event-ID") != ""
	}, frames(func([]string) []string { return nil }))},
	{"poll ends with the run", "compensation.poll", answers(when("GET", aPoll), events(func(l []any) []any {
		i := slices.IndexFunc(l, func(e any) bool { return e.(map[string]any)["type"] == "run.failed" })
		return l[:i+1]
	}))},
	{"undone and not terminal", "compensation.poll", answers(when("GET", aPoll), on(200, set("isTerminal", false)))},
	{"triggers nobody fires", "compensation.registration", policies(func(p map[string]any) {
		if l, ok := p["triggers"].([]any); ok && len(l) > 1 {
			p["triggers"] = l[:1]
		}
	})},
	{"policy is not looked at", "compensation.registration", policies(func(p map[string]any) { delete(p, "conformance") })},
}
