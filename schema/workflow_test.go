package schema_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/fermata-run/fermata/schema"
)

// The fixtures were written for major 1, which left a workflow's metadata open;
// major 2 closed it and gave free members the place customProperties. Moved there,
// as the host does when it reads a definition, every fixture is valid.
func TestFixtureWorkflowsAreValid(t *testing.T) {
	known := asMap(asMap(asMap(parsed(t, "workflow-definition")["$defs"])["metadata"])["properties"])
	paths, err := filepath.Glob(filepath.Join("..", "..", "shared", "protocol", "v1", "fixtures", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var doc map[string]any
		if err := json.Unmarshal(b, &doc); err != nil || doc["nodes"] == nil {
			continue // not a workflow
		}
		seen++
		metadata, free := asMap(doc["metadata"]), map[string]any{}
		for key, value := range metadata {
			if known[key] == nil {
				free[key] = value
				delete(metadata, key)
			}
		}
		if len(free) > 0 {
			metadata["customProperties"] = free
		}
		if b, err = json.Marshal(doc); err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate("workflow-definition", b); err != nil {
			t.Errorf("%s: %v", filepath.Base(path), err)
		}
	}
	if len(paths) == 0 {
		t.Skip("no reference material: fixtures")
	}
	if seen == 0 {
		t.Error("no fixture holds nodes")
	}
}

func TestWorkflowRules(t *testing.T) {
	workflow := func(inputs, rest string) []byte {
		node := `{"id":"n1","typeId":"core.noop","name":"N","position":{"x":0,"y":0.5},"config":{},"inputs":{` + inputs + `}` + rest + `}`
		return []byte(`{"id":"w","name":"W","version":"1","nodes":[` + node + `],"edges":[],"triggers":[],"variables":[],"metadata":{},"settings":{}}`)
	}
	cases := []struct {
		inputs, rest string
		ok           bool
	}{
		{``, ``, true},
		{`"a":{"type":"static","value":null}`, ``, true},
		{`"a":{"type":"static"}`, ``, false},
		{`"a":{"type":"connection","nodeId":"n0","outputKey":"output"}`, ``, true},
		{`"a":{"type":"connection","nodeId":"n0"}`, ``, false},
		{`"a":{"type":"variable","variableName":"v","optional":true}`, ``, true},
		{`"a":{"type":"expression","expression":""}`, ``, false},
		{``, `,"unheardOf":1`, false},
		{``, `,"irreversibleEffect":true`, true},
		{``, `,"irreversibleEffect":true,"compensation":{"nodeTypeId":"core.undo"}`, false},
		{``, `,"agent":{"agentId":"a","version":"1","channel":"stable"}`, false},
	}
	for _, c := range cases {
		if err := schema.Validate("workflow-definition", workflow(c.inputs, c.rest)); (err == nil) != c.ok {
			t.Errorf("inputs %s, rest %s: %v", c.inputs, c.rest, err)
		}
	}
	empty := []byte(`{"id":"w","name":"W","version":"1","nodes":[],"edges":[],"triggers":[],"variables":[],"metadata":{},"settings":{}}`)
	if schema.Validate("workflow-definition", empty) == nil {
		t.Error("a workflow without nodes is valid")
	}
}
