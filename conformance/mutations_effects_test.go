package conformance_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
)

const aLedger = `^/runs/[^/]+/effects$`

// rows edits the attempts of a ledger.
func rows(edit func([]any) []any) func(*http.Request, *captured) {
	return object(func(m map[string]any) {
		if list, ok := m["effects"].([]any); ok {
			m["effects"] = edit(list)
		}
	})
}

// row edits each attempt of a ledger.
func row(edit func(e map[string]any)) func(*http.Request, *captured) {
	return rows(func(list []any) []any {
		for _, e := range list {
			edit(e.(map[string]any))
		}
		return list
	})
}

var started atomic.Int64

// eachItsOwn gives every run a business key of its own, so that whatever it does is
// done as often as there are runs.
func eachItsOwn(m map[string]any) {
	if in, ok := m["inputs"].(map[string]any); ok && in["idempotencyKey"] != nil {
		in["idempotencyKey"] = fmt.Sprint("own-", started.Add(1))
	}
}

// oneForAll takes every business operation for the same.
func oneForAll(m map[string]any) {
	if in, ok := m["inputs"].(map[string]any); ok && in["idempotencyKey"] != nil {
		in["idempotencyKey"] = fmt.Sprint("all of ", in["url"])
	}
}

var effectMutations = []mutation{
	{"the same order is charged by every run", "effects.business", body(create, eachItsOwn)},
	{"every order is the same", "effects.business", body(create, oneForAll)},
	{"a business key is not said to be one", "effects.business", answers(when("GET", aLedger), on(200, row(func(e map[string]any) { e["keying"] = "activity-recipe" })))},
	{"attempts that failed are forgotten", "effects.retry", answers(when("GET", aLedger), on(200, rows(func(list []any) []any { return list[max(len(list)-1, 0):] })))},
	{"the attempt is part of the identity", "effects.retry", answers(when("GET", aLedger), on(200, row(func(e map[string]any) {
		e["effectId"] = fmt.Sprint(e["effectId"], e["attempt"])
	})))},
	{"the ledger has another key than the wire", "effects.retry", answers(when("GET", aLedger), on(200, row(func(e map[string]any) { e["providerKey"] = "another" })))},
	{"a claim that never ends", "effects.retry", answers(when("GET", aLedger), on(200, row(func(e map[string]any) { e["state"] = "claimed" })))},
	{"two runs share an identity", "effects.distinct", answers(when("GET", aLedger), on(200, row(func(e map[string]any) { e["effectId"] = "default/0123456789abcdef" })))},
	{"the ledger shows what was sent", "effects.content-free", answers(when("GET", aLedger), on(200, row(func(e map[string]any) { e["invocationId"] = "POST conformance-payload" })))},
	{"the ledger says more", "effects.ledger", answers(when("GET", aLedger), on(200, set("more", 1)))},
}
