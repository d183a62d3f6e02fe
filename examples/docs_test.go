package examples_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fermata-run/fermata/schema"
)

var fence = regexp.MustCompile("(?ms)^```(\\S*) ?(\\S*)\n(.*?)^```$")

// Every snippet of the guide says what it is, is valid, and is taken by a host:
// whole workflows as they are, parts within a workflow made around them.
func TestGuideSnippets(t *testing.T) {
	h, seen := newHost(t), map[string]int{}
	for _, guide := range []string{"workflows.md", "compensation.md", "schedules.md"} {
		b, err := os.ReadFile(filepath.Join("..", "docs", guide))
		if err != nil {
			t.Fatal(err)
		}
		checkSnippets(t, h, b, seen, guide != "workflows.md")
	}
	for _, kind := range []string{"workflow", "node", "inputs", "edge", "variables", "channels", "settings", "triggers", "request"} {
		if seen[kind] == 0 {
			t.Errorf("the guide shows no %s", kind)
		}
	}
}

// checkSnippets looks at one guide; one with commands has fences that are no JSON.
func checkSnippets(t *testing.T, h *host, b []byte, seen map[string]int, commands bool) {
	t.Helper()
	for _, m := range fence.FindAllStringSubmatchIndex(string(b), -1) {
		if commands && string(b[m[2]:m[3]]) == "sh" {
			continue
		}
		line := 1 + strings.Count(string(b[:m[0]]), "\n")
		kind, text := string(b[m[4]:m[5]]), b[m[6]:m[7]]
		seen[kind]++
		if string(b[m[2]:m[3]]) != "json" || !json.Valid(text) {
			t.Errorf("line %d: not JSON", line)
			continue
		}
		if kind == "request" {
			if err := schema.Validate("create-run-request", text); err != nil {
				t.Errorf("line %d: %v", line, err)
			}
			continue
		}
		def, ok := around(kind, text)
		if !ok {
			t.Errorf("line %d: %q says nothing of what the snippet is", line, kind)
			continue
		}
		if err := schema.Validate("workflow-definition", def); err != nil {
			t.Errorf("line %d: %v", line, err)
		}
		answer := h.call("POST", "/host/fermata/workflows:validate", def, 200, 400, 422)
		var verdict struct {
			Valid   bool
			Message string
		}
		if decode(t, answer, &verdict); !verdict.Valid {
			t.Errorf("line %d: %s", line, verdict.Message)
		}
	}
}

// around makes a workflow that holds a snippet of some kind.
func around(kind string, text json.RawMessage) ([]byte, bool) {
	empty := json.RawMessage("{}")
	stub := func(id string) object {
		return object{"id": id, "typeId": "core.noop", "name": id, "position": object{"x": 0, "y": 0}, "config": empty, "inputs": empty}
	}
	nodes, edges := []any{stub("fetch-rates")}, []any{}
	def := object{
		"id": "snippet", "name": "Snippet", "version": "1", "triggers": []any{}, "variables": []any{},
		"metadata": empty, "settings": empty,
	}
	switch kind {
	case "workflow":
		return text, true
	case "node":
		nodes = []any{text}
	case "inputs":
		taker := stub("taker")
		taker["inputs"] = text
		nodes = append(nodes, taker)
	case "edge":
		var e struct{ SourceNodeID, TargetNodeID string }
		if json.Unmarshal(text, &e) != nil {
			return nil, false
		}
		nodes, edges = []any{stub(e.SourceNodeID), stub(e.TargetNodeID)}, []any{text}
	case "variables", "channels", "settings", "triggers":
		def[kind] = text
	default:
		return nil, false
	}
	def["nodes"], def["edges"] = nodes, edges
	b, err := json.Marshal(def)
	return b, err == nil
}
