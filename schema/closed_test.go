package schema_test

import (
	"strconv"
	"testing"

	"github.com/fermata-run/fermata/schema"
)

// open lists the objects with named members that admit others on purpose: parts
// meant for composition, and what the protocol itself leaves open.
var open = map[string]bool{
	"subject#/$defs/fields":                       true,
	"run-options#/$defs/fields":                   true,
	"capability-record#":                          true,
	"create-run-request#/properties/residency":    true,
	"capabilities#/properties/testing":            true,
	"capabilities#/properties/compliance":         true,
	"capabilities#/properties/observability/otel": true,
}

func TestObjectsAreClosed(t *testing.T) {
	for _, name := range schema.Names() {
		walk(parsed(t, name), name+"#", func(at string, s map[string]any) {
			object := s["type"] == "object" || s["$ref"] != nil
			if !object || s["properties"] == nil || open[at] {
				return
			}
			if s["additionalProperties"] != false && s["unevaluatedProperties"] != false {
				t.Errorf("%s is open", at)
			}
		})
	}
}

// walk visits every schema object below s. In a location, the properties keyword
// is left out after the first, so that it reads as a path of members.
func walk(s map[string]any, at string, visit func(string, map[string]any)) {
	visit(at, s)
	for key, value := range s {
		switch key {
		case "properties", "$defs", "patternProperties":
			for k, sub := range asMap(value) {
				next := at + "/" + key + "/" + k
				if key == "properties" && len(at) > 0 && at[len(at)-1] != '#' {
					next = at + "/" + k
				}
				if m, ok := sub.(map[string]any); ok {
					walk(m, next, visit)
				}
			}
		case "items", "additionalProperties", "propertyNames", "contains":
			if m, ok := value.(map[string]any); ok {
				walk(m, at+"/"+key, visit)
			}
		case "oneOf", "anyOf":
			list, _ := value.([]any)
			for i, sub := range list {
				if m, ok := sub.(map[string]any); ok {
					walk(m, at+"/"+key+"/"+strconv.Itoa(i), visit)
				}
			}
		}
	}
}

func asMap(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// Each document the wire carries refuses a member it does not know.
func TestDocumentsRefuseUnknownMembers(t *testing.T) {
	owner := `{"tenant":"acme","subject":{"issuer":"urn:acme:api-key","subjectId":"k1","tenant":"acme","lane":"api-key","kind":"user"}}`
	docs := map[string]string{
		"owner":                      owner,
		"cancel-request":             `{"reason":"enough"}`,
		"cancel-response":            `{"runId":"acme/0123456789abcdef","status":"cancelling"}`,
		"bulk-cancel-request":        `{"runIds":["acme/0123456789abcdef"]}`,
		"bulk-cancel-response":       `{"results":[{"runId":"acme/0123456789abcdef","ok":true,"status":"cancelled"}]}`,
		"pause-request":              `{"drainPolicy":"immediate"}`,
		"pause-response":             `{"runId":"acme/0123456789abcdef","status":"paused","pausedAt":"2026-01-02T03:04:05.678Z"}`,
		"resume-request":             `{}`,
		"resume-response":            `{"runId":"acme/0123456789abcdef","status":"running"}`,
		"create-run-request":         `{"workflowId":"hello","tags":["a"],"configurable":{"version":1}}`,
		"create-run-response":        `{"runId":"acme/0123456789abcdef","status":"pending","eventsUrl":"/runs/acme~2F0123456789abcdef/events"}`,
		"fork-request":               `{"mode":"branch","fromSeq":3,"runOptionsOverlay":{"tags":["b"]}}`,
		"fork-response":              `{"runId":"acme/0123456789abcdef","sourceRunId":"acme/fedcba9876543210","fromSeq":3,"mode":"branch","status":"running","eventsUrl":"https://h.example/runs/x/events"}`,
		"run-options":                `{"metadata":{"k":1}}`,
		"configurable":               `{"version":1,"run":{"recursionLimit":5},"extensions":{"acme":{"k":true}}}`,
		"interrupt-resolve-request":  `{"resumeValue":null}`,
		"interrupt-resolve-response": `{"runId":"acme/0123456789abcdef","nodeId":"n1","status":"running"}`,
		"poll-response":              `{"runId":"acme/0123456789abcdef","events":[],"lastSequence":-1,"status":"pending","isTerminal":false}`,
		"error-envelope":             `{"error":"not_found","message":"No such run."}`,
		"run-list-response":          `{"runs":[]}`,
		"effect-ledger":              `{"runId":"acme/0123456789abcdef","effects":[]}`,
		"capabilities":               `{"protocolVersions":["1.0","2.0"],"preferredVersion":"2.0"}`,
		"agent-ref":                  `{"agentId":"core.chat"}`,
		"run-snapshot": `{"runId":"acme/0123456789abcdef","workflowId":"hello","status":"running","eventLogSchemaVersion":3,"owner":` +
			owner + `,"variables":{},"metrics":{"openwopCost":{"usd":0.1,"tokens":{"input":1,"output":2}}}}`,
		"run-event": `{"eventId":"0123456789abcdef-0","runId":"acme/0123456789abcdef","type":"run.started","payload":{},` +
			`"timestamp":"2026-01-02T03:04:05.678Z","sequence":0,"schemaVersion":1,"engineVersion":1,"causationId":"0123456789abcdef-1"}`,
	}
	for name, doc := range docs {
		if err := schema.Validate(name, []byte(doc)); err != nil {
			t.Errorf("good document: %v", err)
		}
		more := `{"unheardOf":1}`
		if doc != "{}" {
			more = doc[:len(doc)-1] + `,"unheardOf":1}`
		}
		if schema.Validate(name, []byte(more)) == nil {
			t.Errorf("%s accepts an unknown member", name)
		}
	}
}
