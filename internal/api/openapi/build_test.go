package openapi

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

func TestOutputIsDeterministic(t *testing.T) {
	routes := table()
	first, _ := built(t, routes)
	for range 3 {
		slices.Reverse(routes)
		if again, _ := built(t, routes); !bytes.Equal(first, again) {
			t.Fatal("the same routes give other bytes")
		}
		routes = append(routes[1:], routes[0])
	}
}

// at follows a path of member names.
func at(t *testing.T, doc any, path ...string) any {
	t.Helper()
	for _, p := range path {
		m, ok := doc.(map[string]any)
		if !ok || m[p] == nil {
			t.Fatalf("nothing at %v", path)
		}
		doc = m[p]
	}
	return doc
}

func TestEveryReferenceResolves(t *testing.T) {
	_, doc := built(t, table())
	var visit func(any)
	visit = func(node any) {
		switch n := node.(type) {
		case []any:
			for _, v := range n {
				visit(v)
			}
		case map[string]any:
			if ref, ok := n["$ref"].(string); ok {
				path, inside := strings.CutPrefix(ref, "#/")
				if !inside {
					t.Errorf("%s leads out of the document", ref)
					return
				}
				at(t, doc, strings.Split(path, "/")...)
			}
			for _, v := range n {
				visit(v)
			}
		}
	}
	visit(doc)
	for _, key := range []string{"$id", "$defs", "$schema"} {
		if b, _ := json.Marshal(doc); bytes.Contains(b, []byte(`"`+key+`":`)) {
			t.Errorf("%s is left in the document", key)
		}
	}
}

func TestOperationsAreDescribed(t *testing.T) {
	_, doc := built(t, table())
	seen := map[string]bool{}
	for path, item := range doc["paths"].(map[string]any) {
		for method, op := range item.(map[string]any) {
			id := at(t, op, "operationId").(string)
			if seen[id] {
				t.Errorf("operationId %s occurs twice", id)
			}
			seen[id] = true
			var inPath []string
			params, _ := op.(map[string]any)["parameters"].([]any)
			for _, p := range params {
				if p := p.(map[string]any); p["in"] == "path" {
					inPath = append(inPath, "{"+p["name"].(string)+"}")
					if p["required"] != true || p["schema"] == nil {
						t.Errorf("%s %s: path parameter %v", method, path, p)
					}
				}
			}
			if got := template.FindAllString(path, -1); !slices.Equal(got, inPath) {
				t.Errorf("%s %s declares %v", method, path, inPath)
			}
			at(t, op, "responses", "default")
			at(t, op, "responses", "404")
		}
	}
	if len(seen) != len(table()) {
		t.Errorf("%d operations of %d routes", len(seen), len(table()))
	}
}

func TestOperationDetails(t *testing.T) {
	_, doc := built(t, table())
	create := at(t, doc, "paths", "/runs", "post")
	if got := fmt.Sprint(at(t, create, "security")); got != "[map[bearer:[runs:create]]]" {
		t.Errorf("security = %s", got)
	}
	if got := fmt.Sprint(at(t, doc, "paths", "/runs/{runId}:fork", "post", "security")); got != "[map[bearer:[runs:create runs:read]]]" {
		t.Errorf("security of two scopes = %s", got)
	}
	if at(t, create, "requestBody", "required") != true {
		t.Error("the body of createRun is optional")
	}
	pause := at(t, doc, "paths", "/runs/{runId}:pause", "post")
	if pause.(map[string]any)["requestBody"].(map[string]any)["required"] != false {
		t.Error("the body of pauseRun is required")
	}
	at(t, create, "responses", "201", "headers", "OpenWOP-Version")
	if got := at(t, create, "responses", "409", "$ref"); got != "#/components/responses/Conflict" {
		t.Errorf("409 = %v", got)
	}
	at(t, doc, "components", "responses", "TooManyRequests", "headers", "Retry-After")
	at(t, doc, "paths", "/runs/{runId}/events", "get", "responses", "200", "content", "text/event-stream")

	health := at(t, doc, "paths", "/healthz", "get").(map[string]any)
	if health["parameters"] != nil || len(health["security"].([]any)) != 0 || health["responses"].(map[string]any)["401"] != nil {
		t.Errorf("a public operation outside the protocol: %v", health)
	}
	schemas := at(t, doc, "components", "schemas").(map[string]any)
	if schemas["agent-ref"] == nil || schemas["run-event-payloads"] != nil {
		t.Error("the schemas are not exactly those used")
	}
}
