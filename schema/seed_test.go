package schema_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/fermata-run/fermata/schema"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"
)

const seedBase = "https://openwop.dev/spec/v2/"

// seed compiles one of the protocol's own schemas. Their file of id grammars is
// not among the reference material, so the one kind they refer to is given here.
func seed(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	b := shared(t, "seed", "spec-artifacts-2.0.0-rc.0", "schemas", "v2", name+".schema.json")
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	agentID := map[string]any{"type": "string", "pattern": "^[A-Za-z0-9._~:-]{1,128}$"}
	c := jsonschema.NewCompiler()
	for url, doc := range map[string]any{
		seedBase + name + ".schema.json": doc,
		seedBase + "ids.schema.json":     map[string]any{"$defs": map[string]any{"agentId": agentID}},
	} {
		if err := c.AddResource(url, doc); err != nil {
			t.Fatal(err)
		}
	}
	s, err := c.Compile(seedBase + name + ".schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// parts are members, with values good and bad, that documents are put together
// from: near enough to the truth that many pass, wild enough that many do not.
var parts = map[string]map[string][]any{
	"suspend-request": {
		"kind": {"approval", "clarification", "external-event", "custom", "conversation.start", "low-confidence", "credential", "", nil},
		"key":  {"k", "", long(256), long(257), 1},
		"data": {}, "timeoutMs": {0, 1, -1, 1.5, "1"}, "resumeSchema": {map[string]any{"type": "string"}, true, []any{}},
	},
	"data": {
		"artifactId": {"a", ""}, "artifactType": {"doc", ""}, "title": {"t", ""}, "description": {"", 1}, "artifactData": {nil, 1, "x"},
		"actions":           {[]any{"accept"}, []any{}, []any{"accept", "accept"}, []any{"ask", "reject"}, []any{"timeout"}, "accept"},
		"requiredApprovals": {1, 0, 2.0}, "approversList": {[]any{}, []any{"u"}, []any{1}}, "rejectionPolicy": {"majority", "none"},
		"overrideBypassesQuorum": {true, "true"}, "approverGroupRefs": {[]any{"g"}}, "approverRoleRefs": {[]any{"r"}},
		"audience":  {map[string]any{}, map[string]any{"groups": []any{"g"}}, map[string]any{"others": []any{}}},
		"questions": {[]any{}, []any{map[string]any{"id": "q", "question": "?"}}, []any{map[string]any{"id": "q"}}, []any{map[string]any{"id": "q", "question": "?", "schema": map[string]any{}, "more": 1}}},
		"eventType": {"e", "", 1}, "correlation": {map[string]any{"a": 1}, "a"}, "customKind": {"c", ""}, "payload": {nil, 1}, "contextType": {"c", 1},
		"conversationId": {"c", "", long(257)}, "initialPrompt": {""}, "prompt": {"p", ""}, "outcomeSchema": {map[string]any{}, 1}, "turnIndex": {0, -1},
		"reason": {"r", 1}, "agentId": {"a:b", "a b", ""}, "threshold": {0, 0.7, 1, 1.01}, "observed": {0.5, -1}, "decision": {nil, "d"},
	},
	"conversation-turn": {
		"messageId": {"m", "", long(257)}, "from": {"u", ""}, "to": {"", long(257)}, "groupId": {"g"}, "content": {nil, "c", 1, []any{}},
		"ts": {0, -1, 1.5}, "role": {"user", "agent", "system", "tool"}, "turnIndex": {0, -1}, "speakerId": {"s", ""},
		"agent": {map[string]any{}, map[string]any{"agentId": "a"}, map[string]any{"agentSharing": "shared"}, map[string]any{"model": map[string]any{"provider": "p"}}, map[string]any{"more": 1}},
	},
}

func long(n int) string { return string(bytes.Repeat([]byte("x"), n)) }

// shapes are the members each kind of data needs, so that whole ones are drawn often.
var shapes = [][]string{
	{"artifactId", "artifactType", "title", "actions"}, {"questions"}, {"eventType", "correlation"}, {"customKind"},
	{"conversationId"}, {"conversationId", "prompt"}, {"agentId", "threshold", "observed"}, {"kind", "key", "data"},
	{"messageId", "from", "content", "ts", "role", "turnIndex"},
}

// document draws an object from parts: one shape, mostly with good values (the
// first of each list), and at times a member more.
func document(t *rapid.T, from string) map[string]any {
	var names []string
	for name := range parts[from] {
		names = append(names, name)
	}
	slices.Sort(names)
	var fitting [][]string
	for _, shape := range shapes {
		if !slices.ContainsFunc(shape, func(n string) bool { return !slices.Contains(names, n) }) {
			fitting = append(fitting, shape)
		}
	}
	members := slices.Clone(rapid.SampledFrom(fitting).Draw(t, "shape"))
	for range rapid.IntRange(0, 2).Draw(t, "extra") {
		members = append(members, rapid.SampledFrom(names).Draw(t, "member"))
	}
	doc := map[string]any{}
	for _, name := range members {
		if name == "data" {
			doc[name] = document(t, "data")
			continue
		}
		values := parts[from][name]
		if rapid.IntRange(0, 3).Draw(t, "good") > 0 {
			values = values[:1]
		}
		doc[name] = rapid.SampledFrom(values).Draw(t, name)
	}
	switch rapid.IntRange(0, 9).Draw(t, "break") {
	case 0:
		delete(doc, rapid.SampledFrom(members).Draw(t, "gone"))
	case 1:
		doc["unheardOf"] = 1
	}
	return doc
}

// Our schemas accept and refuse what the protocol's own do.
func TestSeedAgrees(t *testing.T) {
	for _, name := range []string{"suspend-request", "conversation-turn"} {
		t.Run(name, func(t *testing.T) {
			theirs := seed(t, name)
			accepted, refused := 0, 0
			rapid.Check(t, func(t *rapid.T) {
				for range 40 {
					b, err := json.Marshal(document(t, name))
					if err != nil {
						t.Fatal(err)
					}
					instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
					if err != nil {
						t.Fatal(err)
					}
					want := theirs.Validate(instance)
					if got := schema.Validate(name, b); (got == nil) != (want == nil) {
						t.Fatalf("%s\nours: %v\ntheirs: %v", b, got, want)
					}
					if want == nil {
						accepted++
					} else {
						refused++
					}
				}
			})
			if accepted < 50 || refused < 50 {
				t.Errorf("the corpus is lopsided: %d accepted, %d refused", accepted, refused)
			}
		})
	}
}
