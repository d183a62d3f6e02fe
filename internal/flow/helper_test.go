package flow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/node"
)

// types is a catalog with a few node types.
type types map[string]*node.Type

func (t types) Type(id string) (*node.Type, bool) { n, ok := t[id]; return n, ok }

func catalog() types {
	done := func(context.Context, *node.Input) (node.Result, error) { return node.Done(nil), nil }
	t := types{}
	for _, n := range []node.Type{
		{ID: "test.task"},
		{ID: "test.needs", Requires: []string{"aiProviders"}},
		{ID: "test.sum", Sensitive: []string{"total"}, ConfigSchema: json.RawMessage(
			`{"type":"object","required":["of"],"properties":{"of":{"type":"array","items":{"type":"number"}}},"additionalProperties":false}`)},
		{ID: "test.odd", ConfigSchema: json.RawMessage(`{"type":7}`)},
		{ID: "test.when", Check: func(c node.CheckContext) error {
			var cfg struct{ When string }
			if err := json.Unmarshal(c.Config, &cfg); err != nil {
				return err
			}
			if cfg.When == "" {
				return node.Fail(node.CodeConfig, "when is missing")
			}
			return c.Expression(cfg.When, "value")
		}},
	} {
		n.Run = done
		t[n.ID] = &n
	}
	return t
}

// workflow is a definition, one member a line, with some members replaced. An
// empty replacement leaves the member out.
func workflow(replace ...string) string {
	order := []string{"id", "name", "version", "nodes", "edges", "triggers", "variables", "metadata", "settings"}
	m := map[string]string{
		"id": `"w"`, "name": `"W"`, "version": `"1"`, "nodes": "[" + task("a") + "]", "edges": "[]",
		"triggers": "[]", "variables": "[]", "metadata": "{}", "settings": "{}",
	}
	for i := 0; i < len(replace); i += 2 {
		if _, known := m[replace[i]]; !known {
			order = append(order, replace[i])
		}
		m[replace[i]] = replace[i+1]
	}
	var lines []string
	for _, name := range order {
		if m[name] != "" {
			lines = append(lines, fmt.Sprintf("%q: %s", name, m[name]))
		}
	}
	return "{\n" + strings.Join(lines, ",\n") + "\n}"
}

// task is a node; more is members of it beside the required ones.
func task(id string, more ...string) string { return nodeOf(id, "test.task", "{}", "{}", more...) }

func nodeOf(id, typeID, config, inputs string, more ...string) string {
	s := fmt.Sprintf(`{"id":%q,"typeId":%q,"name":"N","position":{"x":0,"y":0},"config":%s,"inputs":%s`, id, typeID, config, inputs)
	for _, m := range more {
		s += "," + m
	}
	return s + "}"
}

func edge(id, from, to string, more ...string) string {
	s := fmt.Sprintf(`{"id":%q,"sourceNodeId":%q,"targetNodeId":%q`, id, from, to)
	for _, m := range more {
		s += "," + m
	}
	return s + "}"
}

// list writes a JSON array with one element a line, the first on the line after
// the bracket.
func list(items ...string) string { return "[\n" + strings.Join(items, ",\n") + "\n]" }

func load(t *testing.T, def string) *flow.Workflow {
	t.Helper()
	w, err := flow.Check([]byte(def), catalog())
	if err != nil {
		t.Fatalf("%v\n%s", err, def)
	}
	return w
}

func issuesOf(t *testing.T, err error) flow.Issues {
	t.Helper()
	var is flow.Issues
	if !errors.As(err, &is) || len(is) == 0 {
		t.Fatalf("error %v is not a list of issues", err)
	}
	return is
}
