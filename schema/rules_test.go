package schema_test

import (
	"testing"

	"github.com/fermata-run/fermata/schema"
)

const run = `"acme/0123456789abcdef"`

// What the protocol demands beyond the shape of one member.
func TestRules(t *testing.T) {
	subject := func(rest string) string {
		return `{"issuer":"urn:x","subjectId":"s","tenant":"acme"` + rest + `}`
	}
	user := `,"lane":"api-key","kind":"user"`
	event := func(typ string) string {
		return `{"eventId":"0123456789abcdef","runId":` + run + `,"type":"` + typ +
			`","payload":null,"timestamp":"2026-01-02T03:04:05Z","sequence":0,"schemaVersion":1}`
	}
	record := `"since":"2.0","witness":"claims-check"`
	caps := func(rest string) string {
		return `{"protocolVersions":["2.0"],"preferredVersion":"2.0",` + rest + `}`
	}
	cases := []struct {
		name, doc string
		ok        bool
	}{
		{"subject", subject(user), true},
		{"subject", subject(user + `,"actor":` + subject(user+`,"actor":`+subject(user+`,"actor":`+subject(user+`,"actor":`+subject(user))))), true},
		{"subject", subject(user + `,"actor":` + subject(user+`,"actor":`+subject(user+`,"actor":`+subject(user+`,"actor":`+subject(user+`,"actor":`+subject(user)))))), false},
		{"subject", subject(`,"lane":"anonymous","kind":"user"`), false},
		{"subject", subject(`,"lane":"api-key","kind":"anonymous"`), false},
		{"subject", subject(`,"lane":"anonymous","kind":"anonymous"`), true},
		{"subject", subject(`,"lane":"saml","kind":"user"`), false},
		{"subject", subject(`,"lane":"saml","kind":"user","keyClass":"opaque-idp"`), true},
		{"subject", subject(user + `,"keyClass":"opaque-idp"`), false},

		{"create-run-request", `{}`, false},
		{"create-run-request", `{"mode":"eval","workflowId":"w"}`, false},
		{"create-run-request", `{"mode":"eval","evalSuiteRef":"s","agentId":"a"}`, true},
		{"create-run-request", `{"workflowId":"w","callbackUrl":"/relative"}`, false},
		{"create-run-request", `{"workflowId":"w","configurable":{"recursionLimit":3}}`, false},
		{"create-run-request", `{"workflowId":"w","configurable":{"version":1,"ai.provider":"x"}}`, false},
		{"run-options", `{"tags":[""]}`, true},

		{"fork-request", `{"mode":"branch"}`, false},
		{"fork-request", `{"mode":"replay"}`, true},
		{"fork-request", `{"mode":"replay","runOptionsOverlay":{}}`, true},
		{"fork-request", `{"mode":"replay","runOptionsOverlay":{"tags":["x"]}}`, false},
		{"bulk-cancel-request", `{"runIds":[]}`, false},
		{"bulk-cancel-response", `{"results":[{"runId":` + run + `,"ok":false}]}`, false},
		{"bulk-cancel-response", `{"results":[{"runId":` + run + `,"ok":false,"error":{"error":"not_found","message":"m"}}]}`, true},

		{"run-event", event("node.started"), true},
		{"run-event", event("example.thing-done"), true},
		{"run-event", event("node.begun"), false},
		{"run-event", event("agent.toolCalled"), false},
		{"run-event", event("openwop.thing"), false},
		{"run-event", event("core.thing"), false},

		{"error-envelope", `{"error":"teapot","message":"m"}`, false},
		{"error-envelope", `{"error":"example.teapot","message":"m"}`, true},
		{"error-envelope", `{"error":"openwop.teapot","message":"m"}`, false},
		{"error-envelope", `{"error":"not_found","message":""}`, false},
		{"error-envelope", `{"error":"run_state_conflict","message":"m","details":{}}`, false},
		{"error-envelope", `{"error":"run_state_conflict","message":"m","details":{"runStatus":"running","more":1}}`, true},
		{"error-envelope", `{"error":"payload_unprojectable","message":"m","details":{"type":"t","keys":["k"]}}`, true},
		{"error-envelope", `{"error":"payload_unprojectable","message":"m","details":{"type":"t","keys":["k"],"more":1}}`, false},
		{"error-envelope", `{"error":"unsupported_stream_mode","message":"m","details":{"supported":["updates"]}}`, true},

		{"capabilities", caps(`"limits":{"status":"stable",` + record + `,"clarificationRounds":3,"schemaRounds":2,"envelopesPerTurn":5}`), true},
		{"capabilities", caps(`"limits":{"status":"stable",` + record + `,"clarificationRounds":3,"schemaRounds":2,"envelopesPerTurn":5,"more":1}`), false},
		{"capabilities", caps(`"runList":{"status":"experimental",` + record + `,"maxPageSize":100}`), false},
		{"capabilities", caps(`"runList":{"status":"experimental","until":"2027-01-01",` + record + `,"maxPageSize":100,"filters":["status"]}`), true},
		{"capabilities", caps(`"runList":{"status":"stable","until":"2.1",` + record + `,"maxPageSize":100}`), false},
		{"capabilities", caps(`"secrets":{"status":"stable",` + record + `,"scopes":["tenant"]}`), true},
		{"capabilities", caps(`"secrets":{"scopes":["tenant"]}`), false},
		{"capabilities", caps(`"profiles":[]`), false},
		{"capabilities", caps(`"extensions":{"example.thing":{"a":1}}`), true},
		{"capabilities", caps(`"extensions":{"thing":{"a":1}}`), false},
		{"capabilities", caps(`"extensions":{"openwop.thing":{"a":1}}`), false},
		{"capabilities", caps(`"auth":{"status":"stable",` + record + `,"lanes":[{"lane":"api-key","issuers":["urn:h:api-key"],"revocation":"exp-only","minimumAssurance":"bearer"}]}`), false},
		{"capabilities", caps(`"auth":{"status":"stable",` + record + `,"lanes":[{"lane":"api-key","issuers":["urn:h:api-key"],"revocation":"next-request","minimumAssurance":"bearer"}]}`), true},
		{"capabilities", caps(`"auth":{"status":"stable",` + record + `,"lanes":[{"lane":"anonymous","issuers":["urn:h:anon"],"minimumAssurance":"bearer"}]}`), true},
		{"capabilities", caps(`"webhooks":{"status":"stable",` + record + `,"signatureAlgorithms":["standard-webhooks-1"]}`), false},
	}
	for _, c := range cases {
		if err := schema.Validate(c.name, []byte(c.doc)); (err == nil) != c.ok {
			t.Errorf("%s %s: %v", c.name, c.doc, err)
		}
	}
}
