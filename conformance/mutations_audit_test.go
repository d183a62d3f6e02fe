package conformance_test

import (
	"encoding/json"
	"net/http"
)

const anAudit = `^/audit/verify$`

// verdicts edits the answers of the audit log.
func verdicts(edit func(m map[string]any)) func(http.Handler) http.Handler {
	return answers(when("GET", anAudit), on(200, object(edit)))
}

// anchors edits each checkpoint of a verdict.
func anchors(edit func(c map[string]any)) func(http.Handler) http.Handler {
	return verdicts(func(m map[string]any) {
		for _, c := range m["checkpoints"].([]any) {
			edit(c.(map[string]any))
		}
	})
}

// family edits the record of discovery.
func family(edit func(f map[string]any)) func(http.Handler) http.Handler {
	return answers(when("GET", wellKn), on(200, object(func(m map[string]any) {
		if f, ok := m["auditLogIntegrity"].(map[string]any); ok {
			edit(f)
		}
	})))
}

// auditMutations are hosts whose audit log is not what they say.
var auditMutations = []mutation{
	{"its own log does not hold", "audit.verdict", verdicts(func(m map[string]any) { m["chainValid"] = false })},
	{"anomalies of a valid log", "audit.verdict", verdicts(func(m map[string]any) {
		m["anomalies"] = []any{map[string]any{"atSeq": 3, "expectedPrevHash": "a", "actualPrevHash": ""}}
	})},
	{"bad checkpoints of a valid log", "audit.verdict", verdicts(func(m map[string]any) { m["checkpointsValid"] = false })},
	{"a verdict without checkpoints", "audit.verdict", verdicts(func(m map[string]any) { delete(m, "checkpoints") })},
	{"a verdict that says more", "audit.verdict", anchors(func(c map[string]any) { c["verified"] = true })},
	{"a verdict of another range", "audit.verdict", verdicts(func(m map[string]any) { m["toSeq"] = 7 })},
	{"the log is advertised and not served", "audit.verdict", instead(func(r *http.Request) bool { return r.URL.Path == "/audit/verify" }, 404, `{"error":"not_found","message":"no such operation"}`)},
	{"checkpoints too far apart", "audit.cadence", anchors(func(c map[string]any) { c["atSequence"] = c["atSequence"].(json.Number) + "00000" })},
	{"checkpoints out of order", "audit.cadence", verdicts(func(m map[string]any) {
		list := m["checkpoints"].([]any)
		m["checkpoints"] = append(list, list...)
	})},
	{"a root that nobody signed", "audit.signatures", anchors(func(c map[string]any) {
		c["merkleRoot"] = "00" + c["merkleRoot"].(string)[2:]
	})},
	{"the text of a root for the root", "audit.signatures", anchors(func(c map[string]any) { c["merkleRoot"] = c["merkleRoot"].(string) + "00" })},
	{"no signature to speak of", "audit.signatures", anchors(func(c map[string]any) { c["signature"] = "AAAA" })},
	{"another key in discovery", "audit.signatures", family(func(f map[string]any) {
		f["checkpointPublicKey"] = "MCowBQYDK2VwAyEA6kpsY+KcUgq+9VB7Ey7F+ZVHdq6+vnuSQh7qaRRG0iw="
	})},
	{"any range will do", "audit.refusals", requests(when("GET", anAudit), func(r *http.Request) {
		if r.URL.Query().Get("fromSeq") == "5" {
			r.URL.RawQuery = ""
		}
	})},
	{"everybody reads the audit log", "audit.refusals", requests(when("GET", anAudit), func(r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+testKey)
	})},
}
