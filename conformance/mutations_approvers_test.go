package conformance_test

import (
	"fmt"
	"net/http"
)

const (
	aToken   = `^/interrupts/ow2`
	anIssue  = `^/host/fermata/runs/[^/]+/interrupts/[^/]+/tokens$`
	register = `^/host/fermata/workflows/`
)

var changed int

// config edits the config of every gate that is registered. The workflow goes by
// another name then: the good host keeps the one that the suite means.
func config(edit func(c map[string]any)) func(http.Handler) http.Handler {
	changed++
	name := fmt.Sprintf("-changed-%d", changed)
	registers := requests(when("PUT", register), func(r *http.Request) {
		c := &captured{body: readAll(r)}
		object(func(def map[string]any) {
			def["id"] = def["id"].(string) + name
			for _, n := range def["nodes"].([]any) {
				if cfg, ok := n.(map[string]any)["config"].(map[string]any); ok {
					edit(cfg)
				}
			}
		})(r, c)
		putBody(r, c.body)
		r.URL.Path += name
	})
	return both(registers, body(create, func(m map[string]any) {
		if id, ok := m["workflowId"].(string); ok {
			m["workflowId"] = id + name
		}
	}))
}

func without(member string) func(http.Handler) http.Handler {
	return config(func(c map[string]any) { delete(c, member) })
}

// everybody answers as one and the same person.
func everybody(r *http.Request) {
	if r.Header.Get("Authorization") != "" {
		r.Header.Set("Authorization", "Bearer "+testKey)
	}
}

func payload(e map[string]any) map[string]any { return e["payload"].(map[string]any) }

// approverMutations are hosts that let the wrong people decide, or count wrong.
var approverMutations = []mutation{
	{"groups are not looked at", "approvers.group", answers(when("POST", anAsk), on(403, late))},
	{"groups are not shown", "approvers.group", without("approverGroupRefs")},
	{"members are refused", "approvers.group", requests(when("POST", anAsk), everybody)},
	{"roles are not looked at", "approvers.role", answers(when("POST", anAsk), on(403, late))},
	{"roles are not shown", "approvers.role", without("approverRoleRefs")},
	{"tokens for everybody", "approvers.by-token", answers(when("POST", anIssue), on(403, func(_ *http.Request, c *captured) {
		c.status, c.body = 201, []byte(`{"token":"ow2.hs256.k.p.m"}`)
	}))},
	{"all voters are one", "approvers.quorum-of-people", requests(when("POST", anAsk), everybody)},
	{"one vote is a quorum", "approvers.quorum-of-people", without("requiredApprovals")},
	{"a veto is a vote", "approvers.single-veto", config(func(c map[string]any) { c["rejectionPolicy"] = "majority"; c["requiredApprovals"] = 9 })},
	{"a rejection is a veto", "approvers.majority", without("rejectionPolicy")},
	{"every rejection counts anew", "approvers.majority", config(func(c map[string]any) { c["requiredApprovals"] = 1 })},
	{"everybody overrides", "approvers.override", without("requiredApprovals")},
	{"the timeout is an acceptance", "approval.timeout-rejects", answers(when("GET", aPoll), ofType("interrupt.resolved", func(e map[string]any) {
		payload(e)["action"] = "accept"
	}))},
	{"the timeout gives no reason", "approval.timeout-rejects", answers(when("GET", aPoll), ofType("interrupt.resolved", func(e map[string]any) {
		delete(payload(e), "reason")
	}))},
	{"anybody can time a gate out", "approval.timeout-rejects", answers(when("POST", anAsk), on(400, late))},
	{"a rejection may be tried again", "approval.rejection-fails", answers(when("GET", aPoll), ofType("node.failed", func(e map[string]any) {
		payload(e)["error"].(map[string]any)["retryable"] = true
	}))},
	{"a rejection names no node", "approval.rejection-fails", answers(when("GET", aPoll), ofType("run.failed", func(e map[string]any) {
		delete(payload(e), "failedNodeId")
	}))},
	{"every visit has the same key", "interrupt.key-of-visit", answers(when("GET", aPoll), ofType("interrupt.requested", func(e map[string]any) {
		payload(e)["key"] = "always"
	}))},
	{"tokens show nothing", "token.resolve", answers(when("GET", aToken), on(200, set("kind", "unknown")))},
	{"tokens answer with anything", "token.resolve", answers(when("POST", aToken), on(400, late))},
	{"changed tokens are taken", "token.mac", answers(when("POST", aToken), on(401, late))},
	{"tokens to look answer too", "token.inspect-only", body(anIssue, func(m map[string]any) { delete(m, "intent") })},
	{"tokens outlive their interrupt", "token.invalidated", answers(when("POST", aToken), on(409, late))},
	{"used tokens are called expired", "token.invalidated", answers(when("POST", aToken), on(409, func(r *http.Request, c *captured) {
		c.status = 410
		set("error", "interrupt_expired")(r, c)
	}))},
	{"tokens never expire", "token.expiry", body(anIssue, func(m map[string]any) { delete(m, "expiresInSeconds") })},
	{"rotation takes tokens away", "token.rotation", func() func(http.Handler) http.Handler {
		first := ""
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if when("POST", `^/host/fermata/token-keys$`)(r) {
					first = "rotated"
				}
				if first != "" && when("GET", aToken)(r) {
					instead(when("GET", aToken), 401, `{"error":"interrupt_token_invalid","message":"no"}`)(next).ServeHTTP(w, r)
					return
				}
				next.ServeHTTP(w, r)
			})
		}
	}()},
	{"rotation changes nothing", "token.rotation", instead(when("POST", `^/host/fermata/token-keys$`), 201, `{"kid":"same"}`)},
}
